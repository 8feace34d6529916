"""What kernels do with volumes beyond samples: stores, rays, parts of rays, cubic values."""

import numpy as np
import pytest

import weft as wp

pytestmark = pytest.mark.usefixtures("device")


def a_volume(background=0.0, dtype=None):
    tiles = wp.array([[0, 0, 0], [8, 0, 0], [-1, -1, -1]], dtype=wp.vec3i)
    return wp.Volume.allocate_by_tiles(tiles, voxel_size=1.0, bg_value=background, dtype=dtype)


def values_at(volume, dtype, voxels):
    @wp.kernel
    def look(volume: wp.uint64, voxels: wp.array(dtype=wp.vec3i), out: wp.array(dtype=dtype)):
        i = wp.tid()
        v = voxels[i]
        out[i] = wp.volume_lookup(volume, v[0], v[1], v[2], dtype=dtype)

    out = wp.zeros(len(voxels), dtype=dtype)
    wp.launch(look, dim=len(voxels), inputs=[volume.id, wp.array(voxels, dtype=wp.vec3i), out])
    return out.numpy()


VOXELS = [[0, 0, 0], [9, 1, 2], [-8, -1, -3], [20, 0, 0]]


@pytest.mark.parametrize(
    "dtype", [wp.float16, wp.float32, wp.float64, wp.int32, wp.uint32, wp.int64, wp.vec3, wp.vec3d, wp.vec4, wp.vec4d]
)
def test_a_kernel_stores_values_by_an_id(dtype):
    length = getattr(dtype, "_length_", 1) if dtype not in wp.types.SCALARS else 1
    volume = a_volume((0.0,) * length if length > 1 else 0.0, dtype)

    @wp.kernel
    def store(volume: wp.uint64, voxels: wp.array(dtype=wp.vec3i), values: wp.array(dtype=dtype)):
        i = wp.tid()
        v = voxels[i]
        wp.volume_store(volume, v[0], v[1], v[2], values[i])

    values = np.arange(1, 1 + 4 * length).reshape((4, length) if length > 1 else 4)
    wp.launch(store, dim=4, inputs=[volume.id, wp.array(VOXELS, dtype=wp.vec3i), wp.array(values, dtype=dtype)])
    found = values_at(volume, dtype, VOXELS)
    np.testing.assert_array_equal(found[:3], values[:3])
    np.testing.assert_array_equal(found[3], 0)  # outside of all leaves
    assert np.count_nonzero(volume.native.values().numpy()) == 3 * length


def test_typed_stores_and_literals_and_functions():
    reals, integers, vectors = a_volume(), a_volume(0), a_volume((0.0, 0.0, 0.0))

    @wp.func
    def put(volume: wp.uint64, x: int, value: float):
        wp.volume_store_f(volume, x, 1, 1, value)

    @wp.kernel
    def store(reals: wp.uint64, integers: wp.uint64, vectors: wp.uint64):
        wp.volume_store(reals, 0, 0, 0, 1.5)
        put(reals, 1, 2.5)
        wp.volume_store_i(integers, 0, 0, 0, 7)
        wp.volume_store(integers, 1, 1, 1, 8)
        wp.volume_store_v(vectors, 0, 0, 0, wp.vec3(1.0, 2.0, 3.0))

    wp.launch(store, dim=1, inputs=[reals.id, integers.id, vectors.id])
    at = [[0, 0, 0], [1, 1, 1]]
    np.testing.assert_array_equal(values_at(reals, wp.float32, at), [1.5, 2.5])
    np.testing.assert_array_equal(values_at(integers, wp.int32, at), [7, 8])
    np.testing.assert_array_equal(values_at(vectors, wp.vec3, at), [[1, 2, 3], [0, 0, 0]])


def test_a_kernel_reads_what_it_stored():
    @wp.kernel
    def update(volume: wp.uint64, out: wp.array(dtype=float)):
        i = wp.tid()
        wp.volume_store_f(volume, i, 2, 3, wp.volume_lookup_f(volume, i, 2, 3) + float(i))
        wp.volume_store_f(volume, i, 2, 3, wp.volume_lookup_f(volume, i, 2, 3) * 2.0)
        out[i] = wp.volume_lookup_f(volume, i, 2, 3)

    volume, out = a_volume(10.0), wp.zeros(8)
    wp.launch(update, dim=8, inputs=[volume.id, out])
    np.testing.assert_array_equal(out.numpy(), 2 * (10 + np.arange(8)))
    np.testing.assert_array_equal(values_at(volume, wp.float32, [[i, 2, 3] for i in range(8)]), out.numpy())


