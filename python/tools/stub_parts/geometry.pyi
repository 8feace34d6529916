class BvhQuery:
    def __class_getitem__(cls, item: Any) -> type[BvhQuery]: ...
    def __iter__(self) -> Iterator[int]: ...

class MeshQuery:
    def __class_getitem__(cls, item: Any) -> type[MeshQuery]: ...
    def __iter__(self) -> Iterator[int]: ...

class MeshQueryAABB:
    def __class_getitem__(cls, item: Any) -> type[MeshQueryAABB]: ...
    def __iter__(self) -> Iterator[int]: ...

class HashGridQuery:
    def __class_getitem__(cls, item: Any) -> type[HashGridQuery]: ...
    def __iter__(self) -> Iterator[int]: ...

class MeshQueryPoint:
    result: bool
    sign: float
    face: int
    u: float
    v: float
    def __init__(self) -> None: ...

class MeshQueryRay:
    result: bool
    sign: float
    face: int
    t: float
    u: float
    v: float
    normal: vec3f
    def __init__(self) -> None: ...

class VolumeRay:
    result: bool
    t: float
    normal: vec3f
    def __init__(self) -> None: ...

class _MeshArrays:
    points: array[vec3f, Literal[1]]
    velocities: array[vec3f, Literal[1]]
    indices: array[int, Literal[1]]

class _RayHits:
    def __iter__(self) -> Iterator[MeshQueryRay]: ...

class _Segments: ...
class _Tree: ...

def load_mesh(path: Any) -> MeshData: ...
def save_mesh(path: Any, points: Any, indices: Any) -> None: ...

class Mesh:
    device: Device
    indices: array[int, Literal[1]]
    groups: array[int, Literal[1]] | None
    points: Any
    velocities: Any
    def __init__(
        self,
        points: array[vec3f, Any],
        indices: array[int, Any],
        velocities: array[vec3f, Any] | None = ...,
        support_winding_number: bool = ...,
        bvh_constructor: str | None = ...,
        bvh_leaf_size: int | None = ...,
        groups: array[int, Any] | None = ...,
    ) -> None: ...
    @classmethod
    def of(cls, data: MeshData, device: _AnyDevice = ..., **options: Any) -> Self: ...
    @classmethod
    def load(cls, path: Any, device: _AnyDevice = ..., **options: Any) -> Self: ...
    def save(self, path: Any) -> None: ...
    @property
    def id(self) -> int: ...
    @property
    def size(self) -> int: ...
    def refit(self) -> None: ...
    def rebuild(self) -> None: ...

class Bvh:
    device: Device
    lowers: array[vec3f, Any]
    uppers: array[vec3f, Any]
    groups: array[int, Any] | None
    def __init__(
        self,
        lowers: array[vec3f, Any],
        uppers: array[vec3f, Any],
        constructor: str | None = ...,
        groups: array[int, Any] | None = ...,
        leaf_size: int = ...,
        curve_bits: int = ...,
    ) -> None: ...
    @property
    def id(self) -> int: ...
    @property
    def size(self) -> int: ...
    def refit(self) -> None: ...
    def rebuild(self, constructor: str | None = ...) -> None: ...

