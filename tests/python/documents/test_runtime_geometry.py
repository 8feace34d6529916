"""The programs of the runtime's reference on meshes, volumes and hash grids."""

import numpy as np
import pytest

import weft as wp

POINTS = [[-1.0, 0.0, -1.0], [1.0, 0.0, -1.0], [1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]]
INDICES = [0, 2, 1, 0, 3, 2]


@wp.kernel
def raycast(
    mesh: wp.uint64,
    ray_origin: wp.array(dtype=wp.vec3),
    ray_dir: wp.array(dtype=wp.vec3),
    ray_hit: wp.array(dtype=wp.vec3),
):
    tid = wp.tid()

    t = float(0.0)
    u = float(0.0)
    v = float(0.0)
    sign = float(0.0)
    n = wp.vec3()
    f = int(0)

    color = wp.vec3()

    if wp.mesh_query_ray(mesh, ray_origin[tid], ray_dir[tid], 1.0e6, t, u, v, sign, n, f):
        color = n * 0.5 + wp.vec3(0.5, 0.5, 0.5)

    ray_hit[tid] = color


def test_meshes(gpu):
    points = wp.array(POINTS, dtype=wp.vec3, device=gpu)
    indices = wp.array(INDICES, dtype=int, device=gpu)
    velocities = wp.zeros(4, dtype=wp.vec3, device=gpu)

    mesh = wp.Mesh(points, indices, velocities)

    origins = wp.array([[0.5, 1.0, 0.25], [5.0, 1.0, 0.0]], dtype=wp.vec3, device=gpu)
    directions = wp.full(2, wp.vec3(0.0, -1.0, 0.0), device=gpu)
    colors = wp.zeros(2, dtype=wp.vec3, device=gpu)
    wp.launch(raycast, dim=2, inputs=[mesh.id, origins, directions, colors], device=gpu)
    assert np.allclose(colors.numpy(), [[0.5, 1.0, 0.5], [0.0, 0.0, 0.0]], atol=1e-6)


def test_meshes_refit(gpu):
    points = wp.array(POINTS, dtype=wp.vec3, device=gpu)
    mesh = wp.Mesh(points, wp.array(INDICES, dtype=int, device=gpu))
    origins = wp.array([[5.5, 1.0, 0.25]], dtype=wp.vec3, device=gpu)
    directions = wp.full(1, wp.vec3(0.0, -1.0, 0.0), device=gpu)
    colors = wp.zeros(1, dtype=wp.vec3, device=gpu)
    wp.launch(raycast, dim=1, inputs=[mesh.id, origins, directions, colors], device=gpu)
    assert not colors.numpy().any()
    points.assign(np.array(POINTS) + [5.0, 0.0, 0.0])
    mesh.refit()
    wp.launch(raycast, dim=1, inputs=[mesh.id, origins, directions, colors], device=gpu)
    assert np.allclose(colors.numpy(), [[0.5, 1.0, 0.5]], atol=1e-6)


@pytest.fixture
def mygrid(tmp_path):
    """A file with the field x + 2 y + 3 z on eight voxels a side of 0.5."""
    x, y, z = np.meshgrid(*[np.arange(8.0)] * 3, indexing="ij")
    path = tmp_path / "mygrid.nvdb"
    wp.Volume.load_from_numpy((x + 2 * y + 3 * z).astype(np.float32), voxel_size=0.5).save_to_nvdb(path, "zip")
    return path


def test_volumes_file(host, mygrid):
    file = open(mygrid, "rb")

    volume = wp.Volume.load_from_nvdb(file, device=host)
    assert volume.id
    assert volume.get_voxel_size() == (0.5, 0.5, 0.5)


def test_volumes_sample(gpu, mygrid):
    volume = wp.Volume.load_from_nvdb(mygrid, device=gpu)

    @wp.kernel
    def sample_grid(volume: wp.uint64, points: wp.array(dtype=wp.vec3), samples: wp.array(dtype=float)):
        tid = wp.tid()

        p = points[tid]

        q = wp.volume_world_to_index(volume, p)

        f = wp.volume_sample_f(volume, q, wp.Volume.LINEAR)

        samples[tid] = f

    points = wp.array([[0.25, 1.0, 2.125], [3.0, 3.0, 3.0]], dtype=wp.vec3, device=gpu)
    samples = wp.zeros(2, dtype=float, device=gpu)
    wp.launch(sample_grid, dim=2, inputs=[volume.id, points, samples], device=gpu)
    np.testing.assert_allclose(samples.numpy(), [0.5 + 4 + 12.75, 6 + 12 + 18], rtol=1e-6)


def test_hash_grids(gpu):
    points = np.random.default_rng(5).uniform(0.0, 4.0, size=(200, 3)).astype(np.float32)
    p = wp.array(points, dtype=wp.vec3, device=gpu)
    r = 0.75

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

    output = wp.zeros(200, dtype=wp.vec3, device=gpu)
    wp.launch(sum, dim=200, inputs=[grid.id, p, output, r], device=gpu)
    near = np.linalg.norm(points[:, None] - points[None], axis=2) <= r
    assert np.allclose(output.numpy(), near.astype(np.float32) @ points, atol=1e-3)
