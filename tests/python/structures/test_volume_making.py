"""Volumes of meshes, spheres, points, blocks and numbered voxels, and what volumes say of themselves."""

import numpy as np
import pytest

import weft as wp


@wp.kernel
def sample_at(volume: wp.uint64, points: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = wp.volume_sample_f(volume, wp.volume_world_to_index(volume, points[i]), wp.Volume.LINEAR)


def samples(volume, points):
    out = wp.zeros(len(points))
    wp.launch(sample_at, dim=len(points), inputs=[volume.id, wp.array(points, dtype=wp.vec3), out])
    return out.numpy()


def directions(n, seed=1):
    found = np.random.default_rng(seed).normal(size=(n, 3))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("sign", ["normal", "majority", "winding"])
def test_the_level_set_of_a_mesh_is_the_distance_from_it(sign):
    mesh = wp.Mesh.of(wp.shapes.icosphere(1.0, 4), support_winding_number=True)
    volume = wp.Volume.from_mesh(mesh, voxel_size=0.05, half_width=4.0, sign=sign, name="ball")
    assert volume.get_grid_info().name == "ball" and volume.dtype is wp.float32
    lengths = np.random.default_rng(2).uniform(0.86, 1.14, 200)
    found = samples(volume, directions(200) * lengths[:, None])
    np.testing.assert_allclose(found, lengths - 1, atol=4e-3)
    np.testing.assert_allclose(samples(volume, [[0, 0, 0], [3, 0, 0]]), [-0.2, 0.2], atol=1e-6)


def test_the_level_set_of_a_mesh_without_signs_is_not_negative():
    volume = wp.Volume.from_mesh(wp.Mesh.of(wp.shapes.grid(2.0, 2.0)), voxel_size=0.05, sign="none")
    found = samples(volume, [[0.1, -0.075, 0.2], [0.1, 0.05, 0.2]])
    np.testing.assert_allclose(found, [0.075, 0.05], atol=1e-5)
    with pytest.raises(ValueError, match="sign"):
        wp.Volume.from_mesh(wp.Mesh.of(wp.shapes.box()), sign="other")
    with pytest.raises(wp.Error):
        wp.Volume.from_mesh(wp.Mesh.of(wp.shapes.box()), voxel_size=0.0)


def test_the_level_set_of_spheres_is_that_of_their_union():
    centers, radii = np.array([[0, 0, 0], [1.5, 0, 0]]), np.array([1.0, 0.75])
    arrays = wp.array(centers, dtype=wp.vec3), wp.array(radii, dtype=float)
    volume = wp.Volume.from_spheres(*arrays, voxel_size=0.05)
    points = directions(300, 3) * np.random.default_rng(4).uniform(0.9, 1.1, (300, 1))
    expected = np.min(np.linalg.norm(points[:, None] - centers, axis=2) - radii, axis=1)
    near = np.abs(expected) < 0.1
    assert near.sum() > 100
    np.testing.assert_allclose(samples(volume, points)[near], expected[near], atol=5e-3)


def test_the_density_of_points_adds_up_to_their_number():
    points = np.random.default_rng(5).uniform(-1, 1, (50, 3))
    volume = wp.Volume.from_points(wp.array(points, dtype=wp.vec3), radius=0.3, voxel_size=0.1)
    total = volume.native.values().numpy().sum() * 0.1**3
    np.testing.assert_allclose(total, 50, rtol=2e-2)
    expected = [np.sum(kernel_of(np.linalg.norm(points - p, axis=1), 0.3)) for p in ([0, 0, 0], [0.5, -0.2, 0.1])]
    np.testing.assert_allclose(samples(volume, [[0, 0, 0], [0.5, -0.2, 0.1]]), expected, rtol=1e-4)


def kernel_of(d, radius):
    return np.where(d < radius, 315 / (64 * np.pi) * (1 - (d / radius) ** 2) ** 3 / radius**3, 0.0)


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64, wp.int32, wp.vec3])
def test_a_volume_of_a_block_has_its_values(dtype):
    shape = (5, 9, 12) + ((3,) if dtype is wp.vec3 else ())
    values = np.random.default_rng(6).integers(0, 4, shape)
    block = wp.array(values, dtype=dtype)
    background = (0, 0, 0) if dtype is wp.vec3 else 0
    volume = wp.Volume.from_dense(block, min=(-3, 10, 7), bg_value=background, voxel_size=0.5)
    assert volume.dtype is dtype and volume.get_voxel_size() == (0.5, 0.5, 0.5)
    active = np.any(values != 0, axis=-1) if dtype is wp.vec3 else values != 0
    assert volume.get_active_stats().voxel_count == active.sum()

    @wp.kernel
    def look(volume: wp.uint64, out: wp.array(dtype=dtype, ndim=3)):
        i, j, k = wp.tid()
        out[i, j, k] = wp.volume_lookup(volume, i - 3, j + 10, k + 7, dtype=dtype)

    out = wp.zeros((5, 9, 12), dtype=dtype)
    wp.launch(look, dim=(5, 9, 12), inputs=[volume.id, out])
    np.testing.assert_array_equal(out.numpy(), values)


