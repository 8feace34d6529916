"""Queries of meshes, hierarchies of boxes and hash grids from kernels, against plain Python."""

import numpy as np
import pytest

import weft as wp

SQUARE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=np.float32)
FACES = np.array([0, 1, 2, 0, 2, 3], dtype=np.int32)


def square():
    return wp.Mesh(wp.array(SQUARE, dtype=wp.vec3), wp.array(FACES, dtype=int))


def test_rays_with_results_as_a_struct_and_as_variables(device):
    @wp.kernel
    def k(mesh: wp.uint64, x: wp.array(dtype=wp.vec3), out: wp.array2d(dtype=float)):
        i = wp.tid()
        down = wp.vec3(0.0, 0.0, -1.0)
        q = wp.mesh_query_ray(mesh, x[i], down, 10.0)
        if q.result:
            out[i, 0] = q.t
            p = wp.mesh_eval_position(mesh, q.face, q.u, q.v)
            out[i, 1] = p[0]
        t = float(0.0)
        u = float(0.0)
        v = float(0.0)
        sign = float(0.0)
        n = wp.vec3()
        f = int(0)
        if wp.mesh_query_ray(mesh, x[i], down, 10.0, t, u, v, sign, n, f):
            out[i, 2] = t
            out[i, 3] = n[2]

    mesh = square()
    x = wp.array([[0.25, 0.5, 2.0], [3.0, 0.0, 1.0], [0.75, 0.5, 4.0]], dtype=wp.vec3)
    out = wp.zeros((3, 4), dtype=float)
    wp.launch(k, dim=3, inputs=[mesh.id, x, out])
    assert np.allclose(out.numpy(), [[2.0, 0.25, 2.0, 1.0], [0.0] * 4, [4.0, 0.75, 4.0, 1.0]], atol=1e-6)


