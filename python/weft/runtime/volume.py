"""Volumes: sparse grids of voxels in NanoVDB's form, which kernels find by their ids (uint64)."""

from typing import NamedTuple

import numpy as np

from .. import _weft
from ..types import scalars
from ..types.named import NAMED
from .array import array
from .device import device_from, of_native

vec3i, vec3f = NAMED["vec3i"], NAMED["vec3f"]
# The names that grids give their types, by the library's.
TYPE_NAMES = {
    "float32": "float", "float64": "double", "int32": "int32", "int64": "int64", "vec3f": "Vec3f", "vec3d": "Vec3d",
    "float16": "Half", "uint32": "uint32", "vec4f": "Vec4f", "vec4d": "Vec4d", "index": "Index", "on_index": "OnIndex",
}  # fmt: skip
LEAF = 512  # voxels of a leaf, which is a cube of 8 voxels a side


class GridInfo(NamedTuple):
    """What a grid says of itself."""

    name: str
    size_in_bytes: int
    grid_index: int
    grid_count: int
    type_str: str
    translation: vec3f
    transform_matrix: NAMED["mat33"]


class RebuildInfo(NamedTuple):
    """What a volume has memory for."""

    kind: str | None
    max_voxel_count: int
    max_leaf_node_count: int
    max_lower_node_count: int
    max_upper_node_count: int


