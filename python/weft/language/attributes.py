"""Attributes of what stands in kernels: components, fields of structs, properties of arrays, members of modules."""

from types import ModuleType

from .. import _weft
from ..absent import reason
from ..types import quaternions, scalars, vectors
from ..types.annotations import ArrayType, type_name
from .errors import CodegenAttributeError, near
from .operators import OPS
from .places import ElementPlace, FieldPlace, PartPlace, Place, ValuePlace
from .statics import of_python
from .values import ArrayValue, Shape, Static, TupleValue, Value, literal, name_of_type, rebuild


def part(e, base, node):
    """The place or value of ``base.name``. Errors: CodegenAttributeError for a name that the base lacks."""
    name = node.attr
    if isinstance(base, Static):
        return member(base, name)
    if isinstance(base, ArrayValue):
        return of_array(base, name)
    if isinstance(base, Place):
        found = of_value(e, base, name)
        if found is not None:
            return found
    raise CodegenAttributeError(f"`{name}` is not an attribute of '{shown(base, node)}{near(name, parts_of(base))}")


def parts_of(base):
    """The names of the fields of a struct, or of the components and parts of another value."""
    kind = getattr(base.type, "native", None)
    if kind is None:
        return ()
    named = {"vector": "xyzw"[: kind.count], "quaternion": "xyzw", "transform": "pq"}
    return getattr(base.type, "_wp_fields_", None) or named.get(kind.kind, ())


def shown(base, node):
    """The base as messages show it: the variable's name and its type."""
    kind = type_name(base.type) if isinstance(base, Place) else name_of_type(base)
    if isinstance(base, Place) and base.type.native.kind == "struct":
        kind = f"{base.type.__module__}.{kind}"
    name = getattr(base, "name", None) or getattr(node.value, "id", None)
    return f"{name}' ({kind})" if name else f"{kind}'"


def member(base, name):
    """An attribute of a thing of Python."""
    try:
        return of_python(getattr(base.object, name))
    except AttributeError:
        thing = base.object
        root, _, below = getattr(thing, "__name__", "").partition(".")
        missing = f"`{name}` is not an attribute of '{thing}'"
        if isinstance(thing, ModuleType) and root in ("weft", "warp"):
            path = ".".join(part for part in ("wp", below, name) if part)
            missing = f"Could not find function {path} as a built-in or user-defined function: {missing}{reason(name)}"
        if not reason(name):
            missing += near(name, dir(thing))
        raise CodegenAttributeError(missing) from None


def of_array(array, name):
    """A property of an array."""
    if name == "shape":
        return Shape([Value(scalars.int32, (array.ref.shape(k),), nonneg=True) for k in range(array.ndim)])
    if name == "size":
        size = Value(scalars.int32, (array.ref.shape(0),), nonneg=True)
        for k in range(1, array.ndim):
            size = Value(scalars.int32, _weft.binary(OPS["mul"], size.ids, (array.ref.shape(k),)), nonneg=True)
        return size
    if name == "ndim":
        return literal(array.ndim)
    if name == "dtype":
        return Static(array.dtype)
    raise CodegenAttributeError(f"`{name}` is not an attribute of '{array.name or 'array'}' ({type_name(array.type)})")


def of_value(e, base, name):
    """A component, a field, or a part of a transform; None if the value has none of that name."""
    kind = base.type.native.kind
    scalar = getattr(base.type, "_wp_scalar_type_", None)
    if kind == "struct":
        return field(e, base, name)
    if kind in ("vector", "quaternion") and len(name) == 1 and 0 <= "xyzw".find(name) < base.type.native.count:
        return component(base, "xyzw".find(name))
    if kind == "transform" and name in ("p", "q"):
        leaves = (0, 1, 2) if name == "p" else (3, 4, 5, 6)
        return PartPlace(base, vectors.vector(3, scalar) if name == "p" else quaternions.quaternion(scalar), leaves)
    if name == "dtype":
        return Static(scalar or base.type)
    if name == "length" and kind in ("vector", "quaternion", "transform"):
        return literal(base.type.native.count)
    if name == "shape" and kind == "matrix":
        return TupleValue([literal(n) for n in base.type._shape_])
    if name == "value" and isinstance(base, ValuePlace) and base.value.literal is not None:
        return base.value  # of a member of an enumeration
    return None


def component(base, k):
    """Scalar k of a value."""
    scalar = scalars.OF_CODE[base.type.native.code]
    if isinstance(base, ElementPlace):
        return ElementPlace(base.address.component(k), scalar, base.private)
    return PartPlace(base, scalar, (k,))


def field(e, base, name):
    """A field of a struct; None if it has none of that name."""
    kind = base.type._wp_fields_.get(name)
    if kind is None:
        return None
    if isinstance(base, ElementPlace):
        found = base.address.field(name)
        return rebuild(kind, iter([found])) if isinstance(kind, ArrayType) else ElementPlace(found, kind, base.private)
    place = FieldPlace(base, name, kind)
    return place.read(e) if isinstance(kind, ArrayType) else place
