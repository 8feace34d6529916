"""The programs of the announcement, in its order."""

import numpy as np
import pytest

import weft as wp


def quad(device):
    """A square in the plane y = 0, of two triangles."""
    points = wp.array([[-1, 0, -1], [1, 0, -1], [1, 0, 1], [-1, 0, 1]], dtype=wp.vec3, device=device)
    return wp.Mesh(points, wp.array([0, 1, 2, 0, 2, 3], dtype=int, device=device))


def test_initialization():
    import weft as wp

    assert wp.init() is None


def test_launching_kernels_integrate(gpu):
    @wp.kernel
    def integrate(
        x: wp.array(dtype=wp.vec3),
        v: wp.array(dtype=wp.vec3),
        f: wp.array(dtype=wp.vec3),
        w: wp.array(dtype=float),
        gravity: wp.vec3,
        dt: float,
    ):
        tid = wp.tid()

        x0 = x[tid]
        v0 = v[tid]

        f_ext = f[tid]
        inv_mass = w[tid]

        v1 = v0 + (f_ext * inv_mass + gravity) * dt
        x1 = x0 + v1 * dt

        x[tid] = x1
        v[tid] = v1

    n = 64
    numbers = np.random.default_rng(1)
    x0, v0, f0 = (numbers.normal(size=(n, 3)).astype(np.float32) for _ in range(3))
    w0 = numbers.uniform(size=n).astype(np.float32)
    x, v, f = (wp.array(a, dtype=wp.vec3, device=gpu) for a in (x0, v0, f0))
    w = wp.array(w0, dtype=float, device=gpu)
    wp.launch(integrate, dim=n, inputs=[x, v, f, w, wp.vec3(0.0, -9.8, 0.0), 0.01], device=gpu)
    v1 = v0 + (f0 * w0[:, None] + np.array([0.0, -9.8, 0.0])) * 0.01
    assert np.allclose(v.numpy(), v1, atol=1e-5)
    assert np.allclose(x.numpy(), x0 + v1 * 0.01, atol=1e-5)


def test_launching_kernels_launch(gpu):
    @wp.kernel
    def simple_kernel(a: wp.array(dtype=wp.vec3), b: wp.array(dtype=wp.vec3), c: wp.array(dtype=float)):
        tid = wp.tid()
        c[tid] = wp.dot(a[tid], b[tid])

    a = wp.full(1024, wp.vec3(1.0, 2.0, 3.0), device=gpu)
    b = wp.ones(1024, dtype=wp.vec3, device=gpu)
    c = wp.zeros(1024, dtype=float, device=gpu)
    wp.launch(
        kernel=simple_kernel,
        dim=1024,
        inputs=[a, b, c],
        device=gpu,
    )
    assert np.all(c.numpy() == 6.0)


def test_memory_model_constructors(gpu):
    n = 16
    array = np.random.default_rng(2).normal(size=(n, 3)).astype(np.float32)

    v = wp.empty(length=n, dtype=wp.vec3, device=gpu)
    assert v.shape == (n,) and v.dtype is wp.vec3

    q = wp.zeros(length=n, dtype=wp.quat, device=gpu)
    assert q.shape == (n,) and not q.numpy().any()

    v = wp.from_numpy(array, dtype=wp.vec3, device=gpu)
    assert v.shape == (n,) and np.array_equal(v.numpy(), array)


def test_memory_model_numpy(gpu):
    device_array = wp.ones(4, dtype=float, device=gpu)

    view = device_array.numpy()
    assert isinstance(view, np.ndarray) and view.tolist() == [1.0] * 4


def test_features_meshes(gpu):
    @wp.kernel
    def project(
        positions: wp.array(dtype=wp.vec3),
        mesh: wp.uint64,
        output_pos: wp.array(dtype=wp.vec3),
        output_face: wp.array(dtype=int),
    ):
        tid = wp.tid()

        x = wp.load(positions, tid)

        face_index = int(0)
        face_u = float(0.0)
        face_v = float(0.0)
        sign = float(0.0)

        max_dist = 2.0

        if wp.mesh_query_point(mesh, x, max_dist, sign, face_index, face_u, face_v):
            p = wp.mesh_eval_position(mesh, face_index, face_u, face_v)

            output_pos[tid] = p
            output_face[tid] = face_index

    mesh = quad(gpu)
    positions = wp.array([[0.5, 1.0, -0.25], [-0.5, -1.0, 0.25], [0.0, 9.0, 0.0]], dtype=wp.vec3, device=gpu)
    output_pos = wp.zeros(3, dtype=wp.vec3, device=gpu)
    output_face = wp.full(3, -1, dtype=int, device=gpu)
    wp.launch(project, dim=3, inputs=[positions, mesh.id, output_pos, output_face], device=gpu)
    assert np.allclose(output_pos.numpy(), [[0.5, 0.0, -0.25], [-0.5, 0.0, 0.25], [0.0, 0.0, 0.0]], atol=1e-5)
    assert output_face.numpy().tolist() == [0, 1, -1]


