"""Volumes and surfaces: values of a known field in kernels, files, leaves made again, marching cubes."""

import numpy as np
import pytest

import weft as wp


def field(voxels):
    """x * y * z, the field of the tests."""
    return np.prod(voxels.astype(np.float64), axis=-1)


def block(n=10):
    """The values of the field on [-n, n] cubed."""
    along = np.arange(-n, n + 1)
    return field(np.stack(np.meshgrid(along, along, along, indexing="ij"), axis=-1)).astype(np.float32)


@pytest.fixture
def volume():
    return wp.Volume.load_from_numpy(block(), min_world=(-10, -10, -10), voxel_size=1.0, bg_value=10.0)


@wp.kernel
def look(volume: wp.uint64, points: wp.array(dtype=wp.vec3), closest: wp.array(dtype=float), linear: wp.array(dtype=float)):
    i = wp.tid()
    p = points[i]
    closest[i] = wp.volume_sample_f(volume, p, wp.Volume.CLOSEST)
    linear[i] = wp.volume_sample(volume, p, wp.Volume.LINEAR, dtype=float)


def test_samples_are_those_of_the_field(volume):
    points = np.random.default_rng(1).uniform(-9.4, 9.4, (500, 3)).astype(np.float32)
    closest, linear = wp.zeros(500), wp.zeros(500)
    wp.launch(look, dim=500, inputs=[volume.id, wp.array(points, dtype=wp.vec3), closest, linear])
    rounded = np.sign(points) * np.floor(np.abs(points) + 0.5)
    np.testing.assert_array_equal(closest.numpy(), field(rounded))
    np.testing.assert_allclose(linear.numpy(), field(points), atol=2e-3)


def test_voxels_outside_have_the_background(volume):
    @wp.kernel
    def ask(volume: wp.uint64, out: wp.array(dtype=float), numbers: wp.array(dtype=int)):
        out[0] = wp.volume_lookup_f(volume, 3, -4, 5)
        out[1] = wp.volume_lookup_f(volume, 300, -4, 5)
        out[2] = wp.volume_lookup(volume, -10, 10, 9, dtype=wp.float32)
        numbers[0] = wp.volume_lookup_index(volume, 300, 0, 0)
        numbers[1] = wp.volume_lookup_index(volume, 3, -4, 5)

    out, numbers = wp.zeros(3), wp.zeros(2, dtype=int)
    wp.launch(ask, dim=1, inputs=[volume.id, out, numbers])
    np.testing.assert_array_equal(out.numpy(), [-60, 10, -900])
    assert numbers.numpy()[0] == -1
    np.testing.assert_array_equal(volume.get_voxels().numpy()[numbers.numpy()[1]], [3, -4, 5])


