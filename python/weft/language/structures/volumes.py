"""Values of volumes, which kernels name by their ids, at voxels, between them, and in world space."""

from ... import _weft
from ...types import scalars
from ...types.annotations import value_type
from ...types.named import NAMED
from ...types.structs import struct
from .. import library, operators
from ..emitter import adapted_to
from ..errors import CodegenError
from ..values import ArrayValue, Static, StructValue, Value, fixed, literal, name_of_type
from .queries import F32, I32, U64, first, plain, results, typed, vec3

vec3i = NAMED["vec3i"]
# The types of values, and what the library's functions for them are called.
SUFFIXES = {
    scalars.float16: "float16", scalars.float32: "float32", scalars.float64: "float64", scalars.int32: "int32",
    scalars.uint32: "uint32", scalars.int64: "int64", NAMED["vec3f"]: "vec3f", NAMED["vec3d"]: "vec3d",
    NAMED["vec4f"]: "vec4f", NAMED["vec4d"]: "vec4d",
}  # fmt: skip
SAMPLE = ("id", "uvw", "sampling_mode")
LOOKUP = ("id", "i", "j", "k")
CUBIC = 2  # Volume.CUBIC


@struct
class VolumeRay:
    """Where a ray meets a surface: whether it does, how far along, and the normal toward the greater values."""

    result: bool
    t: float
    normal: vec3


class SegmentsValue:
    """The parts of a ray in active space, which a kernel goes through with a loop."""

    __slots__ = ("native",)
    stays = True

    def __init__(self, native):
        self.native = native

    @property
    def type(self):
        """The parts themselves: functions that take them are traced in place."""
        return self

    def __str__(self):
        return "walk through a volume"


def dtype_of(name, args, place):
    """The type of values that a call names by its keyword `dtype`, or by its argument at a place.

    Errors: CodegenError for what is no type of a volume's values.
    """
    given = args.keywords.get("dtype", args.values[place] if len(args) > place else None)
    if not isinstance(given, Static):
        raise CodegenError(f"{name}() needs dtype, the type of the volume's values")
    dtype = value_type(given.object)
    if dtype not in SUFFIXES:
        raise CodegenError(f"{name}(): no volume has values of type {name_of_type(given)}")
    return dtype


def voxel(name, args):
    """The id and the voxel of a call with coordinates i, j, k."""
    inputs = typed(name, first(args, 4), (U64, I32, I32, I32), LOOKUP)
    if len(inputs) != 4:
        library.no_form(name, args.values)
    return [inputs[0], Value(vec3i, tuple(v.id for v in inputs[1:]))]


def sample(name, dtype=None):
    """A function that gives the value at a point of index space."""

    def handler(args):
        kind = dtype or dtype_of(name, args, 3)
        inputs = typed(name, first(args, 3), (U64, vec3, I32), SAMPLE)
        if len(inputs) == 2 and not issubclass_real(kind):
            inputs.append(Value(I32, (_weft.constant(_weft.INT32, 0),)))
        if len(inputs) != 3:
            library.no_form(name, args.values)
        if inputs[2].literal == CUBIC:
            return cubic(name, kind, inputs)
        return results(f"volume_sample_{SUFFIXES[kind]}", inputs)[0]

    return handler


def cubic(name, kind, inputs):
    """The value at a point by Catmull-Rom splines. Errors: CodegenError for integers."""
    if not issubclass_real(kind):
        raise CodegenError(f"{name}(): values of type {SUFFIXES[kind]} are sampled closest alone")
    return results(f"volume_cubic_{SUFFIXES[kind]}", inputs[:2])[0]


def issubclass_real(kind):
    """Whether values of a type can be sampled between voxels."""
    return kind not in (scalars.int32, scalars.uint32, scalars.int64)


def sample_world(args):
    """The value at a point of world space, as the early documents have it."""
    inputs = typed("volume_sample_world", first(args, 3), (U64, vec3, I32), ("id", "xyz", "sampling_mode"))
    if len(inputs) != 3:
        library.no_form("volume_sample_world", args.values)
    point = results("volume_world_to_index", inputs[:2])[0]
    return results("volume_sample_float32", [inputs[0], point, inputs[2]])[0]