def test_closest_points(device):
    @wp.kernel
    def k(mesh: wp.uint64, x: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        face = int(0)
        u = float(0.0)
        v = float(0.0)
        sign = float(0.0)
        if wp.mesh_query_point(mesh, x[i], 100.0, sign, face, u, v):
            out[i] = wp.mesh_eval_position(mesh, face, u, v)

    mesh = square()
    x = wp.array([[0.5, 0.5, 3.0], [2.0, 0.5, 0.0], [-1.0, -1.0, 1.0]], dtype=wp.vec3)
    out = wp.zeros(3, dtype=wp.vec3)
    wp.launch(k, dim=3, inputs=[mesh.id, x, out])
    assert np.allclose(out.numpy(), [[0.5, 0.5, 0.0], [1.0, 0.5, 0.0], [0.0, 0.0, 0.0]], atol=1e-6)


def test_neighbours_in_a_grid_by_both_kinds_of_loop(device):
    @wp.kernel
    def k(grid: wp.uint64, x: wp.array(dtype=wp.vec3), radius: float, counts: wp.array2d(dtype=int)):
        i = wp.tid()
        p = x[i]
        query = wp.hash_grid_query(grid, p, radius)
        index = int(0)
        n = int(0)
        while wp.hash_grid_query_next(query, index):
            if wp.length(x[index] - p) <= radius:
                n += 1
        m = int(0)
        for j in wp.hash_grid_query(grid, p, radius):
            if wp.length(x[j] - p) <= radius:
                m += 1
        counts[i, 0] = n
        counts[i, 1] = m

    points = np.random.default_rng(3).random((200, 3)).astype(np.float32)
    x = wp.array(points, dtype=wp.vec3)
    grid = wp.HashGrid(16, 16, 16)
    grid.build(x, 0.2)
    counts = wp.zeros((200, 2), dtype=int)
    wp.launch(k, dim=200, inputs=[grid.id, x, 0.2, counts])
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    want = (distance <= 0.2).sum(1)
    assert np.array_equal(counts.numpy()[:, 0], want) and np.array_equal(counts.numpy()[:, 1], want)


def test_numbers_of_points_of_a_grid_that_it_does_not_have_are_minus_one(device):
    @wp.kernel
    def numbers(grid: wp.uint64, out: wp.array(dtype=int)):
        i = wp.tid()
        out[i] = wp.hash_grid_point_id(grid, i - 1)

    grid = wp.HashGrid(4, 4, 4, device=device)
    out = wp.zeros(6, dtype=int, device=device)
    wp.launch(numbers, dim=6, inputs=[grid.id, out], device=device)
    assert out.numpy().tolist() == [-1] * 6
    grid.reserve(10)
    wp.launch(numbers, dim=6, inputs=[grid.id, out], device=device)
    assert out.numpy().tolist() == [-1] * 6
    grid.build(wp.array([[0.5, 0.5, 0.5], [1.5, 0.5, 0.5]], dtype=wp.vec3, device=device), 1.0)
    wp.launch(numbers, dim=6, inputs=[grid.id, out], device=device)
    assert out.numpy().tolist() == [-1, 0, 1, -1, -1, -1]


def test_boxes_that_overlap(device):
    @wp.kernel
    def k(bvh: wp.uint64, lower: wp.vec3, upper: wp.vec3, found: wp.array(dtype=int)):
        query = wp.bvh_query_aabb(bvh, lower, upper)
        index = int(0)
        while wp.bvh_query_next(query, index):
            found[index] = 1

    lows = np.random.default_rng(4).random((50, 3)).astype(np.float32)
    highs = lows + 0.1
    bvh = wp.Bvh(wp.array(lows, dtype=wp.vec3), wp.array(highs, dtype=wp.vec3))
    found = wp.zeros(50, dtype=int)
    wp.launch(k, dim=1, inputs=[bvh.id, wp.vec3(0.2, 0.2, 0.2), wp.vec3(0.6, 0.6, 0.6), found])
    want = np.all((lows <= 0.6) & (highs >= 0.2), axis=1)
    assert np.array_equal(found.numpy(), want.astype(int))


def test_boxes_near_points_and_segments(device):
    @wp.kernel
    def k(bvh: wp.uint64, a: wp.vec3, b: wp.vec3, radius: float, found: wp.array2d(dtype=int)):
        for index in wp.bvh_query_sphere(bvh, a, radius):
            found[0, index] = 1
        query = wp.bvh_query_capsule(bvh, a, b - a, radius)
        index = int(0)
        while wp.bvh_query_next(query, index, 1.0):
            found[1, index] = 1

    lows = np.random.default_rng(4).random((50, 3)).astype(np.float32)
    highs = lows + 0.1
    bvh = wp.Bvh(wp.array(lows, dtype=wp.vec3), wp.array(highs, dtype=wp.vec3))
    a, b, radius = np.array([0.2, 0.3, 0.4]), np.array([0.8, 0.7, 0.5]), 0.2
    found = wp.zeros((2, 50), dtype=int)
    wp.launch(k, dim=1, inputs=[bvh.id, wp.vec3(*a), wp.vec3(*b), radius, found])

    def distance(point):
        return np.linalg.norm(point - np.clip(point, lows, highs), axis=1)

    near = np.min([distance(a + t * (b - a)) for t in np.linspace(0.0, 1.0, 2001)], axis=0)
    assert np.array_equal(found.numpy()[0], (distance(a) <= radius).astype(int))
    sure = np.abs(near - radius) > 1e-3
    assert sure.sum() > 40 and np.array_equal(found.numpy()[1][sure], (near <= radius).astype(int)[sure])


def test_rays_through_boxes_end_where_their_steps_say(device):
    @wp.kernel
    def k(bvh: wp.uint64, start: wp.vec3, way: wp.vec3, far: float, found: wp.array2d(dtype=int)):
        reach = 2.0 * far
        short = wp.bvh_query_ray(bvh, start, way)
        index = int(0)
        while wp.bvh_query_next(short, index, max_dist=reach):
            found[0, index] = 1
        whole = wp.bvh_query_ray(bvh, start, way)
        while wp.bvh_query_next(whole, index):
            found[1, index] = 1

    lows = np.array([[float(x), 0.0, 0.0] for x in range(8)], dtype=np.float32)
    bvh = wp.Bvh(wp.array(lows, dtype=wp.vec3), wp.array(lows + 0.5, dtype=wp.vec3))
    found = wp.zeros((2, 8), dtype=int)
    wp.launch(k, dim=1, inputs=[bvh.id, wp.vec3(-1.0, 0.25, 0.25), wp.vec3(2.0, 0.0, 0.0), 1.1, found])
    assert found.numpy().tolist() == [[1, 1, 1, 1, 0, 0, 0, 0], [1] * 8]  # x = -1 + 2 * 2.2 = 3.4


def test_queries_are_arguments_of_functions(device):
    @wp.func
    def mark(query: wp.BvhQuery, found: wp.array(dtype=int)):
        index = int(0)
        while wp.bvh_query_next(query, index):
            found[index] = 1

    @wp.kernel
    def k(bvh: wp.uint64, start: wp.vec3, found: wp.array(dtype=int)):
        mark(wp.bvh_query_ray(bvh, start, wp.vec3(1.0, 0.0, 0.0)), found)

    lows = np.array([[0.0, 0.0, 0.0], [1.0, 5.0, 0.0], [2.0, 0.0, 0.0]], dtype=np.float32)
    bvh = wp.Bvh(wp.array(lows, dtype=wp.vec3), wp.array(lows + 0.5, dtype=wp.vec3))
    found = wp.zeros(3, dtype=int)
    wp.launch(k, dim=1, inputs=[bvh.id, wp.vec3(-1.0, 0.25, 0.25), found])
    assert found.numpy().tolist() == [1, 0, 1]


def test_the_length_of_a_capsule_is_said_and_known_where_it_begins():
    @wp.kernel
    def unsaid(bvh: wp.uint64, a: wp.vec3):
        for _ in wp.bvh_query_capsule(bvh, a, a, 1.0):
            pass

    @wp.kernel
    def late(bvh: wp.uint64, a: wp.vec3):
        query = wp.bvh_query_ray(bvh, a, a)
        index = int(0)
        far = 2.0
        while wp.bvh_query_next(query, index, far):
            pass

    for kernel, message in ((unsaid, "needs its length"), (late, "known where its query begins")):
        with pytest.raises(wp.WarpCodegenError, match=message):
            wp.launch(kernel, dim=1, inputs=[wp.uint64(0), wp.vec3()])


def test_ids_are_handles(device):
    @wp.kernel
    def k(mesh: wp.handle, out: wp.array(dtype=wp.vec3)):
        out[0] = wp.mesh_eval_position(mesh, 0, 1.0, 0.0)

    out = wp.zeros(1, dtype=wp.vec3)
    mesh = square()
    wp.launch(k, dim=1, inputs=[mesh.id, out])
    first = mesh.points.numpy()[mesh.indices.numpy()[0]]
    assert np.allclose(out.numpy()[0], first) and not wp.is_cubql_available()


def test_points_and_velocities_that_are_assigned_are_those_of_the_mesh(device):
    @wp.kernel
    def k(mesh: wp.uint64, out: wp.array(dtype=wp.vec3)):
        hit = wp.mesh_query_ray(mesh, wp.vec3(0.2, 0.3, -5.0), wp.vec3(0.0, 0.0, 1.0), 100.0)
        out[0] = wp.vec3(hit.t, 0.0, 0.0)
        out[1] = wp.mesh_eval_velocity(mesh, 0, 1.0, 0.0)

    def found(mesh):
        out = wp.zeros(2, dtype=wp.vec3)
        wp.launch(k, dim=1, inputs=[mesh.id, out])
        return out.numpy()[0, 0], out.numpy()[1, 2]

    still = wp.zeros(4, dtype=wp.vec3)
    mesh = wp.Mesh(wp.array(SQUARE, dtype=wp.vec3), wp.array(FACES, dtype=int), velocities=still)
    assert found(mesh) == (5.0, 0.0)
    mesh.points = moved = wp.array(SQUARE + [0.0, 0.0, 2.0], dtype=wp.vec3)
    mesh.velocities = wp.array(np.ones((4, 3)), dtype=wp.vec3)
    assert found(mesh) == (7.0, 1.0) and mesh.points is moved
    moved.assign(SQUARE + np.array([0.0, 0.0, 4.0], dtype=np.float32))
    mesh.refit()
    assert found(mesh) == (9.0, 1.0)


def test_a_look_at_the_faces_changes_no_mesh(device):
    @wp.kernel
    def k(mesh: wp.uint64, out: wp.array(dtype=float)):
        out[0] = mesh_distance(mesh)

    @wp.func
    def mesh_distance(mesh: wp.uint64):
        return wp.mesh_query_ray(mesh, wp.vec3(0.2, 0.7, -1.0), wp.vec3(0.0, 0.0, 1.0), 9.0).t

    mesh, out = square(), wp.zeros(1, dtype=float)
    for _ in range(2):
        assert np.array_equal(mesh.indices.numpy(), FACES)
        wp.launch(k, dim=1, inputs=[mesh.id, out])
        assert out.numpy()[0] == 1.0
        mesh.refit()
    mesh.indices.assign(np.array([0, 1, 2, 0, 1, 2], dtype=np.int32))
    mesh.rebuild()
    wp.launch(k, dim=1, inputs=[mesh.id, out])
    assert out.numpy()[0] == 0.0  # the face is gone
