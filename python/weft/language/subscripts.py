"""Indices: elements, rows and slices of arrays; components, rows and slices of values; items of tuples."""

import ast

from .. import _weft
from ..types import matrices, scalars, vectors
from ..types.empty import empty_type
from .arrays import views
from .derivatives import is_adjoint, renamed
from .errors import CodegenError, CodegenIndexError, CodegenKeyError, CodegenTypeError, CodegenValueError, near
from .operators import OPS
from .places import ChosenPlace, ElementPlace, PartPlace, Place, locate
from .statics import host_value, of_python
from .values import ArrayValue, Shape, Static, TupleValue, Value, literal, name_of_type


def part(e, base, node):
    """The place or value of ``base[...]``. Errors: CodegenError and kin for what has no such part."""
    if isinstance(base, ArrayValue):
        return of_array(e, base, keys_of(e, node))
    if isinstance(base, TupleValue):
        return item(e, base, node)
    if isinstance(base, Static):
        if is_adjoint(base.object):
            return locate(e, renamed(node.slice))
        return static_item(e, base, node)
    if isinstance(base, Place):
        kind = base.type.native.kind
        if kind == "matrix":
            return of_matrix(base, keys_of(e, node))
        if kind in ("vector", "quaternion", "transform"):
            keys = keys_of(e, node)
            if len(keys) != 1:
                raise CodegenError(f"a {kind} takes one index, not {len(keys)}")
            return of_vector(base, keys[0])
    what = name_of_type(base) if not isinstance(base, Place) else base.type.__name__
    raise CodegenTypeError(f"a value of type {what} has no elements")


def keys_of(e, node):
    """The indices of a subscript, at least one: integers of the trace, and slices of such. Errors: CodegenError."""
    from . import expressions

    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    keys = []
    for p in parts:
        if isinstance(p, ast.Slice):
            bounds = [None if b is None else integer(expressions.evaluate(e, b)) for b in (p.lower, p.upper, p.step)]
            keys.append(slice(*bounds))
            continue
        value = expressions.evaluate(e, p)
        if isinstance(value, TupleValue):
            keys.extend(integer(v) for v in value.items)
        elif isinstance(value, Value) and value.kind == "vector" and value.scalar in scalars.INTEGERS:
            keys.extend(Value(value.scalar, (i,)) for i in value.ids)
        else:
            keys.append(integer(value))
    if not keys:
        raise CodegenError("a subscript needs an index")
    return keys


def integer(value):
    """The value as an index. Errors: CodegenTypeError for what is no integer."""
    if isinstance(value, Value) and value.kind == "scalar" and not isinstance(value.literal, (bool, float)):
        if value.scalar in scalars.INTEGERS:
            return value
    raise CodegenTypeError(f"an index is an integer, not a {name_of_type(value)}")


def known_index(value):
    """The number of an index that is known while tracing; else None."""
    return value.literal if value.literal is not None else _weft.known(value.id)


def of_array(e, array, keys):
    """An element, a row, or a slice of an array."""
    if array.ref.is_null:
        return unreached(e, array, keys)
    if any(isinstance(k, slice) for k in keys):
        return sliced(array, keys)
    if len(keys) > array.ndim:
        raise CodegenError(
            f"Incorrect number of indices specified for array indexing: an array of {array.ndim} dimensions, "
            f"{len(keys)} indices"
        )
    if len(keys) < array.ndim:
        ref = array.ref
        for key in keys:
            ref = ref.row(key.id, not nonnegative(key))
        return ArrayValue(ref, array.dtype, array.name)
    wrap = 0
    for k, key in enumerate(keys):
        if not nonnegative(key):
            wrap |= 1 << k
    private = array.name in e.private or getattr(array.ref, "is_private", False)
    return ElementPlace(array.ref.element(tuple(k.id for k in keys), wrap), array.dtype, private)


def nonnegative(key):
    """Whether an index is never negative; unsigned ones are not."""
    return key.nonneg or not key.scalar.signed


def unreached(e, array, keys):
    """An element of an array that the launch left out: no thread may come here, and the module checks that."""
    if any(isinstance(k, slice) for k in keys) or len(keys) < array.ndim:
        return ArrayValue(array.ref.row(keys[0].id, False), array.dtype, array.name)
    return ElementPlace(array.ref.element(tuple(k.id for k in keys), 0), array.dtype)


