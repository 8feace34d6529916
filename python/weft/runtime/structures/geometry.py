"""Structures that kernels query: triangle meshes, hierarchies of boxes, hash grids. Kernels get their ids (uint64)."""

import typing

from ... import _weft
from ...types import scalars
from ...types.named import NAMED
from ..array import array
from ..device import device_from, get_device, of_native
from .mesh_data import load_mesh, save_mesh

vec3 = NAMED["vec3"]

# Ways to build a tree that programs name, and the library's.
BUILDERS = {"sah": "hploc", "median": "hploc", "lbvh": "lbvh", "cubql": "hploc", None: "hploc"}


def is_cubql_available():
    """False: there is no builder of that name. Programs that name it all the same get the library's, see BUILDERS."""
    return False


class Query:
    """Annotates the parameter of a function that goes through a query of its caller: ``wp.BvhQuery`` and kin. Which query
    it is is known while a kernel is traced.
    """

    _wp_annotation_ = typing.Any

    def __class_getitem__(cls, item):
        return cls  # whatever the type of the points is


class BvhQuery(Query):
    """Annotates a query of a hierarchy of boxes."""


class MeshQuery(Query):
    """Annotates a query for triangles of a mesh."""


class MeshQueryAABB(Query):
    """Annotates a query for triangles of a mesh in a box."""


class HashGridQuery(Query):
    """Annotates a query for points of a grid."""


def checked(array, dtype, what):
    """An array of an element type with its elements in order. Errors: RuntimeError for others."""
    if array.dtype is not dtype or not array.is_contiguous:
        raise RuntimeError(f"{what} should be a contiguous array of type wp.{dtype.__name__.removesuffix('f')}")
    return array


class Mesh(_weft.Mesh):
    """A triangle mesh: `points` (vec3), `indices` (int32, three for each face), and perhaps `velocities` of the points.

    The mesh uses the arrays that it is made with: after changes of the points call refit(). Arrays that are assigned later
    are copied into these, at once and by refit().
    Errors: RuntimeError for arrays of other types, or on different devices.
    """

    def __init__(
        self,
        points,
        indices,
        velocities=None,
        support_winding_number=False,
        bvh_constructor=None,
        bvh_leaf_size=None,
        groups=None,
    ):
        if points.native_device != indices.native_device:
            raise RuntimeError("Mesh points and indices must live on the same device")
        checked(points, vec3, "Mesh points")
        checked(indices, scalars.int32, "Mesh indices")
        if velocities is not None:
            checked(velocities, vec3, "Mesh velocities")
        if indices.ndim > 1:
            raise RuntimeError("Mesh indices should be a flattened 1d array of indices")
        if groups is not None:
            raise RuntimeError(
                "groups of triangles are not supported: make a mesh of each group, or a Bvh with groups over their boxes"
            )
        if bvh_leaf_size is not None and bvh_leaf_size < 1:
            raise ValueError(f"bvh_leaf_size must be greater than or equal to 1, current value: {bvh_leaf_size}")
        builder = builder_named(bvh_constructor)
        # A look at indices through NumPy could change them, for all that the library knows: it has its own.
        self.indices_ = indices.clone() if indices.native_device.wraps_host else indices
        super().__init__(points, self.indices_, velocities, support_winding_number, builder, bvh_leaf_size or 4)
        self.device = of_native(points.native_device)
        self.points_ = self.given_points = points
        self.velocities_ = self.given_velocities = velocities
        self.indices = indices
        self.groups = groups

    @classmethod
    def of(cls, data, device=None, **options):
        """A mesh of MeshData (of a file, or of ``wp.shapes``) on a device; `options` are those of the class."""
        points = array(data.points, dtype=vec3, device=device)
        return cls(points, array(data.indices, dtype=scalars.int32, device=device), **options)

    @classmethod
    def load(cls, path, device=None, **options):
        """A mesh of a file, see load_mesh(); `options` are those of the class."""
        return cls.of(load_mesh(path), device, **options)

    def save(self, path):
        """Writes a file with the points as they are now, see save_mesh()."""
        save_mesh(path, self.points, self.indices)

    @property
    def points(self):
        """The positions of the vertices. Assigning other values to the array's elements needs refit()."""
        return self.given_points

    @points.setter
    def points(self, points):
        if points.shape != self.points_.shape:
            raise RuntimeError("the new points must have the same shape as the original points")
        self.given_points = checked(points, vec3, "Mesh points")
        self.refit()

    def refit(self):
        """Makes the tree fit the points as they are now."""
        for held, given in ((self.points_, self.given_points), (self.velocities_, self.given_velocities)):
            if given is not held:
                held.assign(given)
        super().refit()

    def rebuild(self):
        """Builds the tree anew, of the points and indices as they are now."""
        for held, given in ((self.points_, self.given_points), (self.indices_, self.indices)):
            if given is not held:
                held.assign(given)
        super().rebuild()

    @property
    def velocities(self):
        """The velocities of the vertices."""
        return self.given_velocities

    @velocities.setter
    def velocities(self, velocities):
        if self.velocities_ is None or velocities.shape != self.velocities_.shape:
            raise RuntimeError("the new velocities must have the shape of those that the mesh was made with")
        self.given_velocities = checked(velocities, vec3, "Mesh velocities")
        self.velocities_.assign(velocities)


