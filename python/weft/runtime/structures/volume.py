"""Volumes: sparse grids of voxels in NanoVDB's form, which kernels find by their ids (uint64)."""

import ctypes
from typing import NamedTuple

import numpy as np

from ... import _weft
from ...types import scalars
from ...types.annotations import value_type
from ...types.named import NAMED
from ...types.numpy_types import element_layout
from ..array import array
from ..device import device_from, of_native
from . import grid_memory
from .grid_memory import FeatureArrayInfo
from .voxels import matrix_of, nodes_of, three, type_of_background, vec3i, voxels_of

vec3f = NAMED["vec3f"]
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


class ActiveStats(NamedTuple):
    """What a grid has at present."""

    voxel_count: int
    leaf_node_count: int
    lower_node_count: int
    upper_node_count: int


class Volume:
    """A sparse grid of voxels. `data` is an array of bytes that holds a grid as NanoVDB has it in memory; it is copied.

    Errors: RuntimeError, with the reason, for bytes that are no grid.
    """

    CLOSEST = 0
    LINEAR = 1
    CUBIC = 2
    """By Catmull-Rom splines, whose slopes are continuous; where a kernel names it, not as a variable."""
    REBUILD_SUCCESS = 0
    REBUILD_LEAF_CAPACITY_EXCEEDED, REBUILD_LOWER_CAPACITY_EXCEEDED, REBUILD_UPPER_CAPACITY_EXCEEDED = 1, 2, 4
    REBUILD_VOXEL_CAPACITY_EXCEEDED, REBUILD_INVALID_INPUT = 8, 16
    GridInfo, RebuildInfo, ActiveStats, FeatureArrayInfo = GridInfo, RebuildInfo, ActiveStats, FeatureArrayInfo

    def __init__(self, data, copy=True):
        self.become(_weft.Volume.make_from_array(data), None)

    def become(self, native, kind):
        """Takes a volume of the library's. `kind` says of what it may be rebuilt: "tiles", "voxels", or None."""
        self.native = native
        self.kind = kind
        self.room = (0, 0, 0)
        self.source = None  # the file, the device, the name and the number of a grid that was read
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
            file_or_buffer = bytes(file_or_buffer)
            made = cls.around(_weft.Volume.make_from_bytes(file_or_buffer, device, name, index))
        else:
            file_or_buffer = str(file_or_buffer)
            made = cls.around(_weft.Volume.make_from_file(file_or_buffer, device, name, index))
        made.source = (file_or_buffer, device, name, index)
        return made

    @staticmethod
    def grid_names(path):
        """The names of the grids of a file, in its order. Errors: RuntimeError that names the file and the reason."""
        return _weft.Volume.names(str(path))

    def load_next_grid(self):
        """The next grid of the file of which this one was read by its number, which is read again; None after the last one, and
        for a volume that is of no file.

        Errors: RuntimeError for a grid that was chosen by its name, whose number is not known.
        """
        if self.source is None:
            return None
        file, device, name, index = self.source
        if name:
            raise RuntimeError("the grid was chosen by its name: load those of a file by their numbers")
        try:
            return type(self).load_from_nvdb(file, of_native(device) if device else None, "", index + 1)
        except _weft.Error as error:
            if error.kind == "invalid argument":
                return None
            raise

    @classmethod
    def load_from_address(cls, grid_ptr, buffer_size=0, device=None):
        """A volume of a grid that lies in memory of the processor, as NanoVDB has it there; it is copied. Without a size, it is
        what the grid says.

        Errors: RuntimeError for the address 0, and for bytes that are no grid. What is at another wrong address is undefined.
        """
        if not grid_ptr:
            raise RuntimeError("Invalid grid buffer pointer")
        size = buffer_size or int.from_bytes(ctypes.string_at(grid_ptr + 32, 8), "little")
        content = np.frombuffer(ctypes.string_at(grid_ptr, size), dtype=np.uint8)
        return cls(array(content, dtype=scalars.uint8, device=device))

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
        status=None,
        point_mask=None,
        dtype=None,
    ):
        r"""A volume with the leaves in which the given points lie: voxels (int32), or points of world space (float32).
        All of their voxels are active and have the value `bg_value`, whose type is the volume's unless `dtype` is given.
        Without a value (None) it is an index grid, whose voxels have numbers: see volume_lookup_index().

        With `rebuildable`, or room for nodes, rebuild() may give it other leaves.

        \param status  an array of one uint32, which is set to REBUILD_SUCCESS: what does not fit raises
        \param point_mask  (n) int32: 0 for points that do not count
        Errors: RuntimeError for an index grid that is to be rebuilt.
        """
        room = (max_tiles or 0, max_lower_nodes or 0, max_upper_nodes or 0)
        space = (voxel_size, translation, transform)
        return cls.made("tiles", tile_points, space, bg_value, room, dtype, rebuildable, status, point_mask)

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
        status=None,
        point_mask=None,
        bg_value=None,
        dtype=None,
    ):
        """A volume in which the given voxels alone are active: an index grid, whose active voxels have numbers, or with
        `bg_value` one with values. See allocate_by_tiles().
        """
        room = (max_leaf_nodes or 0, max_lower_nodes or 0, max_upper_nodes or 0)
        space = (voxel_size, translation, transform)
        return cls.made("voxels", voxel_points, space, bg_value, room, dtype, rebuildable, status, point_mask)

    @classmethod
    def made(cls, kind, points, space, bg_value, room, dtype, rebuildable, status, mask):
        """A volume from points on their device; `space` are the size of voxels, the translation and the transform."""
        voxel_size, translation, transform = space
        matrix = matrix_of(voxel_size, transform)
        translation = np.asarray(translation, dtype=np.float64).reshape(3)
        voxels = voxels_of(points, matrix, translation, mask)
        rebuildable = rebuildable or any(room)
        transforms = matrix.ravel().tolist(), translation.tolist()
        if bg_value is None:
            if rebuildable:
                raise RuntimeError("index grids are made once: give bg_value for a volume that is made again")
            numbers = np.ascontiguousarray(voxels.numpy(), dtype=np.int32).tobytes()
            native = _weft.volume_of_indices(numbers, kind == "tiles", *transforms, voxels.native_device)
        else:
            background = np.atleast_1d(np.asarray(bg_value, dtype=np.float64))
            dtype = type_of_background(bg_value, background) if dtype is None else dtype
            native = _weft.Volume.make(
                dtype.native, voxels, kind == "tiles", background.tolist(), *transforms, "", room
            )
        made = cls.around(native, kind if rebuildable else None)
        made.matrix, made.translation, made.room = matrix, translation, room
        if rebuildable:
            stats = made.get_active_stats()[1:]
            made.room = tuple(max(pair) for pair in zip(room, stats))
        if status is not None:
            status.fill_(cls.REBUILD_SUCCESS)
        return made

    # From things in world space

    @classmethod
    def from_mesh(cls, mesh, voxel_size=0.1, half_width=3.0, sign="normal", name=""):
        r"""The level set of a Mesh: the distance from its closest point, negative inside, cut off at `half_width` voxels on both
        sides of the surface.

        \param sign  how inside is told: "normal" for closed meshes, "majority" by rays, "winding" for meshes with holes, made
                     with support_winding_number; "none" gives distances without a sign
        Errors: ValueError for another sign; Error for options out of range, and for triangles that are too far or too large.
        """
        return cls.around(_weft.volume_from_mesh(mesh, sign, float(voxel_size), float(half_width), name))

    @classmethod
    def from_spheres(cls, centers, radii, voxel_size=0.1, half_width=3.0, name=""):
        """The level set of spheres, given by arrays of their centers (vec3) and radii (float32): the distance from the surface
        of all together, negative inside. Errors: Error for spheres without radius, that are not finite, or too far.
        """
        return cls.around(_weft.volume_from_spheres(centers, radii, float(voxel_size), float(half_width), name))

    @classmethod
    def from_points(cls, points, radius, voxel_size=0.1, name=""):
        """The density of points (an array of vec3), as fog: at a voxel the number of points within `radius` in each unit of
        volume, weighted so that it falls to 0 there. Errors: Error for points that are not finite or too far.
        """
        return cls.around(_weft.volume_from_points(points, float(radius), float(voxel_size), name))

    @classmethod
    def from_dense(cls, values, min=(0, 0, 0), bg_value=0.0, voxel_size=None, translation=(0.0, 0.0, 0.0), transform=None):
        """A volume of an array of three dimensions, on its device, whose first value is that of the voxel `min`. Values that
        differ from `bg_value` are active; leaves without any are left out.

        Errors: TypeError for elements of which there are no volumes.
        """
        matrix = np.eye(3) if voxel_size is None and transform is None else matrix_of(voxel_size, transform)
        background = np.atleast_1d(np.asarray(bg_value, dtype=np.float64)).tolist()
        lower = tuple(int(k) for k in min)
        translation = [float(x) for x in translation]
        return cls.around(_weft.volume_from_dense(values, lower, background, matrix.ravel().tolist(), translation, ""))

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

    def rebuild(self, points, status=None, point_mask=None):
        r"""Gives the volume other leaves where it is, in captured graphs too; all values become the background.

        \param status  an array of one uint32, which is set to REBUILD_SUCCESS, or to what there is no room for: the volume stays
                       as it was then. The call waits for it. Returned
        \param point_mask  (n) int32: 0 for points that do not count
        Errors: RuntimeError for a volume that was not made for it, and, without `status`, for more nodes than there is room for.
        """
        if self.kind is None:
            raise RuntimeError("the volume was not allocated with rebuildable=True")
        voxels = voxels_of(points, self.matrix, self.translation, point_mask)
        if status is not None:
            missing = [count > room for count, room in zip(nodes_of(voxels.numpy()), self.room)]
            status.fill_(sum(1 << k for k, is_missing in enumerate(missing) if is_missing))
            if any(missing):
                return status
        self.native.rebuild(voxels, self.kind == "tiles")
        return status

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

    def get_active_stats(self):
        """The numbers of active voxels (of an index grid, of voxels with numbers), leaves and other nodes at present."""
        return ActiveStats(self.native.facts()["voxels"], *grid_memory.node_counts(self.native.bytes()))

    def get_voxels(self, out=None):
        """The voxels in the order of their numbers, an array of (n, 3) int32."""
        facts = self.native.facts()
        if facts["type"] == "on_index":
            voxels, numbers = self.native.voxels()
            return self.given(voxels.numpy()[np.argsort(numbers.numpy())], out)
        places = np.arange(LEAF)
        inside = np.stack([places >> 6, places >> 3 & 7, places & 7], axis=-1)
        return self.given((self.native.leaves().numpy()[:, None, :] + inside[None]).reshape(-1, 3), out)

    def get_feature_array_count(self):
        """The number of arrays that the grid has beside its values ("blind data")."""
        return grid_memory.feature_count(self.native.bytes())

    def get_feature_array_info(self, feature_index):
        """What the grid says of such an array. Errors: RuntimeError for a number that there is not."""
        return grid_memory.feature_info(self.native.bytes(), feature_index)

    def feature_array(self, feature_index, dtype=None):
        """Such an array, copied; `dtype` is that of its elements, if the grid's is not wanted or not known (uint8 then).

        Errors: RuntimeError for a number that there is not, and for elements of another size.
        """
        memory = self.native.bytes()
        info = grid_memory.feature_info(memory, feature_index)
        dtype = grid_memory.DTYPES.get(info.type_str, scalars.uint8) if dtype is None else value_type(dtype)
        scalar, shape = element_layout(dtype)
        numbers = grid_memory.feature_bytes(memory, info, dtype.native.size).view(scalar)
        return array(numbers.reshape(-1, *shape), dtype=dtype, device=self.device)

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
