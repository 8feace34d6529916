"""The programs of the runtime's reference on data types, structs, conversions and constants."""

import numpy as np
import pytest

import weft as wp


def test_vectors_algebra(gpu):
    @wp.kernel
    def compute(out: wp.array(dtype=float)):
        a = wp.vec3(1.0, 0.0, 0.0)
        b = wp.vec3(0.0, 1.0, 0.0)

        c = wp.cross(a, b)

        r = wp.dot(c, c)

        out[0] = r

    out = wp.zeros(1, dtype=float, device=gpu)
    wp.launch(compute, dim=1, inputs=[out], device=gpu)
    assert out.numpy()[0] == 1.0


def test_vectors_declared(gpu):
    vec5d = wp.types.vector(length=5, dtype=wp.float64)

    arr = wp.zeros(10, dtype=vec5d)
    assert arr.numpy().shape == (10, 5) and arr.numpy().dtype == np.float64

    @wp.kernel
    def compute(arr: wp.array(dtype=vec5d)):
        v = vec5d()
        arr[0] = v

        v = vec5d(wp.float64(1.0), wp.float64(2.0), wp.float64(3.0), wp.float64(4.0), wp.float64(5.0))
        arr[1] = v

    arr = wp.full(2, vec5d(9.0), dtype=vec5d, device=gpu)
    wp.launch(compute, dim=1, inputs=[arr], device=gpu)
    assert arr.numpy().tolist() == [[0.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]]


def test_vectors_anonymous(gpu):
    vec5d = wp.types.vector(length=5, dtype=wp.float64)

    @wp.kernel
    def compute(arr: wp.array(dtype=vec5d)):
        v = wp.vector(dtype=wp.float64, length=5)
        arr[0] = v

        v = wp.vector(wp.float64(1.0), length=5)
        arr[1] = v

        v = wp.vector(wp.float64(1.0), wp.float64(2.0), wp.float64(3.0), wp.float64(4.0), wp.float64(5.0))
        arr[2] = v

    arr = wp.full(3, vec5d(9.0), dtype=vec5d, device=gpu)
    wp.launch(compute, dim=1, inputs=[arr], device=gpu)
    assert arr.numpy().tolist() == [[0.0] * 5, [1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]]


def test_matrices_algebra(gpu):
    @wp.kernel
    def compute(out: wp.array(dtype=wp.vec2)):
        m = wp.mat22(1.0, 2.0, 3.0, 4.0)

        minv = wp.inverse(m)

        v = minv * wp.vec2(0.5, 0.3)

        out[0] = v

    out = wp.zeros(1, dtype=wp.vec2, device=gpu)
    wp.launch(compute, dim=1, inputs=[out], device=gpu)
    assert np.allclose(out.numpy()[0], np.linalg.inv([[1.0, 2.0], [3.0, 4.0]]) @ [0.5, 0.3], atol=1e-6)


def test_matrices_declared(gpu):
    mat32h = wp.types.matrix(shape=(3, 2), dtype=wp.float16)

    a = wp.zeros(10, dtype=mat32h)
    assert a.numpy().shape == (10, 3, 2) and a.numpy().dtype == np.float16

    @wp.kernel
    def compute(out: wp.array(dtype=wp.vec3h)):
        m = mat32h(wp.float16(1.0), wp.float16(2.0), wp.float16(3.0), wp.float16(4.0), wp.float16(5.0), wp.float16(6.0))

        v2 = wp.vec2h(wp.float16(1.0), wp.float16(1.0))

        v3 = m * v2
        out[0] = v3

    out = wp.zeros(1, dtype=wp.vec3h, device=gpu)
    wp.launch(compute, dim=1, inputs=[out], device=gpu)
    assert out.numpy().tolist() == [[3.0, 7.0, 11.0]]


def test_matrices_anonymous(gpu):
    mat32h = wp.types.matrix(shape=(3, 2), dtype=wp.float16)
    mat55d = wp.types.matrix(shape=(5, 5), dtype=wp.float64)

    @wp.kernel
    def compute(halves: wp.array(dtype=mat32h), doubles: wp.array(dtype=mat55d)):
        m = wp.matrix(
            wp.float16(1.0),
            wp.float16(2.0),
            wp.float16(1.0),
            wp.float16(2.0),
            wp.float16(1.0),
            wp.float16(2.0),
            shape=(3, 2),
        )
        halves[0] = m

        m = wp.matrix(wp.float16(0.0), shape=(3, 2))
        halves[1] = m

        identity = wp.identity(n=5, dtype=wp.float64)
        doubles[0] = identity

    halves = wp.full(2, mat32h(9.0), dtype=mat32h, device=gpu)
    doubles = wp.zeros(1, dtype=mat55d, device=gpu)
    wp.launch(compute, dim=1, inputs=[halves, doubles], device=gpu)
    assert halves.numpy().tolist() == [[[1.0, 2.0]] * 3, [[0.0, 0.0]] * 3]
    assert np.array_equal(doubles.numpy()[0], np.eye(5))


def test_quaternions_rotate(gpu):
    @wp.kernel
    def compute(out: wp.array(dtype=wp.vec3)):
        q = wp.quat_from_axis_angle(wp.vec3(1.0, 0.0, 0.0), wp.degrees(30.0))

        v = wp.quat_rotate(q, wp.vec3(0.0, 1.0, 0.0))

        out[0] = v

    out = wp.zeros(1, dtype=wp.vec3, device=gpu)
    wp.launch(compute, dim=1, inputs=[out], device=gpu)
    angle = np.degrees(30.0)
    assert np.allclose(out.numpy()[0], [0.0, np.cos(angle), np.sin(angle)], atol=1e-3)