def test_slopes_are_those_of_the_field(volume):
    @wp.kernel
    def slope(volume: wp.uint64, p: wp.array(dtype=wp.vec3), value: wp.array(dtype=float), out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        g = wp.vec3()
        value[i] = wp.volume_sample_grad_f(volume, p[i], wp.Volume.LINEAR, g)
        out[i] = g

    points = np.random.default_rng(2).uniform(-9, 9, (200, 3)).astype(np.float32)
    value, out = wp.zeros(200), wp.zeros(200, dtype=wp.vec3)
    wp.launch(slope, dim=200, inputs=[volume.id, wp.array(points, dtype=wp.vec3), value, out])
    x, y, z = points.T
    np.testing.assert_allclose(out.numpy(), np.stack([y * z, x * z, x * y], axis=-1), atol=2e-2)
    np.testing.assert_allclose(value.numpy(), field(points), atol=2e-3)


def test_a_sample_has_a_gradient_by_its_point(volume):
    @wp.kernel
    def total(volume: wp.uint64, p: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
        wp.atomic_add(loss, 0, wp.volume_sample_f(volume, p[wp.tid()], wp.Volume.LINEAR))

    points = wp.array(np.array([[1.25, 2.5, -3.25], [4.5, -5.75, 6.1]]), dtype=wp.vec3, requires_grad=True)
    loss = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(total, dim=2, inputs=[volume.id, points, loss])
    tape.backward(loss)
    x, y, z = points.numpy().T
    np.testing.assert_allclose(points.grad.numpy(), np.stack([y * z, x * z, x * y], axis=-1), rtol=1e-4)


def test_world_and_index_space_are_the_transform_apart():
    @wp.kernel
    def move(volume: wp.uint64, p: wp.vec3, out: wp.array(dtype=wp.vec3)):
        out[0] = wp.volume_index_to_world(volume, p)
        out[1] = wp.volume_world_to_index(volume, p)
        out[2] = wp.volume_index_to_world_dir(volume, p)
        out[3] = wp.volume_world_to_index_dir(volume, p)
        out[4] = wp.volume_transform_inv(volume, wp.volume_transform(volume, p))

    tiles = wp.array([[0, 0, 0]], dtype=wp.int32)
    made = wp.Volume.allocate_by_tiles(tiles, voxel_size=(0.5, 1.0, 2.0), bg_value=0.0, translation=(1.0, 2.0, 3.0))
    out = wp.zeros(5, dtype=wp.vec3)
    wp.launch(move, dim=1, inputs=[made.id, wp.vec3(4.0, 5.0, 6.0), out])
    np.testing.assert_allclose(
        out.numpy(), [[3, 7, 15], [6, 3, 1.5], [2, 5, 12], [8, 5, 3], [4, 5, 6]], rtol=1e-6
    )
    assert made.get_voxel_size() == (0.5, 1.0, 2.0)
    assert tuple(made.get_grid_info().translation) == (1.0, 2.0, 3.0)


@pytest.mark.parametrize("codec", ["none", "zip"])
def test_a_file_has_the_same_volume(volume, tmp_path, codec):
    path = tmp_path / "field.nvdb"
    volume.save_to_nvdb(path, codec)
    for source in (path, path.read_bytes(), open(path, "rb")):
        loaded = wp.Volume.load_from_nvdb(source)
        assert loaded.get_grid_info()[4:] == volume.get_grid_info()[4:]
        np.testing.assert_array_equal(loaded.native.values().numpy(), volume.native.values().numpy())
    again = wp.Volume(volume.array())
    np.testing.assert_array_equal(again.get_tiles().numpy(), volume.get_tiles().numpy())
    with pytest.raises(RuntimeError, match="truncated"):
        wp.Volume.load_from_nvdb(path.read_bytes()[:200])
    with pytest.raises(RuntimeError, match="no.such.nvdb: the file cannot be read"):
        wp.Volume.load_from_nvdb(str(tmp_path / "no.such.nvdb"))


def test_types_of_values_follow_the_background():
    tiles = wp.array([[0, 0, 0], [9, 0, 0], [1, 1, 1]], dtype=wp.int32)
    for background, dtype in ((1, wp.int32), (1.0, wp.float32), ((1.0, 2.0, 3.0), wp.vec3)):
        made = wp.Volume.allocate_by_tiles(tiles, 1.0, background)
        assert made.dtype is dtype
        assert made.get_tile_count() == 2
        assert made.get_voxel_count() == 1024
    double = wp.Volume.allocate_by_voxels(tiles, 1.0, bg_value=2.5, dtype=wp.float64)
    assert double.dtype is wp.float64
    world = wp.Volume.allocate_by_tiles(wp.array([[0.9, 0.9, 0.9]], dtype=wp.vec3), 0.1, 0.0)
    np.testing.assert_array_equal(world.get_tiles().numpy(), [[8, 8, 8]])
    with pytest.raises(RuntimeError, match="index grids are made once"):
        wp.Volume.allocate_by_voxels(tiles, 1.0, rebuildable=True)
    with pytest.raises(ValueError, match="voxel_size must be positive"):
        wp.Volume.allocate_by_tiles(tiles, -1.0)


def test_vectors_and_integers_are_sampled():
    @wp.kernel
    def ask(vectors: wp.uint64, numbers: wp.uint64, out: wp.array(dtype=wp.vec3), n: wp.array(dtype=int)):
        out[0] = wp.volume_sample_v(vectors, wp.vec3(0.5, 0.0, 0.0), wp.Volume.LINEAR)
        out[1] = wp.volume_lookup_v(vectors, 100, 0, 0)
        n[0] = wp.volume_sample_i(numbers, wp.vec3(0.4, 0.6, 0.0))
        n[1] = wp.volume_lookup_i(numbers, 0, 0, 0)

    values = np.zeros((8, 8, 8, 3), dtype=np.float32)
    values[1, 0, 0] = (2, 4, 6)
    vectors = wp.Volume.load_from_numpy(values, bg_value=(1.0, 1.0, 1.0))
    numbers = wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0, bg_value=7)
    out, n = wp.zeros(2, dtype=wp.vec3), wp.zeros(2, dtype=int)
    wp.launch(ask, dim=1, inputs=[vectors.id, numbers.id, out, n])
    np.testing.assert_array_equal(out.numpy(), [[1, 2, 3], [1, 1, 1]])
    np.testing.assert_array_equal(n.numpy(), [7, 7])


def test_a_volume_is_rebuilt_where_it_is():
    tiles = wp.array([[0, 0, 0]], dtype=wp.vec3i)
    made = wp.Volume.allocate_by_tiles(tiles, 1.0, 3.0, rebuildable=True, max_tiles=4, max_lower_nodes=4, max_upper_nodes=2)
    before = made.id
    made.rebuild(wp.array([[80, 0, 0], [160, 0, 0], [80, 0, 1]], dtype=wp.vec3i))
    assert made.id == before
    assert {tuple(t) for t in made.get_tiles().numpy()} == {(80, 0, 0), (160, 0, 0)}
    assert made.get_rebuild_info().max_leaf_node_count == 4
    with pytest.raises(RuntimeError, match="leaves more than fit"):
        made.rebuild(wp.array([[8 * k, 0, 0] for k in range(6)], dtype=wp.vec3i))
    with pytest.raises(RuntimeError, match="rebuildable=True"):
        wp.Volume.allocate_by_tiles(tiles, 1.0).rebuild(tiles)


def test_what_kernels_may_not_do_with_volumes_is_refused(volume):
    @wp.kernel
    def write(volume: wp.uint64):
        wp.volume_store_f(volume, 0, 0, 0, wp.vec3(1.0))

    @wp.kernel
    def untyped(volume: wp.uint64, out: wp.array(dtype=float)):
        out[0] = wp.volume_lookup(volume, 0, 0, 0)

    with pytest.raises(Exception, match="Couldn't find function overload for 'volume_store_f'"):
        wp.launch(write, dim=1, inputs=[volume.id])
    with pytest.raises(Exception, match="needs dtype"):
        wp.launch(untyped, dim=1, inputs=[volume.id, wp.zeros(1)])


def test_marching_cubes_find_a_ball():
    n = 33
    along = np.linspace(-1, 1, n)
    distance = np.sqrt(sum(c**2 for c in np.meshgrid(along, along, along, indexing="ij"))) - 0.6
    values = wp.array(distance.astype(np.float32), dtype=float)
    cubes = wp.MarchingCubes(
        n, n, n, domain_bounds_lower_corner=(-1.0, -1.0, -1.0), domain_bounds_upper_corner=(1.0, 1.0, 1.0)
    )
    cubes.surface(values, 0.0)
    points, triangles = cubes.verts.numpy(), cubes.indices.numpy().reshape(-1, 3)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 0.6, atol=2e-3)
    a, b, c = (points[triangles[:, k]].astype(np.float64) for k in range(3))
    inside = np.sum(a * np.cross(b, c)) / 6
    np.testing.assert_allclose(inside, 4 / 3 * np.pi * 0.6**3, rtol=0.01)
    sides = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    assert {tuple(s) for s in sides} == {tuple(s[::-1]) for s in sides}
    plain, _ = wp.MarchingCubes.extract_surface_marching_cubes(values, 0.0)
    np.testing.assert_allclose(plain.numpy(), (points + 1) * (n - 1) / 2, atol=1e-4)
    with pytest.raises(ValueError, match="the field has the shape"):
        cubes.surface(wp.zeros((3, 3, 3)), 0.0)


def test_a_volumes_surface_lies_in_world_space():
    along = np.arange(-12, 13)
    distance = np.sqrt(sum(c**2.0 for c in np.meshgrid(along, along, along, indexing="ij"))) - 8
    made = wp.Volume.load_from_numpy(distance.astype(np.float32), (-1.2, -1.2, -1.2), 0.1, bg_value=4.0)
    points, indices = made.to_mesh(0.0)
    np.testing.assert_allclose(np.linalg.norm(points.numpy(), axis=1), 0.8, atol=2e-3)
    assert indices.shape[0] % 3 == 0