def test_features_sparse_volumes(gpu):
    x, y, z = np.meshgrid(*[np.arange(8.0)] * 3, indexing="ij")
    vol = wp.Volume.load_from_numpy((x + 2 * y + 3 * z).astype(np.float32), voxel_size=0.5, device=gpu)

    @wp.kernel
    def calls(vol: wp.uint64, values: wp.array(dtype=float), places: wp.array(dtype=wp.vec3)):
        xyz = wp.vec3(0.25, 1.0, 1.5)
        uvw = wp.vec3(0.5, 2.0, 3.0)
        ijk = wp.vec3i(1, 2, 3)
        mode = wp.Volume.LINEAR

        values[0] = wp.volume_sample_world(vol, xyz, mode)
        values[1] = wp.volume_sample_local(vol, uvw, mode)
        values[2] = wp.volume_lookup(vol, ijk)
        places[0] = wp.volume_transform(vol, uvw)
        places[1] = wp.volume_transform_inv(vol, xyz)

    values, places = wp.zeros(3, dtype=float, device=gpu), wp.zeros(2, dtype=wp.vec3, device=gpu)
    wp.launch(calls, dim=1, inputs=[vol.id, values, places], device=gpu)
    assert values.numpy().tolist() == [13.5, 13.5, 14.0]
    assert np.allclose(places.numpy(), [[0.25, 1.0, 1.5], [0.5, 2.0, 3.0]])


def test_features_hash_grids(gpu):
    points = np.random.default_rng(3).uniform(0.0, 4.0, size=(256, 3)).astype(np.float32)
    p = wp.array(points, dtype=wp.vec3, device=gpu)
    r = 0.5

    grid = wp.HashGrid(dim_x=128, dim_y=128, dim_z=128, device=gpu)
    grid.build(points=p, radius=r)

    @wp.kernel
    def sum(grid: wp.uint64, points: wp.array(dtype=wp.vec3), output: wp.array(dtype=wp.vec3), radius: float):
        tid = wp.tid()

        p = points[tid]

        query = wp.hash_grid_query(grid, p, radius)
        index = int(0)

        sum = wp.vec3()

        while wp.hash_grid_query_next(query, index):
            neighbor = points[index]

            dist = wp.length(p - neighbor)
            if dist <= radius:
                sum += neighbor

        output[tid] = sum

    output = wp.zeros(256, dtype=wp.vec3, device=gpu)
    wp.launch(sum, dim=256, inputs=[grid.id, p, output, r], device=gpu)
    near = np.linalg.norm(points[:, None] - points[None], axis=2) <= r
    assert np.allclose(output.numpy(), near.astype(np.float32) @ points, atol=1e-3)


def test_differentiability(gpu, capsys):
    @wp.kernel
    def compute1(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        b[wp.tid()] = 2.0 * a[wp.tid()]

    @wp.kernel
    def compute2(c: wp.array(dtype=float), d: wp.array(dtype=float)):
        d[wp.tid()] = c[wp.tid()] * c[wp.tid()]

    @wp.kernel
    def loss(d: wp.array(dtype=float), l: wp.array(dtype=float)):
        wp.atomic_add(l, 0, d[wp.tid()])

    a = wp.array([1.0, 2.0, 3.0], dtype=float, device=gpu, requires_grad=True)
    b = c = wp.zeros(3, dtype=float, device=gpu, requires_grad=True)
    d = wp.zeros(3, dtype=float, device=gpu, requires_grad=True)
    l = wp.zeros(1, dtype=float, device=gpu, requires_grad=True)

    tape = wp.Tape()

    with tape:
        wp.launch(kernel=compute1, dim=3, inputs=[a, b], device=gpu)
        wp.launch(kernel=compute2, dim=3, inputs=[c, d], device=gpu)
        wp.launch(kernel=loss, dim=3, inputs=[d, l], device=gpu)

    tape.backward(loss=l)

    print(tape.gradients[a])
    assert capsys.readouterr().out == "[ 8. 16. 24.]\n"
