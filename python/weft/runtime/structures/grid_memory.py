"""What a grid says in its memory, as NanoVDB lays it out, beyond what the library reads: blind data, counts of nodes."""

from typing import NamedTuple

import numpy as np

from ...types import scalars
from ...types.named import NAMED

# Places in bytes: in the header, in the tree after it, and in the entry of blind data.
GRID_INDEX, GRID_COUNT, BLIND_OFFSET, BLIND_COUNT, NODE_COUNTS = 24, 28, 640, 648, 672 + 32
ENTRY = np.dtype(
    {
        "names": ["distance", "count", "size", "type", "name"],
        "formats": ["i8", "u8", "u4", "u4", "S256"],
        "offsets": [0, 8, 16, 28, 32],
        "itemsize": 288,
    }
)
# The names of types, by NanoVDB's numbers.
TYPES = [
    "?", "float", "double", "int16", "int32", "int64", "Vec3f", "Vec3d", "Mask", "Half", "uint32", "bool", "RGBA8",
    "Float4", "Float8", "Float16", "FloatN", "Vec4f", "Vec4d", "Index", "OnIndex", "IndexMask", "OnIndexMask",
    "PointIndex", "Vec3u8", "Vec3u16", "uint8",
]  # fmt: skip
DTYPES = {
    "float": scalars.float32, "double": scalars.float64, "int16": scalars.int16, "int32": scalars.int32,
    "int64": scalars.int64, "Vec3f": NAMED["vec3f"], "Vec3d": NAMED["vec3d"], "Half": scalars.float16,
    "uint32": scalars.uint32, "bool": scalars.bool, "Vec4f": NAMED["vec4f"], "Vec4d": NAMED["vec4d"],
    "uint8": scalars.uint8,
}  # fmt: skip


class FeatureArrayInfo(NamedTuple):
    """What a grid says of an array that it has beside its values."""

    name: str
    ptr: int
    """Its place in the grid, in bytes: the package reads it from there."""
    value_size: int
    value_count: int
    type_str: str


def number(memory, at):
    """An integer of 32 bits at a place of a grid's bytes."""
    return int(np.frombuffer(memory, dtype=np.uint32, count=1, offset=at)[0])


def node_counts(memory):
    """The numbers of leaves, lower and upper nodes."""
    return tuple(number(memory, NODE_COUNTS + 4 * k) for k in range(3))


def feature_count(memory):
    """The number of arrays that a grid has beside its values."""
    return number(memory, BLIND_COUNT)


def feature_info(memory, index):
    """What a grid says of an array by its number. Errors: RuntimeError for a number that there is not."""
    if not 0 <= index < feature_count(memory):
        raise RuntimeError(f"Invalid feature array: the grid has {feature_count(memory)}, and not number {index}")
    first = int(np.frombuffer(memory, dtype=np.int64, count=1, offset=BLIND_OFFSET)[0])
    at = first + index * ENTRY.itemsize
    entry = np.frombuffer(memory, dtype=ENTRY, count=1, offset=at)[0]
    kind = int(entry["type"])
    return FeatureArrayInfo(
        entry["name"].decode("ascii", "replace"),
        at + int(entry["distance"]),
        int(entry["size"]),
        int(entry["count"]),
        TYPES[kind] if kind < len(TYPES) else "?",
    )


def feature_bytes(memory, info, itemsize):
    """The bytes of such an array, as elements of a size. Errors: RuntimeError for a size that is not its elements'."""
    size, count = info.value_size, info.value_count
    if itemsize == 1 or size == 1 and count % itemsize == 0:
        size, count = itemsize, count * size // itemsize
    if size != itemsize:
        raise RuntimeError(f"Cannot cast feature data of size {info.value_size} to elements of {itemsize} bytes")
    if info.ptr + size * count > len(memory):
        raise RuntimeError(f"feature array {info.name!r} lies out of its grid")
    return np.frombuffer(memory, dtype=np.uint8, count=size * count, offset=info.ptr)