class HashGrid:
    device: Device
    def __init__(
        self,
        dim_x: int,
        dim_y: int,
        dim_z: int,
        device: _AnyDevice = ...,
        dtype: type | None = ...,
        deterministic: bool = ...,
    ) -> None: ...
    @property
    def id(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def dims(self) -> tuple[int, int, int]: ...
    def build(self, points: array[vec3f, Any], radius: float, groups: array[int, Any] | None = ...) -> None: ...
    def reserve(self, num_points: int, with_groups: bool = ...) -> None: ...

def is_cubql_available() -> bool: ...

_Three = float | Sequence[float] | _npt.NDArray[Any]
_Corner = Sequence[float] | _npt.NDArray[Any] | vec3f

class Volume:
    CLOSEST: ClassVar[int]
    LINEAR: ClassVar[int]
    CUBIC: ClassVar[int]
    REBUILD_SUCCESS: ClassVar[int]
    REBUILD_LEAF_CAPACITY_EXCEEDED: ClassVar[int]
    REBUILD_LOWER_CAPACITY_EXCEEDED: ClassVar[int]
    REBUILD_UPPER_CAPACITY_EXCEEDED: ClassVar[int]
    REBUILD_VOXEL_CAPACITY_EXCEEDED: ClassVar[int]
    REBUILD_INVALID_INPUT: ClassVar[int]
    class GridInfo(typing.NamedTuple):
        name: str
        size_in_bytes: int
        grid_index: int
        grid_count: int
        type_str: str
        translation: vec3f
        transform_matrix: mat33f

    class RebuildInfo(typing.NamedTuple):
        kind: str | None
        max_voxel_count: int
        max_leaf_node_count: int
        max_lower_node_count: int
        max_upper_node_count: int

    class ActiveStats(typing.NamedTuple):
        voxel_count: int
        leaf_node_count: int
        lower_node_count: int
        upper_node_count: int

    native: _weft.Volume
    kind: str | None
    room: tuple[int, int, int]
    device: Device
    def __init__(self, data: _Bytes, copy: bool = ...) -> None: ...
    def become(self, native: _weft.Volume, kind: str | None) -> None: ...
    @classmethod
    def around(cls, native: _weft.Volume, kind: str | None = ...) -> Self: ...
    @classmethod
    def load_from_nvdb(
        cls, file_or_buffer: Any, device: _AnyDevice = ..., name: str = ..., index: int = ...
    ) -> Self: ...
    @classmethod
    def load_from_address(cls, grid_ptr: int, buffer_size: int = ..., device: _AnyDevice = ...) -> Self: ...
    def load_next_grid(self) -> Self | None: ...
    @staticmethod
    def grid_names(path: Any) -> list[str]: ...
    @classmethod
    def from_mesh(
        cls, mesh: Mesh, voxel_size: float = ..., half_width: float = ..., sign: str = ..., name: str = ...
    ) -> Self: ...
    @classmethod
    def from_spheres(
        cls, centers: _Points, radii: _Points, voxel_size: float = ..., half_width: float = ..., name: str = ...
    ) -> Self: ...
    @classmethod
    def from_points(cls, points: _Points, radius: float, voxel_size: float = ..., name: str = ...) -> Self: ...
    @classmethod
    def from_dense(
        cls,
        values: _Points,
        min: Sequence[int] = ...,
        bg_value: Any = ...,
        voxel_size: _Three | None = ...,
        translation: _Corner = ...,
        transform: Any = ...,
    ) -> Self: ...
    def save_to_nvdb(self, path: Any, codec: Literal["none", "zip", "blosc"] = ...) -> None: ...
    @classmethod
    def allocate(
        cls,
        min: _Corner,
        max: _Corner,
        voxel_size: _Three,
        bg_value: Any = ...,
        translation: _Corner = ...,
        points_in_world_space: bool = ...,
        device: _AnyDevice = ...,
    ) -> Self: ...
    @classmethod
    def allocate_by_tiles(
        cls,
        tile_points: _Points,
        voxel_size: _Three | None = ...,
        bg_value: Any = ...,
        translation: _Corner = ...,
        device: _AnyDevice = ...,
        transform: Any = ...,
        rebuildable: bool = ...,
        max_tiles: int | None = ...,
        max_lower_nodes: int | None = ...,
        max_upper_nodes: int | None = ...,
        status: _Points | None = ...,
        point_mask: _Points | None = ...,
        dtype: type | None = ...,
    ) -> Self: ...
    @classmethod
    def allocate_by_voxels(
        cls,
        voxel_points: _Points,
        voxel_size: _Three | None = ...,
        translation: _Corner = ...,
        device: _AnyDevice = ...,
        transform: Any = ...,
        rebuildable: bool = ...,
        max_active_voxels: int | None = ...,
        max_leaf_nodes: int | None = ...,
        max_lower_nodes: int | None = ...,
        max_upper_nodes: int | None = ...,
        status: _Points | None = ...,
        point_mask: _Points | None = ...,
        bg_value: Any = ...,
        dtype: type | None = ...,
    ) -> Self: ...
    @classmethod
    def load_from_numpy(
        cls,
        ndarray: _npt.NDArray[Any],
        min_world: _Corner = ...,
        voxel_size: _Three = ...,
        bg_value: Any = ...,
        device: _AnyDevice = ...,
    ) -> Self: ...
    def rebuild(self, points: _Points, status: _Points | None = ..., point_mask: _Points | None = ...) -> None: ...
    @property
    def id(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def is_index(self) -> bool: ...
    @property
    def is_rebuildable(self) -> bool: ...
    def get_rebuild_info(self) -> Volume.RebuildInfo: ...
    def get_grid_info(self) -> Volume.GridInfo: ...
    def get_voxel_size(self) -> tuple[float, float, float]: ...
    def get_active_stats(self) -> Volume.ActiveStats: ...
    def get_feature_array_count(self) -> int: ...
    def feature_array(self, feature_index: int, dtype: type | None = ...) -> _Points: ...
    def get_tile_count(self) -> int: ...
    def get_voxel_count(self) -> int: ...
    def get_tiles(self, out: _Points | None = ...) -> _Points: ...
    def get_voxels(self, out: _Points | None = ...) -> _Points: ...
    def array(self) -> _Bytes: ...
    def to_mesh(self, value: float = ...) -> tuple[_Vertices, _Indices]: ...

_Bytes = array[uint8, Any]
_Points = array[Any, Any]
_Vertices = array[vec3f, Literal[1]]
_Indices = array[int, Literal[1]]

class MarchingCubes:
    verts: Any
    indices: Any
    device: Any
    nx: int
    ny: int
    nz: int
    domain_bounds_lower_corner: Any
    domain_bounds_upper_corner: Any
    def __init__(
        self,
        nx: int,
        ny: int,
        nz: int,
        max_verts: int = ...,
        max_tris: int = ...,
        device: _AnyDevice = ...,
        domain_bounds_lower_corner: _Corner | None = ...,
        domain_bounds_upper_corner: _Corner | None = ...,
    ) -> None: ...
    def resize(self, nx: int, ny: int, nz: int, max_verts: int = ..., max_tris: int = ...) -> None: ...
    def surface(self, field: array[float, Any], threshold: float) -> None: ...
    @staticmethod
    def extract_surface_marching_cubes(
        field: array[float, Any],
        threshold: float = ...,
        domain_bounds_lower_corner: _Corner | None = ...,
        domain_bounds_upper_corner: _Corner | None = ...,
    ) -> tuple[_Vertices, _Indices]: ...