class Volume:
    """A sparse grid of voxels. `data` is an array of bytes that holds a grid as NanoVDB has it in memory; it is copied.

    Errors: RuntimeError, with the reason, for bytes that are no grid.
    """

    CLOSEST = 0
    LINEAR = 1
    GridInfo = GridInfo
    RebuildInfo = RebuildInfo

    def __init__(self, data, copy=True):
        self.become(_weft.Volume.make_from_array(data), None)

    def become(self, native, kind):
        """Takes a volume of the library's. `kind` says of what it may be rebuilt: "tiles", "voxels", or None."""
        self.native = native
        self.kind = kind
        self.room = (0, 0, 0)
        self.device = of_native(native.native_device)

    @classmethod
    def around(cls, native, kind=None):
        """The object for a volume of the library's."""
        made = cls.__new__(cls)
        made.become(native, kind)
        return made

    @classmethod
    def load_from_nvdb(cls, file_or_buffer, device=None, name="", index=0):
        """Reads a grid of a file: a path, the content as bytes, or an open file. The first one, or that of a name or
        number. Errors: RuntimeError that names the file and the reason for what is no grid.
        """
        if hasattr(file_or_buffer, "read"):
            file_or_buffer = file_or_buffer.read()
        device = device_from(device)
        if isinstance(file_or_buffer, (bytes, bytearray, memoryview)):
            return cls.around(_weft.Volume.make_from_bytes(bytes(file_or_buffer), device, name, index))
        return cls.around(_weft.Volume.make_from_file(str(file_or_buffer), device, name, index))

    def save_to_nvdb(self, path, codec="none"):
        """Writes a file with this grid; `codec` is "none", "zip" or "blosc". Errors: RuntimeError."""
        self.native.save(str(path), codec)

    # From voxels

    @classmethod
    def allocate(
        cls,
        min,
        max,
        voxel_size,
        bg_value=0.0,
        translation=(0.0, 0.0, 0.0),
        points_in_world_space=False,
        device=None,
    ):
        """A volume with the leaves from voxel `min` to voxel `max`, inclusive, with all of their voxels active."""
        size, translation = three(voxel_size), np.asarray(translation, dtype=np.float64)
        low, high = np.asarray(min, dtype=np.float64), np.asarray(max, dtype=np.float64)
        if points_in_world_space:
            low, high = np.around((low - translation) / size), np.around((high - translation) / size)
        first, last = low.astype(np.int64) // 8, high.astype(np.int64) // 8
        places = np.stack(np.meshgrid(*(np.arange(a, b + 1) for a, b in zip(first, last)), indexing="ij"), axis=-1)
        tiles = array(places.reshape(-1, 3).astype(np.int32) * 8, dtype=vec3i, device=device)
        return cls.allocate_by_tiles(tiles, voxel_size, bg_value, translation, device)

    @classmethod
    def allocate_by_tiles(
        cls,
        tile_points,
        voxel_size=None,
        bg_value=0.0,
        translation=(0.0, 0.0, 0.0),
        device=None,
        transform=None,
        rebuildable=False,
        max_tiles=None,
        max_lower_nodes=None,
        max_upper_nodes=None,
        dtype=None,
    ):
        """A volume with the leaves in which the given points lie: voxels (int32), or points of world space (float32).
        All of their voxels are active and have the value `bg_value`, whose type is the volume's unless `dtype` is given.

        With `rebuildable`, or room for nodes, rebuild() may give it other leaves.
        """
        room = (max_tiles or 0, max_lower_nodes or 0, max_upper_nodes or 0)
        return cls.made("tiles", tile_points, voxel_size, bg_value, translation, transform, room, dtype, rebuildable)

    @classmethod
    def allocate_by_voxels(
        cls,
        voxel_points,
        voxel_size=None,
        translation=(0.0, 0.0, 0.0),
        device=None,
        transform=None,
        rebuildable=False,
        max_active_voxels=None,
        max_leaf_nodes=None,
        max_lower_nodes=None,
        max_upper_nodes=None,
        bg_value=None,
        dtype=None,
    ):
        """A volume in which the given voxels alone are active. Errors: RuntimeError without `bg_value`: index grids, which
        have no values of their own, are not made, only loaded.
        """
        if bg_value is None:
            raise RuntimeError("allocate_by_voxels() needs bg_value: index grids are loaded from files, and not made yet")
        room = (max_leaf_nodes or 0, max_lower_nodes or 0, max_upper_nodes or 0)
        return cls.made("voxels", voxel_points, voxel_size, bg_value, translation, transform, room, dtype, rebuildable)

    @classmethod
    def made(cls, kind, points, voxel_size, bg_value, translation, transform, room, dtype, rebuildable):
        """A volume from points on their device."""
        matrix = matrix_of(voxel_size, transform)
        translation = np.asarray(translation, dtype=np.float64).reshape(3)
        voxels = voxels_of(points, matrix, translation)
        background = np.atleast_1d(np.asarray(bg_value, dtype=np.float64))
        if dtype is None:
            dtype = type_of_background(bg_value, background)
        native = _weft.Volume.make(
            dtype.native, voxels, kind == "tiles", background.tolist(), matrix.ravel().tolist(), translation.tolist(),
            "", room,
        )  # fmt: skip
        made = cls.around(native, kind if rebuildable or any(room) else None)
        made.matrix, made.translation, made.room = matrix, translation, room
        return made

    @classmethod
    def load_from_numpy(cls, ndarray, min_world=(0.0, 0.0, 0.0), voxel_size=1.0, bg_value=0.0, device=None):
        """A volume of a dense block of numbers, or of vectors of three; its first voxel lies at `min_world`."""
        size = three(voxel_size)
        first = np.around(np.asarray(min_world, dtype=np.float64) / size).astype(np.int64)
        last = first + np.array(ndarray.shape[:3]) - 1
        made = cls.allocate(first, last, voxel_size, bg_value, device=device)
        corners = made.native.leaves().numpy().astype(np.int64)
        places = np.arange(LEAF)
        inside = np.stack([places >> 6, places >> 3 & 7, places & 7], axis=-1)
        at = corners[:, None, :] + inside[None] - first
        present = np.all((at >= 0) & (at < np.array(ndarray.shape[:3])), axis=-1)
        values = np.empty((len(corners), LEAF, *ndarray.shape[3:]), dtype=np.float32)
        values[...] = bg_value
        values[present] = ndarray[tuple(np.moveaxis(at[present], -1, 0))]
        made.native.values().assign(array(values, dtype=made.dtype, device=made.device))
        return made

    def rebuild(self, points):
        """Gives the volume other leaves where it is, in captured graphs too; all values become the background.

        Errors: RuntimeError for a volume that was not made for it, and more nodes than there is room for.
        """
        if self.kind is None:
            raise RuntimeError("the volume was not allocated with rebuildable=True")
        self.native.rebuild(voxels_of(points, self.matrix, self.translation), self.kind == "tiles")

    # Facts

    @property
    def id(self):
        """The number by which kernels find the volume."""
        return self.native.id

    @property
    def dtype(self):
        """The type of the values; None for index grids."""
        found = self.native.value_type()
        return getattr(found, "python", found)

    @property
    def is_index(self):
        """Whether voxels have numbers in place of values."""
        return self.dtype is None

    @property
    def is_rebuildable(self):
        """Whether rebuild() may be called."""
        return self.kind is not None

    def get_rebuild_info(self):
        """What the volume has memory for."""
        return RebuildInfo(self.kind, self.room[0] * LEAF, *self.room)

    def get_grid_info(self):
        """What the grid says of itself."""
        facts = self.native.facts()
        return GridInfo(
            facts["name"], facts["bytes"], 0, 1, TYPE_NAMES[facts["type"]], vec3f(*facts["translation"]),
            NAMED["mat33"](*facts["matrix"]),
        )  # fmt: skip

    def get_voxel_size(self):
        """The sides of a voxel in world space."""
        return self.native.facts()["voxel_size"]

    def get_tile_count(self):
        """The number of leaves."""
        return self.native.facts()["leaves"]

    def get_voxel_count(self):
        """The number of voxels that volume_lookup_index() numbers: all of leaves, or of an index grid the active ones."""
        facts = self.native.facts()
        return facts["voxels"] if facts["type"] == "on_index" else facts["leaves"] * LEAF

    def get_tiles(self, out=None):
        """The least corners of the leaves, an array of (n, 3) int32."""
        return self.given(self.native.leaves().numpy(), out)

    def get_voxels(self, out=None):
        """The voxels in the order of their numbers, an array of (n, 3) int32. Errors: RuntimeError for index grids."""
        if self.is_index:
            raise RuntimeError("get_voxels() of an index grid: ask volume_lookup_index() for the numbers")
        places = np.arange(LEAF)
        inside = np.stack([places >> 6, places >> 3 & 7, places & 7], axis=-1)
        return self.given((self.native.leaves().numpy()[:, None, :] + inside[None]).reshape(-1, 3), out)

    def given(self, numbers, out):
        """Integer coordinates as an array, or written into the caller's."""
        numbers = np.ascontiguousarray(numbers, dtype=np.int32)
        if out is None:
            return array(numbers, dtype=scalars.int32, device=self.device)
        out.assign(numbers)
        return out

    def array(self):
        """The grid as NanoVDB has it in memory: an array of bytes, which is a copy."""
        return array(np.frombuffer(self.native.bytes(), dtype=np.uint8), dtype=scalars.uint8, device=self.device)

    def to_mesh(self, value=0.0):
        """The surface on which the volume has a value: arrays of points, and of three indices for each triangle."""
        return self.native.surface(float(value))