def sliced(array, keys):
    """``array[i, lo:hi:step, ...]``: the module's own view where single indices come first and one slice after them; else
    a view of this package.
    """
    if len(keys) > array.ndim:
        raise CodegenError(f"an array of {array.ndim} dimensions is indexed by {len(keys)} keys")
    ref = array.ref
    if isinstance(ref, views.View) or not is_simple(keys, ref.ndim):
        return ArrayValue(views.View.of(ref, keys), array.dtype, array.name)
    if ref.ndim == len(keys) == 2 and isinstance(keys[0], slice):
        return ArrayValue(sliced_plane(ref, *keys), array.dtype, array.name)
    for key in keys:
        if not isinstance(key, slice):
            ref = ref.row(key.id, not nonnegative(key))
        elif key != slice(None):
            ref = slice_dimension(ref, key)
    return ArrayValue(ref, array.dtype, array.name)


def is_simple(keys, ndim):
    """Whether the module's views say what keys name: single indices, then one slice with a known positive step, then whole
    dimensions; or two slices of a plane.
    """
    slices = [k for k in keys if isinstance(k, slice)]
    if any(s.step is not None and (known_index(s.step) is None or known_index(s.step) < 0) for s in slices):
        return False
    if ndim == len(keys) == 2:
        return True
    first = next(k for k, key in enumerate(keys) if isinstance(key, slice))
    return all(key == slice(None) for key in keys[first + 1 :])


def sliced_plane(ref, first, second):
    """``array[lo:hi, j]`` and ``array[lo:hi, lo:hi]`` of two dimensions: the second is reached by a transposition."""
    if not isinstance(second, slice):
        return slice_dimension(ref.transpose().row(second.id, not nonnegative(second)), first)
    ref = ref if first == slice(None) else slice_dimension(ref, first)
    return ref if second == slice(None) else slice_dimension(ref.transpose(), second).transpose()


def slice_dimension(ref, key):
    """The elements of a slice of the first dimension, with bounds that count from the end if they are negative."""
    extent = ref.shape(0)
    zero, one = _weft.constant(_weft.INT32, 0), _weft.constant(_weft.INT32, 1)
    if key.step is not None:
        step = known_index(key.step)
        if step == 0:
            raise CodegenValueError("Slice step cannot be zero")
        if step is None or step < 1:
            raise CodegenValueError("the step of a slice is a positive number that is known while tracing")
        one = _weft.constant(_weft.INT32, step)
    low = zero if key.start is None else bound(key.start, extent)
    high = extent if key.stop is None else bound(key.stop, extent)
    return ref.slice(low, high, one)


def bound(value, extent):
    """A bound of a slice, between 0 and the extent."""
    ids = value.ids if value.scalar is scalars.int32 else _weft.convert(_weft.INT32, value.ids)
    zero = (_weft.constant(_weft.INT32, 0),)
    if not nonnegative(value):
        negative = _weft.binary(OPS["lt"], ids, zero)[0]
        ids = _weft.select((negative,), _weft.binary(OPS["add"], ids, (extent,)), ids)
        ids = _weft.binary(OPS["max"], ids, zero)
    return _weft.binary(OPS["min"], ids, (extent,))[0]


def place_in(key, extent, what):
    """The number of a known index, counted from the start; None if it is not known.

    Errors: CodegenIndexError for one out of range.
    """
    number = known_index(key)
    if number is None:
        return None
    if not -extent <= number < extent:
        raise CodegenIndexError(f"index {number} is out of range for a {what} of {extent}")
    return number + extent if number < 0 else number


def counted_from_start(key, extent):
    """An index that is not known, with negative ones counted from the end."""
    if nonnegative(key):
        return key
    code = key.type.native.code
    negative = _weft.binary(OPS["lt"], key.ids, (_weft.constant(code, 0),))[0]
    wrapped = _weft.binary(OPS["add"], key.ids, (_weft.constant(code, extent),))
    return Value(key.type, _weft.select((negative,), wrapped, key.ids))


def places_in(key, extent):
    """The numbers that a slice names. Errors: CodegenValueError for bounds that are not known while tracing."""
    bounds = [None if b is None else known_index(b) for b in (key.start, key.stop, key.step)]
    if any(b is not None and n is None for b, n in zip((key.start, key.stop, key.step), bounds)):
        raise CodegenValueError("the bounds of a slice of a vector or matrix are known while tracing")
    return tuple(range(extent))[slice(*bounds)]


