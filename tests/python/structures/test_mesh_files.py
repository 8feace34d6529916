"""Meshes of files and of simple shapes."""

import numpy as np
import pytest

import weft as wp


def volume_of(data):
    """The volume that a closed mesh encloses, by the divergence theorem."""
    a, b, c = (data.points[data.indices[k::3]].astype(np.float64) for k in range(3))
    return np.sum(np.cross(a, b) * c) / 6


def edges_of(data):
    triangles = data.indices.reshape(-1, 3)
    return [tuple(t[[k, (k + 1) % 3]]) for t in triangles for k in range(3)]


CLOSED = {
    "box": (wp.shapes.box((1.0, 2.0, 3.0), segments=2), 6.0, 1e-5),
    "icosphere": (wp.shapes.icosphere(2.0, 4), 32 / 3 * np.pi, 1e-2),
    "uv_sphere": (wp.shapes.uv_sphere(1.0, 64, 32), 4 / 3 * np.pi, 1e-2),
    "torus": (wp.shapes.torus(2.0, 0.5, 96, 48), np.pi**2, 1e-2),
    "torus_knot": (wp.shapes.torus_knot(2, 3, 0.1), None, None),
    "cylinder": (wp.shapes.cylinder(0.5, 2.0, 128), np.pi / 2, 1e-2),
    "cone": (wp.shapes.cone(0.5, 3.0, 128), np.pi / 4, 1e-2),
    "capsule": (wp.shapes.capsule(0.5, 1.0, 64, 32), np.pi / 4 + np.pi / 6, 1e-2),
}


@pytest.mark.parametrize("name", CLOSED)
def test_solids_are_closed_and_have_their_volume(name):
    data, volume, error = CLOSED[name]
    assert data.points.dtype == np.float32 and data.indices.dtype == np.int32
    edges = edges_of(data)
    assert len(set(edges)) == len(edges) and {(b, a) for a, b in edges} == set(edges)
    if volume is not None:
        np.testing.assert_allclose(volume_of(data), volume, rtol=error)


def test_sheets_and_soups_have_their_triangles():
    sheet = wp.shapes.grid(2.0, 4.0, 3, 5)
    assert sheet.indices.shape == (2 * 3 * 5 * 3,) and np.all(sheet.points[:, 1] == 0)
    np.testing.assert_allclose(np.ptp(sheet.points, axis=0), [2, 0, 4])
    soup = wp.shapes.random_soup(100, 0.1, seed=3)
    assert soup.points.shape == (300, 3) and np.abs(soup.points).max() <= 1.1
    np.testing.assert_array_equal(soup.points, wp.shapes.random_soup(100, 0.1, seed=3).points)
    assert np.any(soup.points != wp.shapes.random_soup(100, 0.1, seed=4).points)


def test_shapes_that_are_none_are_refused():
    with pytest.raises(wp.Error, match="slices|at least"):
        wp.shapes.cylinder(slices=2)
    with pytest.raises(wp.Error):
        wp.shapes.icosphere(radius=-1.0)


@pytest.mark.parametrize("ending", ["obj", "ply", "stl"])
def test_files_hold_the_mesh(tmp_path, ending):
    data = wp.shapes.torus(1.0, 0.25, 12, 6)
    path = tmp_path / "folder" / f"torus.{ending}"
    wp.save_mesh(path, data.points, data.indices)
    read = wp.load_mesh(path)
    np.testing.assert_allclose(read.points[read.indices], data.points[data.indices], rtol=1e-6)
    if ending != "stl":
        np.testing.assert_array_equal(read.indices, data.indices)


def test_a_mesh_is_made_of_a_file_and_saved_with_its_points_of_the_moment(tmp_path):
    wp.save_mesh(tmp_path / "ball.ply", *wp.shapes.icosphere(1.0, 2))
    mesh = wp.Mesh.load(tmp_path / "ball.ply", support_winding_number=True)

    @wp.kernel
    def ask(mesh: wp.uint64, points: wp.array(dtype=wp.vec3), out: wp.array(dtype=float), winding: wp.array(dtype=float)):
        i = wp.tid()
        hit = wp.mesh_query_point(mesh, points[i], 10.0)
        out[i] = hit.sign
        winding[i] = wp.mesh_winding_number(mesh, points[i])

    out, winding = wp.zeros(2), wp.zeros(2)
    wp.launch(ask, dim=2, inputs=[mesh.id, wp.array([[0.1, 0.2, 0.3], [0.9, 0.9, 0.0]], dtype=wp.vec3), out, winding])
    np.testing.assert_array_equal(out.numpy(), [-1, 1])
    np.testing.assert_allclose(winding.numpy(), [1, 0], atol=0.05)
    mesh.points.assign(mesh.points.numpy() * 2)
    mesh.refit()
    mesh.save(tmp_path / "larger.obj")
    np.testing.assert_allclose(np.linalg.norm(wp.load_mesh(tmp_path / "larger.obj").points, axis=1), 2, rtol=1e-5)


def test_faulty_meshes_and_files_are_refused_by_name(tmp_path):
    (tmp_path / "bad.obj").write_text("v 0 0 0\nv 1 0\n")
    with pytest.raises(wp.Error, match=r"bad\.obj.*2"):
        wp.load_mesh(tmp_path / "bad.obj")
    with pytest.raises(wp.Error, match="nothere"):
        wp.load_mesh(tmp_path / "nothere.ply")
    with pytest.raises(wp.Error, match=r"\.xyz|ending|format"):
        wp.save_mesh(tmp_path / "mesh.xyz", np.zeros((3, 3)), [0, 1, 2])
    with pytest.raises(ValueError, match="shape"):
        wp.save_mesh(tmp_path / "mesh.obj", np.zeros((3, 2)), [0, 1, 2])
    with pytest.raises(ValueError, match="integers"):
        wp.save_mesh(tmp_path / "mesh.obj", np.zeros((3, 3)), [0.0, 1.0, 2.0])
    with pytest.raises(wp.Error):
        wp.save_mesh(tmp_path / "mesh.obj", np.zeros((3, 3)), [0, 1, 3])
    assert not (tmp_path / "mesh.obj").exists()


def test_triangles_beside_edges_are_found(capsys):
    data = wp.shapes.box()
    triangles = data.indices.reshape(-1, 3)
    edges = wp.utils.MeshAdjacency(triangles, len(triangles)).edges
    assert len(edges) == 18 and capsys.readouterr().out == ""
    for edge in edges.values():
        for face, corners in ((edge.f0, (edge.v0, edge.v1, edge.o0)), (edge.f1, (edge.v1, edge.v0, edge.o1))):
            turns = [tuple(np.roll(triangles[face], k)) for k in range(3)]
            assert corners in turns
    alone = wp.utils.MeshAdjacency([(0, 1, 2), (1, 0, 3), (0, 1, 4)], 3).edges
    assert (alone[0, 1].f0, alone[0, 1].f1, alone[1, 2].f1) == (0, 1, -1)
    assert capsys.readouterr().out == "Detected non-manifold edge\n"
