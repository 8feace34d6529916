"""Triangle meshes in host memory, as files contain and shapes.py makes them."""

from typing import NamedTuple

import numpy as np

from ... import _weft


class MeshData(NamedTuple):
    """Triangles over shared points: `points` is an array of NumPy's of (n, 3) float32, `indices` one of (3 m) int32. The points
    of a triangle run counter-clockwise seen from its front. ``wp.Mesh.of(data)`` makes a mesh of it.
    """

    points: np.ndarray
    indices: np.ndarray


def mesh_data(given):
    """The MeshData of what the library gives."""
    points, indices = given
    return MeshData(
        np.frombuffer(points, dtype=np.float32).reshape(-1, 3).copy(), np.frombuffer(indices, dtype=np.int32).copy()
    )


def load_mesh(path):
    """Reads a mesh; the ending of the path chooses the format: .obj, .ply or .stl. Polygons are cut into triangles, and
    everything but points and faces is ignored. Returns MeshData.

    Errors: Error for another ending, and one that names the file, the reason and the line for a file that holds no mesh.
    """
    return mesh_data(_weft.load_mesh(str(path)))


def save_mesh(path, points, indices):
    """Writes a mesh: .obj as text, .ply and .stl as binary. `points` (n, 3) and `indices` (3 m) are arrays of the package, of
    NumPy's, or lists. Replaces a file of that name, and makes folders that do not exist.

    Errors: ValueError for points that are not three numbers each; Error for another ending, for indices out of range, for
    coordinates that are not finite, and if the file cannot be written.
    """
    points, indices = (a.numpy() if hasattr(a, "numpy") else np.asarray(a) for a in (points, indices))
    if points.ndim != 2 or points.shape[1] != 3:
        raise ValueError(f"the points of a mesh have the shape (n, 3), not {points.shape}")
    if not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"the indices of a mesh are integers, not {indices.dtype}")
    if indices.size and indices.max() > np.iinfo(np.int32).max:
        raise ValueError("the indices of a mesh are numbers of 32 bits")
    places = np.ascontiguousarray(points, dtype=np.float32).tobytes()
    _weft.save_mesh(str(path), places, np.ascontiguousarray(indices, dtype=np.int32).tobytes())
