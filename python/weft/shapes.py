"""Meshes of simple shapes around the origin, as points and indices: see MeshData.

The meshes of solids are watertight: every edge belongs to two triangles, no two points are equal, and fronts look outwards.
Round shapes have their points on the true surface. The axis of shapes that have one is y.
Errors of all: Error for sizes that are not finite or below 0, a solid without volume, and counts below the least.
"""

from . import _weft
from .runtime.structures.mesh_data import mesh_data


def box(size=(1.0, 1.0, 1.0), segments=1):
    """A box with the lengths of its sides, and squares along each side of a face; 12 segments^2 triangles."""
    return mesh_data(_weft.shape_box(tuple(float(s) for s in size), segments))


def icosphere(radius=1.0, subdivisions=3):
    """A sphere of nearly equal triangles: an icosahedron, each triangle of which is divided into 4, `subdivisions` times."""
    return mesh_data(_weft.shape_icosphere(radius, subdivisions))


def uv_sphere(radius=1.0, slices=32, stacks=16):
    """A sphere of meridians (at least 3) and bands from pole to pole (at least 2)."""
    return mesh_data(_weft.shape_uv_sphere(radius, slices, stacks))


def torus(ring=1.0, tube=0.35, around=48, across=24):
    """A ring around the axis: a tube along a circle of radius `ring`, with points along and around it."""
    return mesh_data(_weft.shape_torus(ring, tube, around, across))


def torus_knot(p=2, q=3, tube=0.2, around=400, across=24):
    """A tube along the knot that winds p times around the axis and q times around a ring of radius 1."""
    return mesh_data(_weft.shape_torus_knot(p, q, tube, around, across))


def grid(size_x=1.0, size_z=1.0, segments_x=8, segments_z=8):
    """A flat sheet in the plane y = 0 that looks upwards, with points in rows along x. Not closed."""
    return mesh_data(_weft.shape_grid(size_x, size_z, segments_x, segments_z))


def cylinder(radius=0.5, height=1.0, slices=32):
    """A cylinder, with points around the axis, at least 3."""
    return mesh_data(_weft.shape_cylinder(radius, height, slices))


def cone(radius=0.5, height=1.0, slices=32):
    """A cone with its base at -height / 2 and its tip at height / 2."""
    return mesh_data(_weft.shape_cone(radius, height, slices))


def capsule(radius=0.5, height=1.0, slices=32, stacks=8):
    """The points within `radius` of a piece of the axis of length `height`; `stacks` are bands of each half sphere."""
    return mesh_data(_weft.shape_capsule(radius, height, slices, stacks))


def random_soup(triangles, size=0.1, seed=0):
    """Triangles with no point in common, placed at random: centers are uniform in [-1, 1]^3, corners within `size` of the
    center along each axis. One seed gives the same triangles on every machine. Not closed.
    """
    return mesh_data(_weft.shape_random_soup(triangles, size, seed))
