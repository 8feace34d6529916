"""NumPy's types and the package's, in both directions."""

import numpy as np

from . import composites, scalars, structs
from .annotations import ArrayType, is_concrete

TO_NUMPY = {s: np.dtype(s.numpy_name) for s in (*scalars.SCALARS, scalars.bool)}
FROM_NUMPY = {n: s for s, n in TO_NUMPY.items()}


def dtype_from_numpy(numpy_dtype):
    """The scalar type with the values of a NumPy type. Errors: TypeError for a type that kernels lack."""
    made = FROM_NUMPY.get(np.dtype(numpy_dtype))
    if made is None:
        raise TypeError(f"Cannot convert '{numpy_dtype}' to a weft type")
    return made


def dtype_to_numpy(warp_dtype):
    """The NumPy type of a scalar type. Errors: TypeError for a type that is no scalar type."""
    if isinstance(warp_dtype, type) and issubclass(warp_dtype, structs.StructInstance):
        return struct_dtype(warp_dtype)
    try:
        return TO_NUMPY[composites.scalar_of(warp_dtype)].type
    except (TypeError, KeyError):
        raise TypeError(f"Cannot convert '{warp_dtype}' to a NumPy type") from None


def element_layout(cls):
    """The NumPy scalar type and the inner shape of an element type."""
    if cls.native.kind == "struct":
        return struct_dtype(cls), ()
    scalar = cls if cls.native.kind == "scalar" else cls._wp_scalar_type_
    return TO_NUMPY[scalar], () if cls.native.kind == "scalar" else tuple(cls._shape_)


def struct_dtype(cls):
    """NumPy's structured type with the layout of a struct. Arrays among the fields are their handles, as bytes."""
    names, formats, offsets = [], [], []
    for name, kind, offset, _, _ in cls.native.fields:
        names.append(name)
        offsets.append(offset)
        if isinstance(kind, tuple) or isinstance(kind.python, ArrayType):
            following = [f[2] for f in cls.native.fields if f[2] > offset]
            formats.append(np.dtype((np.void, min(following, default=cls.native.size) - offset)))
        else:
            base, inner = element_layout(kind.python)
            formats.append(np.dtype((base, inner)) if inner else base)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": cls.native.size})


def guess_element(data):
    """The element type for host data whose type the caller does not name: that of its scalars, with nested rows as
    further dimensions; the type of its values if these are the package's.
    """
    first = data
    while isinstance(first, (list, tuple)) and len(first):
        first = first[0]
    if isinstance(first, (composites.Composite, structs.StructInstance, scalars.Scalar)):
        return type(first)
    converted = np.asarray(data)
    return dtype_from_numpy(converted.dtype)


def numpy_of(cls):
    """The NumPy dtype of the numbers of an element type."""
    assert is_concrete(cls)
    return element_layout(cls)[0]