SCATTERED = np.array([[0, 0, 0], [1, 2, 3], [7, 7, 7], [8, 0, 0], [-1, -5, 300], [5000, -1, 4], [1, 2, 3]], dtype=np.int32)


@wp.kernel
def numbers_of(volume: wp.uint64, voxels: wp.array(dtype=wp.vec3i), out: wp.array(dtype=int)):
    i = wp.tid()
    v = voxels[i]
    out[i] = wp.volume_lookup_index(volume, v[0], v[1], v[2])


def numbers(volume, voxels):
    out = wp.zeros(len(voxels), dtype=int)
    wp.launch(numbers_of, dim=len(voxels), inputs=[volume.id, wp.array(voxels, dtype=wp.vec3i), out])
    return out.numpy()


def test_an_index_grid_of_voxels_numbers_these():
    volume = wp.Volume.allocate_by_voxels(wp.array(SCATTERED, dtype=wp.vec3i), voxel_size=0.1, translation=(1, 2, 3))
    assert volume.is_index and volume.dtype is None and volume.get_grid_info().type_str == "OnIndex"
    assert volume.get_voxel_count() == 6
    found = volume.get_voxels().numpy()
    assert sorted(map(tuple, found)) == sorted(set(map(tuple, SCATTERED)))
    np.testing.assert_array_equal(numbers(volume, found), np.arange(6))
    np.testing.assert_array_equal(numbers(volume, [[1, 2, 4], [9, 9, 9], [900, 0, 0]]), -1)
    np.testing.assert_allclose(volume.get_grid_info().translation, [1, 2, 3])


def test_an_index_grid_of_tiles_numbers_all_voxels_of_its_leaves():
    tiles = wp.array([[0, 0, 0], [3, 3, 3], [-1, 20, 100]], dtype=wp.vec3i)
    volume = wp.Volume.allocate_by_tiles(tiles, voxel_size=1.0, bg_value=None)
    assert volume.is_index and volume.get_tile_count() == 2 and volume.get_voxel_count() == 1024
    voxels = volume.get_voxels().numpy()
    np.testing.assert_array_equal(numbers(volume, voxels), np.arange(1024))
    with pytest.raises(RuntimeError, match="made once"):
        wp.Volume.allocate_by_tiles(tiles, voxel_size=1.0, bg_value=None, rebuildable=True)