def sample_grad(name, dtype=None):
    """A function that gives the value at a point, and writes its derivative into the caller's variable."""

    def handler(args):
        kind = dtype or dtype_of(name, args, 4)
        if not issubclass_real(kind):
            raise CodegenError(f"{name}(): values of type {SUFFIXES[kind]} have no slope")
        inputs = typed(name, first(args, 3), (U64, vec3, I32), SAMPLE)
        if len(inputs) != 3 or len(args) < 4:
            library.no_form(name, args.values)
        way = "cubic_slope" if inputs[2].literal == CUBIC else "slope"
        value, slope = results(f"volume_{way}_{SUFFIXES[kind]}", inputs[:2])
        args.assign(3, slope)
        return value

    return handler


def lookup(name, dtype=None):
    """A function that gives the value of a voxel."""

    def handler(args):
        if dtype is None and len(args) == 2 and not args.keywords:
            # The early documents' form: a voxel as a vector, and numbers of float32.
            return results("volume_lookup_float32", typed(name, args, (U64, vec3i)))[0]
        kind = dtype or dtype_of(name, args, 4)
        return results(f"volume_lookup_{SUFFIXES[kind]}", voxel(name, args))[0]

    return handler


def lookup_index(args):
    """The number of a voxel, -1 for one that has none."""
    return results("volume_lookup_index", voxel("volume_lookup_index", args))[0]


def moved(name, native, parameter):
    """A function from one space to the other."""

    def handler(args):
        inputs = typed(name, first(args, 2), (U64, vec3), ("id", parameter))
        if len(inputs) != 2:
            library.no_form(name, args.values)
        return results(native, inputs)[0]

    return handler


def store(name, dtype=None):
    """A function that replaces the value of a voxel of a leaf; voxels outside of all leaves stay as they are."""

    def handler(args):
        value = args.keywords.get("value", args.values[4] if len(args) > 4 else None)
        value = adapted_to(value, dtype) if dtype is not None else fixed(value)
        kind = value.type if isinstance(value, Value) else None
        if kind not in SUFFIXES or kind is not (dtype or kind):
            library.no_form(name, [*args.values, *args.keywords.values()])
        inputs = voxel(name, args)
        values = _weft.stored_values(inputs[0].id, kind.native)
        number = results("volume_lookup_index", inputs)[0]
        _weft.open_if(operators.binary("ge", number, literal(0)).id)
        leaf = operators.binary("rshift", number, literal(9))
        place = operators.binary("bit_and", number, literal(511))
        values.store((leaf.id, place.id), value.ids)
        _weft.close_if()

    return handler


def beside(name, args):
    """The inputs of a sample among values that an array holds: the id, the point, the way, the array, and the background.

    Errors: CodegenError for other values than float32 and vec3f, and for arrays that are views.
    """
    names = ("id", "uvw", "sampling_mode", "voxel_data", "background")
    inputs = typed(name, first(args, 3), (U64, vec3, I32), SAMPLE)
    rest = [*args.values[3:5], *(args.keywords[n] for n in names[max(len(args), 3) :] if n in args.keywords)]
    if len(inputs) != 3 or len(rest) != 2 or not isinstance(rest[0], ArrayValue):
        library.no_form(name, [*args.values, *args.keywords.values()])
    values, background = rest[0], adapted_to(rest[1], rest[0].dtype)
    if values.dtype not in (F32, vec3) or values.ndim != 1 or getattr(background, "type", None) is not values.dtype:
        raise CodegenError(
            f"{name}(): the values of voxels are an array of one dimension of float32 or vec3f, with a background of the "
            "same type; other values are found by volume_lookup_index()"
        )
    if not isinstance(values.ref, _weft.ArrayRef):
        raise CodegenError(f"{name}(): the values of voxels are no indexed array and no view")
    return [*inputs, values, background]


def sample_index(args):
    """The value at a point of index space among those of an array, in the order of volume_lookup_index()."""
    volume, point, way, values, background = beside("volume_sample_index", args)
    made = _weft.volume_sample_index(volume.id, point.ids, way.id, values.ref, background.ids)
    return Value(values.dtype, made)