def three(size):
    """The sides of a voxel as three numbers. Errors: ValueError for sides that are not positive."""
    sides = np.broadcast_to(np.asarray(size, dtype=np.float64), (3,)).copy()
    if not np.all(sides > 0):
        raise ValueError(f"voxel_size must be positive, got {size}")
    return sides


def matrix_of(voxel_size, transform):
    """The matrix from index to world space. Errors: ValueError for both or neither of the two."""
    if (voxel_size is None) == (transform is None):
        raise ValueError("either voxel_size or transform must be given")
    if transform is None:
        return np.diag(three(voxel_size))
    return np.asarray(transform, dtype=np.float64).reshape(3, 3)


def type_of_background(given, numbers):
    """The type of values for a background: integers are int32, three numbers vec3, four vec4."""
    if numbers.size == 1:
        return scalars.int32 if isinstance(given, (int, np.integer)) and not isinstance(given, bool) else scalars.float32
    if numbers.size in (3, 4):
        return NAMED[f"vec{numbers.size}f"]
    raise ValueError(f"a background has 1, 3 or 4 numbers, not {numbers.size}")


def voxels_of(points, matrix, translation):
    """The voxels (vec3i) of an array of voxels, or of points of world space."""
    if not hasattr(points, "native_device"):
        raise TypeError("the points of a volume are an array")
    numbers = points.numpy()
    numbers = numbers.reshape(-1, 3)
    if np.issubdtype(numbers.dtype, np.integer):
        if points.dtype is vec3i:
            return points.contiguous()
    else:
        numbers = np.floor((numbers - translation) @ np.linalg.inv(matrix).T + 0.5)
    return array(numbers.astype(np.int32), dtype=vec3i, device=of_native(points.native_device))


class MarchingCubes:
    """Makes triangles of the surfaces of blocks of nx * ny * nz numbers. After surface(), `verts` and `indices` have them.

    Points lie at (i, j, k), or between the two corners of the domain, if these are given.
    """

    def __init__(
        self,
        nx,
        ny,
        nz,
        max_verts=0,
        max_tris=0,
        device=None,
        domain_bounds_lower_corner=None,
        domain_bounds_upper_corner=None,
    ):
        self.verts = None
        self.indices = None
        self.device = device
        self.domain_bounds_lower_corner = domain_bounds_lower_corner
        self.domain_bounds_upper_corner = domain_bounds_upper_corner
        self.resize(nx, ny, nz)

    def resize(self, nx, ny, nz, max_verts=0, max_tris=0):
        """Changes the size of the blocks."""
        self.nx, self.ny, self.nz = nx, ny, nz

    def surface(self, field, threshold):
        """Finds the surface on which a block of numbers has the value `threshold`. Errors: ValueError for other blocks."""
        if tuple(field.shape) != (self.nx, self.ny, self.nz):
            raise ValueError(f"the field has the shape {tuple(field.shape)}, not {(self.nx, self.ny, self.nz)}")
        self.verts, self.indices = self.extract_surface_marching_cubes(
            field, threshold, self.domain_bounds_lower_corner, self.domain_bounds_upper_corner
        )

    @staticmethod
    def extract_surface_marching_cubes(
        field, threshold=0.0, domain_bounds_lower_corner=None, domain_bounds_upper_corner=None
    ):
        """The points and indices of a surface, see MarchingCubes."""
        if field.dtype is not scalars.float32 or field.ndim != 3:
            raise TypeError("the field is an array of three dimensions of float32")
        cells = np.maximum(np.array(field.shape) - 1, 1)
        lower = np.zeros(3) if domain_bounds_lower_corner is None else np.asarray(domain_bounds_lower_corner, dtype=float)
        upper = cells if domain_bounds_upper_corner is None else np.asarray(domain_bounds_upper_corner, dtype=float)
        scale = (upper - lower) / cells
        return _weft.surface_of_block(field, float(threshold), scale.tolist(), lower.tolist())


