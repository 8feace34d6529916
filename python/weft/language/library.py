"""Calls of the library's functions: the form that fits, literals adapted to it, and the C++ function."""

from .. import _weft
from ..types import quaternions, scalars, vectors
from .errors import CodegenError
from .signatures import FORMS
from .values import TupleValue, Value, adapted, literal, name_of_type

# Functions whose first argument is the state of random numbers, which the call advances.
DRAWS = {
    "randi", "randf", "randn", "randu", "poisson", "sample_triangle", "sample_unit_ring", "sample_unit_disk",
    "sample_unit_sphere_surface", "sample_unit_sphere", "sample_unit_hemisphere_surface", "sample_unit_hemisphere",
    "sample_unit_square", "sample_unit_cube",
}  # fmt: skip


def no_form(name, args):
    """Throws the error of a call that fits no form of a function."""
    types = ", ".join(name_of_type(a) for a in args)
    message = f"Couldn't find function overload for '{name}' that matched inputs with types: [{types}]"
    known = [form.text for form in FORMS.get(name, ())]
    if known:
        message += "; there are " + "; ".join(known)
    raise CodegenError(message)


def match(form, args):
    """The arguments with literals adapted to a form; None if they do not fit."""
    bound = {}
    for parameter, value in zip(form.parameters, args):
        if not isinstance(value, Value):
            return None
        if value.literal is None and not parameter.unify(value.type, bound):
            return None
    made = []
    for parameter, value in zip(form.parameters, args):
        if value.literal is not None:
            value = match_literal(parameter, value, args, bound)
            if value is None:
                return None
        made.append(value)
    return made


def match_literal(parameter, value, args, bound):
    """A literal as a parameter takes it; None if it does not fit."""
    if parameter.kind != "scalar":
        return None
    scalar = bound.get(parameter.scalar) if isinstance(parameter.scalar, str) else parameter.scalar
    if scalar is None:
        numbers = [a.literal for a in args if a.literal is not None]
        wants_real = parameter.scalar == "F" or any(isinstance(n, float) for n in numbers)
        scalar = scalars.float32 if wants_real and parameter.scalar != "I" else value.type
        if not parameter.unify_scalar(scalar, bound):
            return None
    return adapted(value, scalar)


KNOWN = {}
"""Calls of which every argument has its type: by name and types, the types as the module describes them, and what the result
is, None for several results.
"""


def call(name, args, keywords=None):
    """The result of a function of the library: a Value, a TupleValue of several, for a draw the value and the new state.

    Errors: CodegenError for arguments that fit no form.
    """
    if len(args) == 1 and type(args[0]) is Value:
        key = (name, args[0].type)
    else:
        key = (name, *[a.type if type(a) is Value else None for a in args])
    known = None if keywords else KNOWN.get(key)
    if known is not None:
        natives, kind, nonneg = known
        made = _weft.call(name, natives, tuple([a.ids for a in args]))
        return result(name, made) if kind is None else Value(kind, made[1], nonneg, nonneg)
    keywords = keywords or {}
    for form in FORMS[name]:
        arranged = form.arrange(args, keywords)
        if arranged is None:
            continue
        values = [literal(a) if isinstance(a, (int, float)) else a for a in arranged]
        values = match(form, values)
        if values is not None:
            return run(name, values, key)
    no_form(name, [*args, *keywords.values()])


def run(name, values, key):
    """Calls the C++ function on values of a form that it has. A call that has them all under `key` is known from then on."""
    natives = tuple(v.type.native for v in values)
    try:
        made = _weft.call(name, natives, tuple(v.ids for v in values))
    except TypeError:
        made = as_vectors(name, values)
        if made is None:
            raise
        return result(name, made)
    results = result(name, made)
    if len(key) == len(values) + 1 and None not in key:
        KNOWN[key] = (natives, results.type if isinstance(results, Value) else None, name in NEVER_NEGATIVE)
    return results


NEVER_NEGATIVE = {"abs", "length", "length_sq"}  # but for the least integer


def result(name, made):
    """What the C++ function returned as values."""
    if type(made) is list:
        return TupleValue([Value(dtype.python or class_of(dtype), ids) for dtype, ids in made])
    dtype, ids = made
    nonneg = name in NEVER_NEGATIVE
    return Value(dtype.python or class_of(dtype), ids, nonneg, nonneg)


def as_vectors(name, values):
    """A function that the library has for vectors, on matrices, quaternions and transforms as vectors of their
    components.
    """
    if not any(v.kind in ("quaternion", "transform", "matrix") for v in values):
        return None
    dtypes = []
    for value in values:
        is_scalar = value.kind == "scalar"
        dtypes.append(value.type.native if is_scalar else vectors.vector(len(value.ids), value.scalar).native)
    dtype, ids = _weft.call(name, tuple(dtypes), tuple(v.ids for v in values))
    if len(ids) == len(values[0].ids) and len(ids) > 1 and dtype.code == values[0].type.native.code:
        return values[0].type.native, ids
    return dtype, ids


def class_of(dtype):
    """The package's class for a description that the module made by itself."""
    from ..types import matrices

    scalar = scalars.OF_CODE[dtype.code]
    if dtype.kind == "vector":
        return vectors.vector(dtype.rows, scalar)
    if dtype.kind == "matrix":
        return matrices.matrix((dtype.rows, dtype.cols), scalar)
    return quaternions.quaternion(scalar) if dtype.kind == "quaternion" else quaternions.transformation(scalar)