def builder_named(name):
    """The library's way to build a tree. Errors: ValueError for a name that is none."""
    if name not in BUILDERS:
        raise ValueError(f"Unrecognized BVH constructor type: {name}")
    return BUILDERS[name]


class Bvh(_weft.Bvh):
    r"""A hierarchy of boxes, given by the arrays of their lower and upper corners (vec3).

    After changes of the corners call refit(), or rebuild() where they moved far. `ignored()` is the number of boxes that are
    none (a NaN, a lower corner above the upper one), which nothing finds; `depth()` the number of nodes on the longest path.

    \param groups  (n) int32: queries may look at the boxes of one number alone, below bvh_get_group_root()
    \param curve_bits  30 or 60: the bits of a box's place along the curve by which the tree is built. 60 tell small parts of
                       a large scene apart, and take about twice as long
    Errors: RuntimeError for arrays of other types, lengths or devices.
    """

    def __init__(self, lowers, uppers, constructor=None, groups=None, leaf_size=1, curve_bits=30):
        if len(lowers) != len(uppers):
            raise RuntimeError("The same number of lower and upper bounds must be provided")
        if lowers.native_device != uppers.native_device:
            raise RuntimeError("Lower and upper bounds must live on the same device")
        checked(lowers, vec3, "lowers")
        checked(uppers, vec3, "uppers")
        if groups is not None:
            checked(groups, scalars.int32, "groups")
            if len(groups) != len(lowers):
                raise RuntimeError("groups must have the same length as lowers/uppers")
        if leaf_size < 1:
            raise ValueError(f"leaf_size must be greater than or equal to 1, current value: {leaf_size}")
        super().__init__(lowers, uppers, groups, builder_named(constructor), leaf_size, curve_bits)
        self.device = of_native(lowers.native_device)
        self.lowers = lowers
        self.uppers = uppers
        self.groups = groups

    def rebuild(self, constructor=None):
        """Builds the tree anew, of the corners as they are now, in the way in which it was built first. Errors: ValueError for
        the name of no way.
        """
        builder_named(constructor)
        super().rebuild()


class HashGrid(_weft.HashGrid):
    r"""Points in the cells of a grid that is hashed to dim_x * dim_y * dim_z cells. build() sorts points into it.
    `ignored()` is the number of points that are in no cell, as a coordinate is not finite.

    \param deterministic  keeps the points of a cell in the order of their numbers, so that sums over neighbours are the same
                          in each run; grids on the processor and with groups always do
    Errors: RuntimeError for dimensions that are not positive.
    """

    def __init__(self, dim_x, dim_y, dim_z, device=None, dtype=None, deterministic=False):
        if dtype is not None and dtype not in (float, scalars.float32):
            raise TypeError(f"Unsupported dtype {dtype} for HashGrid. Supported types: float32")
        if min(dim_x, dim_y, dim_z) < 1:
            raise RuntimeError("Hash grid dimensions must be positive")
        super().__init__(dim_x, dim_y, dim_z, device_from(device), deterministic)
        self.device = get_device(device)

    def build(self, points, radius, groups=None):
        """Sorts points into cells as wide as `radius`. Errors: TypeError and RuntimeError for other arrays."""
        if points.dtype is not vec3:
            raise TypeError(f"Hash grid points should have type vec3f, got {points.dtype}")
        if radius <= 0:
            raise ValueError(f"Hash grid cell width must be positive, got {radius}")
        if points.native_device != self.device.native:
            raise RuntimeError("points must live on the same device as this HashGrid")
        points = points if points.ndim == 1 else points.flatten()
        if groups is not None:
            groups = (groups if groups.ndim == 1 else groups.flatten()).contiguous()
        super().build(points.contiguous(), float(radius), groups)

    def reserve(self, num_points, with_groups=False):
        """Makes room for a number of points, so that build() needs no memory."""
        super().reserve(num_points)