def test_stores_are_captured_and_follow_each_other():
    @wp.kernel
    def increase(volume: wp.uint64):
        i = wp.tid()
        wp.volume_store_f(volume, i, 0, 0, wp.volume_lookup_f(volume, i, 0, 0) + 1.0)

    volume = a_volume()
    wp.launch(increase, dim=16, inputs=[volume.id])
    with wp.ScopedCapture() as capture:
        wp.launch(increase, dim=16, inputs=[volume.id])
        wp.launch(increase, dim=16, inputs=[volume.id])
    for _ in range(5):
        wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(values_at(volume, wp.float32, [[i, 0, 0] for i in range(16)]), 11)


def test_stores_into_what_is_no_such_volume_are_refused():
    @wp.kernel
    def store(volume: wp.uint64):
        wp.volume_store(volume, 0, 0, 0, 1.5)

    integers = a_volume(0)
    with pytest.raises(ValueError, match=r"argument 1 \(volume\): the kernel writes float32 .* whose values are int32"):
        wp.launch(store, dim=1, inputs=[integers.id])
    with pytest.raises(ValueError, match="the kernel writes float32 into the volume, and there is none"):
        wp.launch(store, dim=1, inputs=[0])
    index = wp.Volume.allocate_by_voxels(wp.array(VOXELS, dtype=wp.vec3i), voxel_size=1.0)
    with pytest.raises(ValueError, match="which has no values"):
        wp.launch(store, dim=1, inputs=[index.id])
    with pytest.raises(ValueError, match="not the id of a volume"):
        wp.launch(store, dim=1, inputs=[4711])


def test_a_store_by_an_id_out_of_an_array_is_refused():
    @wp.kernel
    def store(volumes: wp.array(dtype=wp.uint64), other: wp.uint64):
        wp.volume_store_f(volumes[0], 0, 0, 0, 1.5)

    volume = a_volume()
    with pytest.raises(Exception, match="by an id that the kernel gets as an argument"):
        wp.launch(store, dim=1, inputs=[wp.array([volume.id], dtype=wp.uint64), volume.id])


def test_a_ray_meets_the_level_set_of_a_ball():
    volume = wp.Volume.from_mesh(wp.Mesh.of(wp.shapes.icosphere(1.0, 4)), voxel_size=0.05)

    @wp.kernel
    def cast(volume: wp.uint64, starts: wp.array(dtype=wp.vec3), ways: wp.array(dtype=wp.vec3), t: wp.array(dtype=float),
             normals: wp.array(dtype=wp.vec3)):  # fmt: skip
        i = wp.tid()
        hit = wp.volume_ray(volume, starts[i], ways[i], 10.0)
        t[i] = wp.where(hit.result, hit.t, -1.0)
        normals[i] = hit.normal

    random = np.random.default_rng(7)
    starts = random.normal(size=(200, 3))
    starts *= 3 / np.linalg.norm(starts, axis=1, keepdims=True)
    ways = random.uniform(-0.6, 0.6, (200, 3)) - starts
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    t, normals = wp.zeros(200), wp.zeros(200, dtype=wp.vec3)
    arrays = [wp.array(a, dtype=wp.vec3) for a in (starts, ways)]
    wp.launch(cast, dim=200, inputs=[volume.id, *arrays, t, normals])
    b = np.sum(starts * ways, axis=1)
    inside = b**2 - 8
    np.testing.assert_array_equal(t.numpy()[inside < -0.05], -1)
    clear = inside > 0.05
    assert clear.sum() > 100
    expected = (-b - np.sqrt(np.maximum(inside, 0)))[clear]
    np.testing.assert_allclose(t.numpy()[clear], expected, atol=1e-2)
    places = starts[clear] + expected[:, None] * ways[clear]
    assert np.all(np.sum(normals.numpy()[clear] * places, axis=1) > 0.98)


