"""Vectors, matrices, quaternions, transforms and structs in kernels: parts are read and assigned as in Python."""

import numpy as np

import weft as wp


def test_components_are_assigned(device):
    @wp.kernel
    def k(out: wp.array(dtype=wp.vec3), s: float):
        i = wp.tid()
        v = wp.vec3(1.0, 2.0, 3.0)
        v[0] = s
        v.y += 10.0
        v[-1] = v[2] * 2.0
        v[i] = v[i] + 100.0
        w = v
        w.x = 0.0
        out[i] = v
        out[i + 3] = w

    out = wp.zeros(6, dtype=wp.vec3)
    wp.launch(k, dim=3, inputs=[out, 7.0])
    base = np.array([7.0, 12.0, 6.0])
    for i in range(3):
        want = base.copy()
        want[i] += 100.0
        assert out.numpy()[i].tolist() == want.tolist()
        want[0] = 0.0
        assert out.numpy()[i + 3].tolist() == want.tolist()


def test_components_in_branches_and_loops(device):
    @wp.kernel
    def k(out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        v = wp.vec3(0.0, 0.0, 0.0)
        if i > 0:
            v[1] = 5.0
        for j in range(i):
            v.x += 1.0
            v[j % 3] += 2.0
        out[i] = v

    out = wp.zeros(5, dtype=wp.vec3)
    wp.launch(k, dim=5, inputs=[out])
    for i in range(5):
        v = np.zeros(3)
        if i > 0:
            v[1] = 5.0
        for j in range(i):
            v[0] += 1.0
            v[j % 3] += 2.0
        assert out.numpy()[i].tolist() == v.tolist()


def test_matrices_by_rows_elements_and_slices(device):
    @wp.kernel
    def k(out: wp.array(dtype=wp.mat33), part: wp.array(dtype=wp.mat22), column: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        m = wp.mat33(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
        m[0, 2] = 30.0
        m[1][0] = 40.0
        m[i] = m[i] * 2.0
        m[2, i] += 0.5
        out[i] = m
        part[i] = m[0:2, 1:3]
        column[i] = m[:, 1]

    out = wp.zeros(3, dtype=wp.mat33)
    part = wp.zeros(3, dtype=wp.mat22)
    column = wp.zeros(3, dtype=wp.vec3)
    wp.launch(k, dim=3, inputs=[out, part, column])
    for i in range(3):
        m = np.arange(1.0, 10.0).reshape(3, 3)
        m[0, 2], m[1, 0] = 30.0, 40.0
        m[i] *= 2.0
        m[2, i] += 0.5
        assert np.array_equal(out.numpy()[i], m)
        assert np.array_equal(part.numpy()[i], m[0:2, 1:3])
        assert np.array_equal(column.numpy()[i], m[:, 1])


def test_elements_of_arrays_by_parts(device):
    @wp.kernel
    def k(v: wp.array2d(dtype=wp.vec3), m: wp.array(dtype=wp.mat22)):
        i = wp.tid()
        v[i, 1].y = 4.0
        v[i][0][2] = 5.0
        v[i, -1] += wp.vec3(1.0, 1.0, 1.0)
        v[i, 0][i] = 9.0
        m[i][1, 0] = v[i, 1].y
        m[i][0] = wp.vec2(1.0, 2.0)

    v = wp.zeros((2, 3), dtype=wp.vec3)
    m = wp.zeros(2, dtype=wp.mat22)
    wp.launch(k, dim=2, inputs=[v, m])
    want = np.zeros((2, 3, 3))
    for i in range(2):
        want[i, 1, 1] = 4.0
        want[i, 0, 2] = 5.0
        want[i, 2] += 1.0
        want[i, 0, i] = 9.0
    assert np.array_equal(v.numpy(), want)
    assert np.array_equal(m.numpy()[1], [[1.0, 2.0], [4.0, 0.0]])


def test_transforms_and_quaternions(device):
    @wp.kernel
    def k(points: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        q = wp.quat_from_axis_angle(wp.vec3(0.0, 0.0, 1.0), wp.radians(90.0))
        t = wp.transform(wp.vec3(1.0, 0.0, 0.0), q)
        t.p = t.p + wp.vec3(0.0, 0.0, 2.0)
        out[i] = wp.transform_point(t, points[i]) + wp.transform_get_translation(wp.transform_inverse(t) * t)

    points = wp.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]], dtype=wp.vec3)
    out = wp.zeros(2, dtype=wp.vec3)
    wp.launch(k, dim=2, inputs=[points, out])
    assert np.allclose(out.numpy(), [[1.0, 1.0, 2.0], [-1.0, 0.0, 2.0]], atol=1e-6)


@wp.struct
class Grain:
    """A grain with a position."""

    x: wp.vec3
    mass: float
    kind: int


@wp.struct
class Cloud:
    """Grains and what is done with them."""

    grains: wp.array(dtype=Grain)
    weights: wp.array(dtype=float)
    scale: float
    first: Grain


def test_structs_as_values_elements_and_holders_of_arrays(device):
    @wp.func
    def heavier(g: Grain, by: float):
        g.mass = g.mass + by
        g.x[1] = 3.0
        return g

    @wp.kernel
    def k(cloud: Cloud, out: wp.array(dtype=float)):
        i = wp.tid()
        g = cloud.grains[i]
        h = heavier(g, cloud.scale)
        if i == 1:
            h.kind = 8
        cloud.grains[i] = h
        cloud.grains[i].x.z = -1.0
        cloud.weights[i] = g.mass + cloud.first.mass
        out[i] = float(cloud.grains[i].kind) + h.x[1]
        s = Grain()
        s.kind = 4
        out[i] += float(s.kind)

    cloud = Cloud()
    first = Grain()
    first.mass = 0.5
    cloud.first = first
    cloud.scale = 10.0
    cloud.grains = wp.zeros(3, dtype=Grain)
    cloud.weights = wp.zeros(3, dtype=float)
    out = wp.zeros(3, dtype=float)
    wp.launch(k, dim=3, inputs=[cloud, out])
    grains = cloud.grains.numpy()
    assert grains["mass"].tolist() == [10.0] * 3
    assert grains["kind"].tolist() == [0, 8, 0]
    assert grains["x"].tolist() == [[0.0, 3.0, -1.0]] * 3
    assert cloud.weights.numpy().tolist() == [0.5] * 3
    assert out.numpy().tolist() == [7.0, 15.0, 7.0]


def test_arrays_of_structs_from_instances(device):
    a = Grain()
    a.x, a.mass, a.kind = wp.vec3(1.0, 2.0, 3.0), 4.0, 5
    grains = wp.array([a, Grain(), a], dtype=Grain)

    @wp.kernel
    def k(grains: wp.array(dtype=Grain), out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = grains[i].x[1] + grains[i].mass + float(grains[i].kind)

    out = wp.zeros(3, dtype=float)
    wp.launch(k, dim=3, inputs=[grains, out])
    assert out.numpy().tolist() == [11.0, 0.0, 11.0]


def test_slices_and_shapes_of_arrays(device):
    @wp.func
    def total(row: wp.array(dtype=float)):
        s = float(0.0)
        for j in range(row.shape[0]):
            s += row[j]
        return s

    @wp.kernel
    def k(a: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
        i = wp.tid()
        row = a[i]
        out[i, 0] = total(row)
        out[i, 1] = total(row[1:3])
        out[i, 2] = float(len(row)) + row[-1]

    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = wp.zeros((3, 3), dtype=float)
    wp.launch(k, dim=3, inputs=[wp.array(a, dtype=float), out])
    want = np.stack([a.sum(1), a[:, 1:3].sum(1), 4 + a[:, -1]], axis=1)
    assert np.array_equal(out.numpy(), want)


def test_slices_of_both_dimensions(device):
    @wp.kernel
    def k(a: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
        i = wp.tid()
        column = a[1:, -1]
        part = a[0:2, 1:4:2]
        out[i, 0] = column[i] + float(column.shape[0])
        out[i, 1] = part[i, 1] + 100.0 * float(part.shape[1])

    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    out = wp.zeros((2, 2), dtype=float)
    wp.launch(k, dim=2, inputs=[wp.array(a, dtype=float), out])
    want = np.stack([a[1:, -1] + 2, a[0:2, 1:4:2][:, 1] + 200], axis=1)
    assert np.array_equal(out.numpy(), want)
