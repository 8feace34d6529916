"""What kernels learn of meshes and hierarchies by their ids: arrays, all hits of a ray, the tree, groups."""

import numpy as np
import pytest

import weft as wp


@pytest.fixture
def ball(device):
    return wp.Mesh.of(wp.shapes.icosphere(1.0, 3))


def test_the_arrays_of_a_mesh_are_read_by_its_id(device):
    points = wp.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], dtype=wp.vec3)
    velocities = wp.array(np.arange(12).reshape(4, 3), dtype=wp.vec3)
    mesh = wp.Mesh(points, wp.array([0, 1, 2, 0, 2, 3], dtype=int), velocities)

    @wp.func
    def corner(mesh: wp.uint64, k: int):
        arrays = wp.mesh_get(mesh)
        return arrays.points[arrays.indices[k]]

    @wp.kernel
    def read(mesh: wp.uint64, at: wp.array(dtype=wp.vec3), moving: wp.array(dtype=wp.vec3), sizes: wp.array(dtype=int)):
        k = wp.tid()
        arrays = wp.mesh_get(mesh)
        at[k] = corner(mesh, k)
        moving[k] = arrays.velocities[arrays.indices[k]] + wp.vec3(arrays.points[arrays.indices[k]][0], 0.0, 0.0)
        sizes[0] = arrays.points.shape[0]
        sizes[1] = len(arrays.indices)
        sizes[2] = wp.mesh_face_count(mesh)

    at, moving, sizes = wp.zeros(6, dtype=wp.vec3), wp.zeros(6, dtype=wp.vec3), wp.zeros(3, dtype=int)
    wp.launch(read, dim=6, inputs=[mesh.id, at, moving, sizes])
    order = mesh.indices.numpy()
    np.testing.assert_array_equal(at.numpy(), points.numpy()[order])
    expected = velocities.numpy()[order]
    expected[:, 0] += points.numpy()[order][:, 0]
    np.testing.assert_array_equal(moving.numpy(), expected)
    np.testing.assert_array_equal(sizes.numpy(), [4, 6, 2])


@pytest.mark.parametrize("way", ["element", "component", "update", "atomic"])
def test_the_arrays_of_a_mesh_are_not_written_by_its_id(ball, way):
    @wp.kernel
    def element(mesh: wp.uint64):
        wp.mesh_get(mesh).points[0] = wp.vec3(0.0)

    @wp.kernel
    def component(mesh: wp.uint64):
        arrays = wp.mesh_get(mesh)
        arrays.points[0][1] = 0.0

    @wp.kernel
    def update(mesh: wp.uint64):
        arrays = wp.mesh_get(mesh)
        arrays.indices[0] += 1

    @wp.kernel
    def atomic(mesh: wp.uint64):
        arrays = wp.mesh_get(mesh)
        wp.atomic_add(arrays.indices, 0, 1)

    kernel = {"element": element, "component": component, "update": update, "atomic": atomic}[way]
    with pytest.raises(Exception, match="read-only: give the kernel the array itself"):
        wp.launch(kernel, dim=1, inputs=[ball.id])


def test_a_ray_hits_all_layers_in_order(device):
    triangle = np.array([[-1, -1, 0], [1, -1, 0], [0, 1, 0]], dtype=np.float32)
    heights = np.array([3.0, 1.0, 4.0, 1.5, 9.0])
    points = np.concatenate([triangle + [0, 0, h] for h in heights])
    mesh = wp.Mesh(wp.array(points, dtype=wp.vec3), wp.array(np.arange(15), dtype=int))

    @wp.kernel
    def ask(mesh: wp.uint64, most: float, t: wp.array(dtype=float), faces: wp.array(dtype=int), count: wp.array(dtype=int)):
        n = int(0)
        for hit in wp.mesh_query_ray_all(mesh, wp.vec3(0.0, 0.0, -1.0), wp.vec3(0.0, 0.0, 2.0), most):
            if hit.face == 3:
                continue
            t[n] = hit.t * hit.normal[2]
            faces[n] = hit.face
            n += 1
        count[0] = n

    t, faces, count = wp.zeros(5), wp.zeros(5, dtype=int), wp.zeros(1, dtype=int)
    wp.launch(ask, dim=1, inputs=[mesh.id, 4.0, t, faces, count])
    assert count.numpy()[0] == 3
    np.testing.assert_allclose(t.numpy()[:3], [1.0, 2.0, 2.5], rtol=1e-6)
    np.testing.assert_array_equal(faces.numpy()[:3], [1, 0, 2])