def test_the_parts_of_a_ray_in_active_space_are_found():
    tiles = wp.array([[0, 0, 0], [8, 0, 0], [32, 0, 0]], dtype=wp.vec3i)
    volume = wp.Volume.allocate_by_tiles(tiles, voxel_size=0.5, bg_value=1.0)

    @wp.kernel
    def walk(volume: wp.uint64, out: wp.array(dtype=float)):
        n = int(0)
        begin = float(0.0)
        end = float(0.0)
        parts = wp.volume_segments(volume, wp.vec3(-3.0, 1.1, 1.2), wp.vec3(1.0, 0.0, 0.0), 100.0)
        while wp.volume_segments_next(parts, begin, end):
            out[2 * n] = begin
            out[2 * n + 1] = end
            n += 1
        out[7] = float(n)

    out = wp.zeros(8)
    wp.launch(walk, dim=1, inputs=[volume.id, out])
    found = out.numpy()
    assert found[7] == 2
    # Voxel x has the space from x - 1/2 to x + 1/2, or from x to x + 1: the parts are 16 and 8 voxels long.
    np.testing.assert_allclose([found[1] - found[0], found[3] - found[2]], [8, 4], atol=1e-3)
    np.testing.assert_allclose(found[2] - found[0], 16, atol=1e-3)
    assert abs(found[0] - 3) <= 0.25 + 1e-3


def test_cubic_values_and_slopes_are_exact_for_polynomials():
    along = np.arange(-12, 13)
    x, y, z = np.meshgrid(along, along, along, indexing="ij")
    block = (0.01 * x**3 + 0.1 * x * y - 0.2 * z**2).astype(np.float32)
    volume = wp.Volume.load_from_numpy(block, min_world=(-12, -12, -12))

    @wp.kernel
    def sample(volume: wp.uint64, p: wp.array(dtype=wp.vec3), out: wp.array(dtype=float), value: wp.array(dtype=float),
               slopes: wp.array(dtype=wp.vec3)):  # fmt: skip
        i = wp.tid()
        slope = wp.vec3()
        out[i] = wp.volume_sample_f(volume, p[i], wp.Volume.CUBIC)
        value[i] = wp.volume_sample_grad_f(volume, p[i], wp.Volume.CUBIC, slope)
        slopes[i] = slope

    points = np.random.default_rng(9).uniform(-8, 8, (100, 3)).astype(np.float32)
    out, value, slopes = wp.zeros(100), wp.zeros(100), wp.zeros(100, dtype=wp.vec3)
    wp.launch(sample, dim=100, inputs=[volume.id, wp.array(points, dtype=wp.vec3), out, value, slopes])
    x, y, z = points.T.astype(np.float64)
    np.testing.assert_allclose(out.numpy(), 0.01 * x**3 + 0.1 * x * y - 0.2 * z**2, atol=2e-2)
    np.testing.assert_array_equal(out.numpy(), value.numpy())
    h = 1e-2
    moved = []
    for axis in range(3):
        for sign in (1, -1):
            at = points.copy()
            at[:, axis] += sign * h
            wp.launch(sample, dim=100, inputs=[volume.id, wp.array(at, dtype=wp.vec3), out, value, wp.zeros(100, dtype=wp.vec3)])
            moved.append(out.numpy().astype(np.float64).copy())
    differences = np.stack([(moved[2 * k] - moved[2 * k + 1]) / (2 * h) for k in range(3)], axis=-1)
    np.testing.assert_allclose(slopes.numpy(), differences, atol=1e-2)


def test_values_of_four_components_have_slopes():
    volume = a_volume((1.0, 2.0, 3.0, 4.0))

    @wp.kernel
    def fill(volume: wp.uint64):
        i, j, k = wp.tid()
        wp.volume_store(volume, i, j, k, wp.vec4(float(i), 2.0 * float(j), 3.0 * float(k), 1.0))

    mat43 = wp.types.matrix((4, 3), wp.float32)

    @wp.kernel
    def sample(volume: wp.uint64, out: wp.array(dtype=mat43)):
        slope = mat43()
        wp.volume_sample_grad(volume, wp.vec3(3.5, 3.5, 3.5), wp.Volume.LINEAR, slope, dtype=wp.vec4)
        out[0] = slope

    wp.launch(fill, dim=(8, 8, 8), inputs=[volume.id])
    out = wp.zeros(1, dtype=mat43)
    wp.launch(sample, dim=1, inputs=[volume.id, out])
    np.testing.assert_allclose(out.numpy()[0], [[1, 0, 0], [0, 2, 0], [0, 0, 3], [0, 0, 0]], atol=1e-5)