def test_quaternions_declared(gpu):
    quatd = wp.types.quaternion(dtype=wp.float64)
    assert wp.zeros(2, dtype=quatd, device=gpu).numpy().dtype == np.float64


def test_quaternions_anonymous(gpu):
    @wp.kernel
    def compute(
        doubles: wp.array(dtype=wp.quatd), singles: wp.array(dtype=wp.quatf), halves: wp.array(dtype=wp.quath)
    ):
        qd = wp.quat_identity(dtype=wp.float64)

        qf = wp.quat_identity()

        qh = wp.quaternion(wp.float16(0.0), wp.float16(0.0), wp.float16(0.0), wp.float16(1.0))
        halves[0] = qh

        qh = wp.quaternion(wp.vector(wp.float16(0.0), wp.float16(0.0), wp.float16(0.0)), wp.float16(1.0))
        halves[1] = qh
        doubles[0] = qd
        singles[0] = qf

    doubles, singles = wp.zeros(1, dtype=wp.quatd, device=gpu), wp.zeros(1, dtype=wp.quatf, device=gpu)
    halves = wp.zeros(2, dtype=wp.quath, device=gpu)
    wp.launch(compute, dim=1, inputs=[doubles, singles, halves], device=gpu)
    for array in (doubles, singles, halves):
        assert array.numpy().tolist() == [[0.0, 0.0, 0.0, 1.0]] * array.size


def test_transforms_points_and_vectors(gpu):
    @wp.kernel
    def compute(out: wp.array(dtype=wp.vec3)):
        t = wp.transform(wp.vec3(1.0, 2.0, 3.0), wp.quat_from_axis_angle(wp.vec3(0.0, 1.0, 0.0), wp.degrees(30.0)))

        p = wp.transform_point(t, wp.vec3(10.0, 0.5, 1.0))
        out[0] = p

        p = wp.transform_vector(t, wp.vec3(10.0, 0.5, 1.0))
        out[1] = p

    out = wp.zeros(2, dtype=wp.vec3, device=gpu)
    wp.launch(compute, dim=1, inputs=[out], device=gpu)
    angle = np.degrees(30.0)
    c, s = np.cos(angle), np.sin(angle)
    rotated = np.array([10.0 * c + s, 0.5, -10.0 * s + c])
    assert np.allclose(out.numpy(), [rotated + [1.0, 2.0, 3.0], rotated], atol=2e-2)


def test_transforms_declared(gpu):
    transformd = wp.types.transformation(dtype=wp.float64)
    assert wp.zeros(2, dtype=transformd, device=gpu).numpy().shape == (2, 7)


def test_transforms_identity(gpu):
    @wp.kernel
    def compute(out: wp.array(dtype=wp.transformd)):
        qd = wp.transform_identity(dtype=wp.float64)
        out[0] = qd

    out = wp.zeros(1, dtype=wp.transformd, device=gpu)
    wp.launch(compute, dim=1, inputs=[out], device=gpu)
    assert out.numpy().tolist() == [[0.0] * 6 + [1.0]]


def test_structs(capsys):
    @wp.struct
    class MyStruct:
        param1: int
        param2: float
        param3: wp.array(dtype=wp.vec3)

    @wp.kernel
    def compute(args: MyStruct):
        tid = wp.tid()

        print(args.param1)
        print(args.param2)
        print(args.param3[tid])

    s = MyStruct()
    s.param1 = 10
    s.param2 = 2.5
    s.param3 = wp.zeros(shape=10, dtype=wp.vec3)

    wp.launch(compute, dim=10, inputs=[s])
    wp.synchronize()
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("10") == 10 and lines.count("2.5") == 10 and len(lines) == 30


def test_structs_arrays(gpu):
    @wp.struct
    class MyStruct:
        param1: int
        param2: float

    a = wp.zeros(shape=10, dtype=MyStruct)
    assert a.shape == (10,) and not any(item.param1 or item.param2 for item in a.list())

    a = wp.array([MyStruct(), MyStruct(), MyStruct()], dtype=MyStruct)
    assert a.shape == (3,)


def test_type_conversions(gpu):
    @wp.kernel
    def compute(out: wp.array(dtype=float)):
        x = float(0.0) + int(4)
        out[0] = x

    with pytest.raises(RuntimeError, match=r"(?s)test_runtime_types\.py.*float\(0\.0\) \+ int\(4\)"):
        wp.launch(compute, dim=1, inputs=[wp.zeros(1, dtype=float, device=gpu)], device=gpu)


def test_constants(gpu, capsys):
    TYPE_SPHERE = wp.constant(0)
    TYPE_CUBE = wp.constant(1)
    TYPE_CAPSULE = wp.constant(2)

    @wp.kernel
    def collide(geometry: wp.array(dtype=int)):
        t = geometry[wp.tid()]

        if t == TYPE_SPHERE:
            print("sphere")
        if t == TYPE_CUBE:
            print("cube")
        if t == TYPE_CAPSULE:
            print("capsule")

    geometry = wp.array([0, 1, 2, 1], dtype=int, device=gpu)
    wp.launch(collide, dim=4, inputs=[geometry], device=gpu)
    wp.synchronize()
    assert sorted(capsys.readouterr().out.split()) == ["capsule", "cube", "cube", "sphere"]