def test_the_tree_of_a_mesh_answers_as_the_mesh_does(ball):
    @wp.kernel
    def ask(mesh: wp.uint64, by_tree: wp.array(dtype=int), by_mesh: wp.array(dtype=int)):
        lower, upper = wp.vec3(0.2, 0.1, 0.3), wp.vec3(0.9, 0.8, 0.9)
        query = wp.bvh_query_aabb(wp.mesh_get_bvh(mesh), lower, upper)
        face = int(0)
        while wp.bvh_query_next(query, face):
            by_tree[face] = 1
        for f in wp.mesh_query_aabb(mesh, lower, upper):
            by_mesh[f] = 1

    faces = len(ball.indices) // 3
    by_tree, by_mesh = wp.zeros(faces, dtype=int), wp.zeros(faces, dtype=int)
    wp.launch(ask, dim=1, inputs=[ball.id, by_tree, by_mesh])
    corners = ball.points.numpy()[ball.indices.numpy().reshape(-1, 3)]
    inside = np.all((corners.min(axis=1) <= [0.9, 0.8, 0.9]) & (corners.max(axis=1) >= [0.2, 0.1, 0.3]), axis=1)
    assert 0 < inside.sum() < faces
    np.testing.assert_array_equal(by_tree.numpy(), inside)
    np.testing.assert_array_equal(by_mesh.numpy(), inside)


@wp.kernel
def in_group(bvh: wp.uint64, group: int, found: wp.array2d(dtype=int)):
    root = wp.bvh_get_group_root(bvh, group)
    for i in wp.bvh_query_aabb(bvh, wp.vec3(0.0), wp.vec3(0.6), root):
        found[0, i] = 1
    index = int(0)
    query = wp.bvh_query_ray(bvh, wp.vec3(-1.0), wp.vec3(1.0, 1.0, 1.0), root)
    while wp.bvh_query_next(query, index):
        found[1, index] = 1
    for k in wp.bvh_query_sphere(bvh, wp.vec3(0.5), 0.2, root=root):
        found[2, k] = 1
    whole = wp.bvh_query_aabb(bvh, wp.vec3(0.0), wp.vec3(0.6), -1)
    while wp.bvh_query_next(whole, index):
        found[3, index] = 1


@pytest.mark.parametrize("group", [0, 1, 2, 5, -7])
def test_queries_below_the_root_of_a_group_find_its_boxes_alone(device, group):
    random = np.random.default_rng(8)
    lowers = random.uniform(0, 1, (300, 3)).astype(np.float32)
    uppers = lowers + random.uniform(0, 0.1, (300, 3)).astype(np.float32)
    groups = random.choice([0, 1, 5, -7], 300)
    arrays = [wp.array(a, dtype=wp.vec3) for a in (lowers, uppers)]
    bvh = wp.Bvh(*arrays, groups=wp.array(groups, dtype=int))
    found = wp.zeros((4, 300), dtype=int)
    wp.launch(in_group, dim=1, inputs=[bvh.id, group, found])
    in_box = np.all(lowers <= 0.6, axis=1)
    # The ray is the diagonal: it enters where the largest lower bound is no more than the least upper one.
    on_ray = lowers.max(axis=1) <= uppers.min(axis=1)
    nearest = np.clip(0.5, lowers, uppers)
    in_sphere = np.linalg.norm(nearest - 0.5, axis=1) <= 0.2
    mine = groups == group
    assert mine.any() == (group != 2)
    for row, expected in zip(found.numpy(), (in_box & mine, on_ray & mine, in_sphere & mine, in_box)):
        np.testing.assert_array_equal(row, expected)


def test_meshes_have_no_groups_and_queries_say_so(ball):
    @wp.kernel
    def ask(mesh: wp.uint64, root: int, out: wp.array(dtype=int)):
        out[0] = wp.mesh_query_ray(mesh, wp.vec3(0.0), wp.vec3(1.0), 10.0, root).face

    with pytest.raises(Exception, match="meshes have no groups of triangles"):
        wp.launch(ask, dim=1, inputs=[ball.id, 0, wp.zeros(1, dtype=int)])
    with pytest.raises(RuntimeError, match="make a mesh of each group"):
        wp.Mesh(ball.points, ball.indices, groups=wp.zeros(len(ball.indices) // 3, dtype=int))


def test_trees_and_grids_tell_what_they_left_out(device):
    lowers = wp.array([[0, 0, 0], [2, 2, 2], [np.nan, 0, 0], [5, 5, 5]], dtype=wp.vec3)
    uppers = wp.array([[1, 1, 1], [3, 3, 3], [1, 1, 1], [4, 6, 6]], dtype=wp.vec3)
    bvh = wp.Bvh(lowers, uppers, curve_bits=60)
    assert bvh.ignored() == 2 and 1 <= bvh.depth() <= 4
    grid = wp.HashGrid(8, 8, 8, deterministic=True)
    grid.build(wp.array([[0, 0, 0], [np.inf, 0, 0], [1, 1, 1]], dtype=wp.vec3), 0.5)
    assert grid.ignored() == 1
    with pytest.raises(wp.Error, match="30 or 60|curve"):
        wp.Bvh(lowers, uppers, curve_bits=31)
