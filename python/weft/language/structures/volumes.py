"""Values of volumes, which kernels name by their ids, at voxels, between them, and in world space."""

from ... import _weft
from ...types import scalars
from ...types.annotations import value_type
from ...types.named import NAMED
from .. import library
from ..errors import CodegenError
from .queries import F32, I32, U64, first, results, typed, vec3
from ..values import Static, Value, name_of_type

vec3i = NAMED["vec3i"]
# The types of values, and what the library's functions for them are called.
SUFFIXES = {
    scalars.float16: "float16", scalars.float32: "float32", scalars.float64: "float64", scalars.int32: "int32",
    scalars.uint32: "uint32", scalars.int64: "int64", NAMED["vec3f"]: "vec3f", NAMED["vec3d"]: "vec3d",
    NAMED["vec4f"]: "vec4f", NAMED["vec4d"]: "vec4d",
}  # fmt: skip
SAMPLE = ("id", "uvw", "sampling_mode")
LOOKUP = ("id", "i", "j", "k")


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
        return results(f"volume_sample_{SUFFIXES[kind]}", inputs)[0]

    return handler


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
        if not issubclass_real(kind) or SUFFIXES[kind].startswith("vec4"):
            raise CodegenError(f"{name}(): values of type {SUFFIXES[kind]} have no slope")
        inputs = typed(name, first(args, 3), (U64, vec3, I32), SAMPLE)
        if len(inputs) != 3 or len(args) < 4:
            library.no_form(name, args.values)
        value, slope = results(f"volume_slope_{SUFFIXES[kind]}", inputs[:2])
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


def refused(name):
    """A function that would write a volume: by its id it can only be read."""

    def handler(args):
        raise CodegenError(f"{name}(): a volume that is found by its id is read-only; write Volume.native.values()")

    return handler


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
    "volume_index_to_world": moved("volume_index_to_world", "volume_index_to_world", "uvw"),
    "volume_world_to_index": moved("volume_world_to_index", "volume_world_to_index", "xyz"),
    "volume_index_to_world_dir": moved("volume_index_to_world_dir", "volume_index_to_world_dir", "uvw"),
    "volume_world_to_index_dir": moved("volume_world_to_index_dir", "volume_world_to_index_dir", "xyz"),
    "volume_transform": moved("volume_transform", "volume_index_to_world", "uvw"),
    "volume_transform_inv": moved("volume_transform_inv", "volume_world_to_index", "xyz"),
}
for _name in ("volume_store", "volume_store_f", "volume_store_v", "volume_store_i"):
    HANDLERS[_name] = refused(_name)
