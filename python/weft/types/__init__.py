"""Types: constructors of vector and matrix types, and questions about types and values."""

from .annotations import ArrayType as ArrayType
from .inspect import *  # noqa: F403
from .inspect import type_scalar_type as type_scalar_type
from .matrices import Matrix as Matrix
from .matrices import matrix as matrix
from .matrices import matrix_from_cols as matrix_from_cols
from .matrices import matrix_from_rows as matrix_from_rows
from .named import NAMED
from .patterns import Float as Float
from .patterns import Int as Int
from .patterns import Scalar as Scalar
from .quaternions import Quaternion as Quaternion
from .quaternions import Transform as Transformation
from .quaternions import quaternion as quaternion
from .quaternions import transformation as transformation
from .scalars import SCALARS, bool  # noqa: A004
from .structs import StructInstance as StructInstance
from .vectors import Vector as Vector
from .vectors import vector as vector

for _scalar in (*SCALARS, bool):
    globals()[_scalar.__name__] = _scalar
globals().update(NAMED)

float_types = [s for s in SCALARS if type_is_float(s)]  # noqa: F405
int_types = [s for s in SCALARS if type_is_int(s)]  # noqa: F405
scalar_types = list(SCALARS)


def __getattr__(name):
    """``wp.types.array``, as versions of Warp until 1.10 had it; it needs this package."""
    if name != "array":
        raise AttributeError(f"module 'weft.types' has no attribute {name!r}")
    from ..runtime.array import array

    return array