def of_vector(base, key):
    """A component, or several, of a vector, quaternion or transform."""
    scalar = base.type._wp_scalar_type_
    count = base.type.native.count
    if isinstance(key, slice):
        leaves = places_in(key, count)
        if not leaves:
            return Static(empty_type("vector", (0,), scalar)())
        return PartPlace(base, vectors.vector(len(leaves), scalar), leaves)
    number = place_in(key, count, base.type.__name__)
    if number is not None:
        if isinstance(base, ElementPlace):
            return ElementPlace(base.address.component(number), scalar, base.private)
        return PartPlace(base, scalar, (number,))
    index = counted_from_start(key, count)
    if isinstance(base, ElementPlace):
        return ElementPlace(base.address.at(index.id, count, 1), scalar, base.private)
    return ChosenPlace(base, scalar, index, count)


def of_matrix(base, keys):
    """A row, an element, or a part of a matrix."""
    rows, columns = base.type._shape_
    if len(keys) > 2:
        raise CodegenIndexError(f"Invalid key, expected one or two indices, got {len(keys)}")
    if any(isinstance(k, slice) for k in keys):
        return block_of_matrix(base, keys)
    row = row_of_matrix(base, keys[0])
    return row if len(keys) == 1 else of_vector(row, keys[1])


def row_of_matrix(base, key):
    """A row of a matrix, as a vector."""
    rows, columns = base.type._shape_
    kind = vectors.vector(columns, base.type._wp_scalar_type_)
    number = place_in(key, rows, base.type.__name__)
    if number is not None:
        if isinstance(base, ElementPlace):
            return ElementPlace(base.address.row(number), kind, base.private)
        return PartPlace(base, kind, tuple(range(number * columns, (number + 1) * columns)))
    index = counted_from_start(key, rows)
    if isinstance(base, ElementPlace):
        return ElementPlace(base.address.at(index.id, rows, columns), kind, base.private)
    return ChosenPlace(base, kind, index, rows)


def block_of_matrix(base, keys):
    """The part of a matrix that slices name: a vector if one direction is a single index."""
    rows, columns = base.type._shape_
    scalar = base.type._wp_scalar_type_
    keys = [*keys, slice(None)] if len(keys) == 1 else keys
    named, single = [], []
    for key, extent in zip(keys, (rows, columns)):
        if isinstance(key, slice):
            named.append(places_in(key, extent))
            single.append(False)
        else:
            number = place_in(key, extent, base.type.__name__)
            if number is None:
                raise CodegenValueError("the index beside a slice of a matrix is known while tracing")
            named.append((number,))
            single.append(True)
    if not named[0] or not named[1]:
        extents = tuple(len(places) for places, one in zip(named, single) if not one)
        return Static(empty_type("matrix" if len(extents) == 2 else "vector", extents, scalar)())
    leaves = tuple(r * columns + c for r in named[0] for c in named[1])
    if any(single):
        return PartPlace(base, vectors.vector(len(leaves), scalar), leaves)
    return PartPlace(base, matrices.matrix((len(named[0]), len(named[1])), scalar), leaves)


def item(e, base, node):
    """An item of a tuple, or an extent of an array."""
    from . import expressions

    if isinstance(node.slice, ast.Slice):
        parts = (node.slice.lower, node.slice.upper, node.slice.step)
        bounds = [None if b is None else known_index(integer(expressions.evaluate(e, b))) for b in parts]
        return TupleValue(base.items[slice(*bounds)])
    key = integer(expressions.evaluate(e, node.slice))
    if isinstance(base, Shape) and len(base.items) <= (known_index(key) or 0) < 4:
        return literal(0)  # dimensions that the array does not have
    number = place_in(key, len(base.items), "tuple")
    if number is not None:
        return base.items[number]
    if all(isinstance(i, Value) and i.kind == "scalar" and i.type is base.items[0].type for i in base.items):
        ids = tuple(i.id for i in base.items)
        index = counted_from_start(key, len(ids))
        return Value(base.items[0].type, _weft.pick(ids, len(ids), 1, index.id))
    raise CodegenIndexError("the items of a tuple are taken by numbers that are known while tracing, unless all are of one type")


def static_item(e, base, node):
    """An item of a container of Python, or a type with parameters in brackets."""
    from . import expressions

    known, key = host_value(expressions.evaluate(e, node.slice))
    if not known:
        raise CodegenError("the items of Python's containers are taken by keys that are known while tracing")
    try:
        return of_python(base.object[key])
    except KeyError:
        raise CodegenKeyError(f"{ast.unparse(node.value)} has no item {key!r}{near(key, base.object)}") from None
    except (IndexError, TypeError) as error:
        raise CodegenError(f"{ast.unparse(node)}: {error}") from None