def test_values_beside_an_index_grid_are_sampled_and_differentiated():
    along = np.arange(8)
    voxels = np.stack(np.meshgrid(along, along, along, indexing="ij"), axis=-1).reshape(-1, 3)
    volume = wp.Volume.allocate_by_voxels(wp.array(voxels, dtype=wp.vec3i), voxel_size=1.0)
    order = volume.get_voxels().numpy().astype(np.float64)
    field = order @ [1.0, 10.0, 100.0] + order[:, 0] * order[:, 1]

    @wp.kernel
    def sample(
        volume: wp.uint64, p: wp.array(dtype=wp.vec3), how: int, values: wp.array(dtype=float), out: wp.array(dtype=float),
        vectors: wp.array(dtype=wp.vec3), turned: wp.array(dtype=wp.vec3),
    ):  # fmt: skip
        i = wp.tid()
        out[i] = wp.volume_sample_index(volume, p[i], how, values, -1.0)
        turned[i] = wp.volume_sample_index(volume, p[i], wp.Volume.CLOSEST, vectors, wp.vec3(9.0, 8.0, 7.0))

    points = np.array([[1.25, 2.5, 3.75], [6.5, 0.1, 2.0], [-5, 0, 0]])
    p = wp.array(points, dtype=wp.vec3, requires_grad=True)
    values = wp.array(field, dtype=float, requires_grad=True)
    vectors, out, turned = wp.array(order, dtype=wp.vec3), wp.zeros(3, requires_grad=True), wp.zeros(3, dtype=wp.vec3)
    tape = wp.Tape()
    with tape:
        wp.launch(sample, dim=3, inputs=[volume.id, p, wp.Volume.LINEAR, values, out, vectors, turned])
    x, y, z = points[:2].T
    np.testing.assert_allclose(out.numpy(), [*(x + 10 * y + 100 * z + x * y), -1], rtol=1e-5)
    np.testing.assert_array_equal(turned.numpy(), [[1, 3, 4], [7, 0, 2], [9, 8, 7]])
    tape.backward(grads={out: wp.ones(3)})
    np.testing.assert_allclose(p.grad.numpy()[:2], np.stack([1 + y, 10 + x, 100 + 0 * z], axis=-1), rtol=1e-5)
    np.testing.assert_allclose(values.grad.numpy().sum(), 2, rtol=1e-5)
    wp.launch(sample, dim=3, inputs=[volume.id, p, wp.Volume.CLOSEST, values, out, vectors, turned])
    rounded = np.floor(points[:2] + 0.5)
    np.testing.assert_allclose(out.numpy()[:2], rounded @ [1, 10, 100] + rounded[:, 0] * rounded[:, 1])