def sample_grad_index(args):
    """The same, and its derivative by the point, linear between voxels, which is written into the caller's variable."""
    if len(args) < 6:
        library.no_form("volume_sample_grad_index", args.values)
    volume, point, way, values, background = beside("volume_sample_grad_index", args)
    made = _weft.volume_sample_index(volume.id, point.ids, way.id, values.ref, background.ids)
    slope = _weft.volume_slope_index(volume.id, point.ids, values.ref, background.ids)
    args.assign(5, Value(vec3 if values.dtype is F32 else NAMED["mat33f"], slope))
    return Value(values.dtype, made)


def ray(args):
    """The first place on a ray of world space at which a volume's values pass a number."""
    names = ("id", "start", "dir", "max_t", "value")
    kind = dtype_of("volume_ray", args, 5) if len(args) > 5 or "dtype" in args.keywords else F32
    if kind not in scalars.FLOATS:
        raise CodegenError(f"volume_ray(): values of type {SUFFIXES[kind]} have no surface")
    inputs = typed("volume_ray", first(args, 5), (U64, vec3, vec3, F32, F32), names)
    if len(inputs) == 4:
        inputs.append(Value(F32, (_weft.constant(_weft.FLOAT32, 0.0),)))
    if len(inputs) != 5:
        library.no_form("volume_ray", args.values)
    return StructValue(VolumeRay, dict(zip(VolumeRay._wp_layout_, results(f"volume_ray_{SUFFIXES[kind]}", inputs))))


def segments(args):
    """Begins a walk through the parts of a ray of world space that lie in leaves and in active tiles."""
    inputs = typed("volume_segments", args, (U64, vec3, vec3, F32), ("id", "start", "dir", "max_t"))
    if len(inputs) != 4:
        library.no_form("volume_segments", args.values)
    volume, start, way, most = inputs
    return SegmentsValue(_weft.VolumeSegments(volume.id, start.ids, way.ids, most.ids))


def segments_next(args):
    """Goes to the next part, and writes where it begins and ends into the caller's variables."""
    args.expect("volume_segments_next", 3)
    if not isinstance(args[0], SegmentsValue):
        library.no_form("volume_segments_next", args.values)
    more, begin, end = args[0].native.next()
    args.assign(1, Value(F32, (begin,)))
    args.assign(2, Value(F32, (end,)))
    return Value(scalars.bool, (more,))


vec3f = NAMED["vec3f"]
HANDLERS = {
    "volume_sample": sample("volume_sample"),
    "volume_sample_f": sample("volume_sample_f", F32),
    "volume_sample_v": sample("volume_sample_v", vec3f),
    "volume_sample_i": sample("volume_sample_i", I32),
    "volume_sample_local": sample("volume_sample_local", F32),
    "volume_sample_world": sample_world,
    "volume_sample_grad": sample_grad("volume_sample_grad"),
    "volume_sample_grad_f": sample_grad("volume_sample_grad_f", F32),
    "volume_lookup": lookup("volume_lookup"),
    "volume_lookup_f": lookup("volume_lookup_f", F32),
    "volume_lookup_v": lookup("volume_lookup_v", vec3f),
    "volume_lookup_i": lookup("volume_lookup_i", I32),
    "volume_lookup_index": lookup_index,
    "volume_store": store("volume_store"),
    "volume_store_f": store("volume_store_f", F32),
    "volume_store_v": store("volume_store_v", vec3f),
    "volume_store_i": store("volume_store_i", I32),
    "volume_sample_index": sample_index,
    "volume_sample_grad_index": sample_grad_index,
    "volume_voxel_count": plain("volume_voxel_count", "volume_voxel_count", (U64,), ("id",)),
    "volume_voxel": plain("volume_voxel", "volume_voxel", (U64, I32), ("id", "number")),
    "volume_ray": ray,
    "volume_segments": segments,
    "volume_segments_next": segments_next,
    "volume_index_to_world": moved("volume_index_to_world", "volume_index_to_world", "uvw"),
    "volume_world_to_index": moved("volume_world_to_index", "volume_world_to_index", "xyz"),
    "volume_index_to_world_dir": moved("volume_index_to_world_dir", "volume_index_to_world_dir", "uvw"),
    "volume_world_to_index_dir": moved("volume_world_to_index_dir", "volume_world_to_index_dir", "xyz"),
    "volume_transform": moved("volume_transform", "volume_index_to_world", "uvw"),
    "volume_transform_inv": moved("volume_transform_inv", "volume_world_to_index", "xyz"),
}