def test_slopes_of_values_beside_an_index_grid():
    along = np.arange(6)
    voxels = np.stack(np.meshgrid(along, along, along, indexing="ij"), axis=-1).reshape(-1, 3)
    volume = wp.Volume.allocate_by_voxels(wp.array(voxels, dtype=wp.vec3i), voxel_size=1.0)
    x, y, z = volume.get_voxels().numpy().T.astype(np.float64)
    numbers = wp.array(x * y + 2 * z, dtype=float)
    vectors = wp.array(np.stack([x * y * z, 3 * x, y - z], axis=-1), dtype=wp.vec3)

    @wp.kernel
    def sample(
        volume: wp.uint64, p: wp.array(dtype=wp.vec3), numbers: wp.array(dtype=float), vectors: wp.array(dtype=wp.vec3),
        values: wp.array(dtype=float), slopes: wp.array(dtype=wp.vec3), turned: wp.array(dtype=wp.vec3),
        jacobians: wp.array(dtype=wp.mat33),
    ):  # fmt: skip
        i = wp.tid()
        slope = wp.vec3()
        jacobian = wp.mat33()
        values[i] = wp.volume_sample_grad_index(volume, p[i], wp.Volume.LINEAR, numbers, 0.0, slope)
        turned[i] = wp.volume_sample_grad_index(volume, p[i], wp.Volume.LINEAR, vectors, wp.vec3(0.0), jacobian)
        slopes[i] = slope
        jacobians[i] = jacobian

    points = np.random.default_rng(3).uniform(0, 5, (50, 3)).astype(np.float32)
    values, slopes = wp.zeros(50), wp.zeros(50, dtype=wp.vec3)
    turned, jacobians = wp.zeros(50, dtype=wp.vec3), wp.zeros(50, dtype=wp.mat33)
    inputs = [volume.id, wp.array(points, dtype=wp.vec3), numbers, vectors, values, slopes, turned, jacobians]
    wp.launch(sample, dim=50, inputs=inputs)
    x, y, z = points.T.astype(np.float64)
    one, none = np.ones(50), np.zeros(50)
    np.testing.assert_allclose(values.numpy(), x * y + 2 * z, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(slopes.numpy(), np.stack([y, x, 2 * one], axis=-1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(turned.numpy(), np.stack([x * y * z, 3 * x, y - z], axis=-1), rtol=1e-4, atol=1e-4)
    rows = [[y * z, x * z, x * y], [3 * one, none, none], [none, one, -one]]
    np.testing.assert_allclose(jacobians.numpy(), np.moveaxis(rows, -1, 0), rtol=1e-4, atol=1e-4)


def test_what_cannot_be_sampled_beside_a_grid_is_refused():
    @wp.kernel
    def sample(volume: wp.uint64, values: wp.array(dtype=int), out: wp.array(dtype=int)):
        out[0] = wp.volume_sample_index(volume, wp.vec3(0.0), wp.Volume.CLOSEST, values, -1)

    volume = wp.Volume.allocate_by_voxels(wp.array([[0, 0, 0]], dtype=wp.vec3i), voxel_size=1.0)
    with pytest.raises(Exception, match="of float32 or vec3f"):
        wp.launch(sample, dim=1, inputs=[volume.id, wp.zeros(1, dtype=int), wp.zeros(1, dtype=int)])


def test_points_count_by_their_mask():
    mask = wp.array([1, 0, 1, 0, 0, 0, 2], dtype=int)
    points = wp.array(SCATTERED, dtype=wp.vec3i)
    volume = wp.Volume.allocate_by_voxels(points, voxel_size=1.0, point_mask=mask)
    assert sorted(map(tuple, volume.get_voxels().numpy())) == [(0, 0, 0), (1, 2, 3), (7, 7, 7)]
    with pytest.raises(RuntimeError, match="point_mask"):
        wp.Volume.allocate_by_voxels(points, voxel_size=1.0, point_mask=wp.zeros(3, dtype=int))


def test_a_rebuild_tells_what_it_has_no_room_for():
    status = wp.full(1, value=77, dtype=wp.uint32)
    tiles = wp.array([[0, 0, 0], [8, 0, 0]], dtype=wp.vec3i)
    volume = wp.Volume.allocate_by_tiles(tiles, voxel_size=1.0, bg_value=1.0, max_tiles=3, status=status)
    assert status.numpy()[0] == wp.Volume.REBUILD_SUCCESS
    more = wp.array([[16 * k, 0, 0] for k in range(4)], dtype=wp.vec3i)
    assert volume.rebuild(more, status=status) is status
    assert status.numpy()[0] == wp.Volume.REBUILD_LEAF_CAPACITY_EXCEEDED
    assert volume.get_tile_count() == 2
    far = wp.array([[0, 0, 0], [5000, 0, 0]], dtype=wp.vec3i)
    volume.rebuild(far, status=status)
    assert status.numpy()[0] == wp.Volume.REBUILD_LOWER_CAPACITY_EXCEEDED | wp.Volume.REBUILD_UPPER_CAPACITY_EXCEEDED
    volume.rebuild(more, status=status, point_mask=wp.array([1, 1, 0, 1], dtype=int))
    assert status.numpy()[0] == wp.Volume.REBUILD_SUCCESS
    assert sorted(volume.get_tiles().numpy()[:, 0]) == [0, 16, 48]
    assert volume.get_active_stats() == (3 * 512, 3, 1, 1)
    with pytest.raises(wp.Error):
        volume.rebuild(far)


def test_the_grids_of_a_file_follow_each_other(tmp_path):
    parts = []
    for k in range(3):
        wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0, bg_value=float(k)).save_to_nvdb(tmp_path / f"{k}.nvdb")
        parts.append((tmp_path / f"{k}.nvdb").read_bytes())
    (tmp_path / "all.nvdb").write_bytes(b"".join(parts))
    for source in (tmp_path / "all.nvdb", b"".join(parts)):
        volume = wp.Volume.load_from_nvdb(source)
        found = []
        while volume is not None:
            found.append(volume.native.values().numpy()[0, 0])
            volume = volume.load_next_grid()
        assert found == [0, 1, 2]
    assert wp.Volume.grid_names(tmp_path / "all.nvdb") == ["", "", ""]
    assert wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0).load_next_grid() is None


def with_blind_data(volume, kind, content, size):
    """The bytes of a volume's grid, with an array beside its values."""
    grid = bytearray(volume.array().numpy().tobytes())
    first = len(grid)
    entry = bytearray(288)
    entry[0:8] = (288).to_bytes(8, "little")
    entry[8:16] = (len(content) // size).to_bytes(8, "little")
    entry[16:20] = size.to_bytes(4, "little")
    entry[28:32] = kind.to_bytes(4, "little")
    entry[32:36] = b"mass"
    grid += entry + content + bytes(-len(content) % 32)
    grid[8:16] = b"\xff" * 8  # no checksums
    grid[32:40] = len(grid).to_bytes(8, "little")
    grid[640:648] = first.to_bytes(8, "little")
    grid[648:652] = (1).to_bytes(4, "little")
    return np.frombuffer(bytes(grid), dtype=np.uint8)


def test_arrays_beside_the_values_of_a_grid_are_read():
    plain = wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0)
    assert plain.get_feature_array_count() == 0
    content = np.arange(12, dtype=np.float32)
    memory = with_blind_data(plain, 6, content.tobytes(), 12)
    volume = wp.Volume(wp.array(memory, dtype=wp.uint8))
    assert volume.get_feature_array_count() == 1
    info = volume.get_feature_array_info(0)
    assert (info.name, info.value_size, info.value_count, info.type_str) == ("mass", 12, 4, "Vec3f")
    vectors = volume.feature_array(0)
    assert vectors.dtype is wp.vec3 and vectors.shape == (4,)
    np.testing.assert_array_equal(vectors.numpy().reshape(-1), content)
    assert volume.feature_array(0, dtype=wp.uint8).numpy().tobytes() == content.tobytes()
    with pytest.raises(RuntimeError, match="Cannot cast feature data of size 12"):
        volume.feature_array(0, dtype=float)
    with pytest.raises(RuntimeError, match="has 1, and not number 1"):
        volume.get_feature_array_info(1)


def test_a_background_of_the_packages_types_is_the_volumes():
    tiles = wp.array([[0, 0, 0]], dtype=wp.vec3i)
    for background in (wp.float64(3.0), wp.vec3d(1.0, 2.0, 3.0), wp.float16(2.0), wp.uint32(7), wp.vec4(1.0)):
        volume = wp.Volume.allocate_by_tiles(tiles, 1.0, background)
        assert volume.dtype is type(background)
        np.testing.assert_array_equal(volume.native.values().numpy()[0, 0], np.array(background))
    with pytest.raises(TypeError, match="int16 is no type of a volume's values"):
        wp.Volume.allocate_by_tiles(tiles, 1.0, wp.int16(1))
    for size in (0.0, -1.0, float("inf"), float("nan"), (1.0, 2.0, -1.0)):
        with pytest.raises(ValueError, match="positive and finite"):
            wp.Volume.allocate_by_tiles(tiles, size)
    with pytest.raises(TypeError, match="voxel_size is a number or three, not '1'"):
        wp.Volume.allocate_by_tiles(tiles, "1")


def test_a_grid_in_memory_of_the_host_is_taken():
    source = wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0, bg_value=4.0)
    memory = source.array().numpy().copy()
    for size in (0, len(memory)):
        volume = wp.Volume.load_from_address(memory.ctypes.data, size)
        np.testing.assert_array_equal(volume.native.values().numpy(), 4.0)
    with pytest.raises(RuntimeError, match="Invalid grid buffer pointer"):
        wp.Volume.load_from_address(0)
