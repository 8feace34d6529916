"""Arrays that a thread makes for itself: ``zeros(shape, dtype)`` in a kernel."""

from ... import _weft
from ...types import composites, scalars
from ...types.annotations import is_concrete
from ..errors import CodegenError, CodegenTypeError, CodegenValueError
from ..values import ArrayValue, Static, TupleValue, Value, name_of_type
from .views import Range, View, number


def zeros(args):
    """``zeros(shape, dtype)`` in a kernel: an array of the thread's own, whose shape is known while tracing.

    Such arrays have no gradients, and their elements are scalars, vectors, matrices, quaternions or transforms.
    """
    given = dict(args.keywords)
    shape = args[0] if len(args) else given.pop("shape", None)
    dtype = args[1] if len(args) > 1 else given.pop("dtype", None)
    if shape is None or given or len(args) > 2:
        raise CodegenError("zeros() takes a shape and a dtype in a kernel")
    extents = known_extents(shape)
    kind = element_kind(dtype)
    ref = _weft.private_array(kind.native, extents)
    view = View(ref, [Range.whole(number(n)) for n in extents], list(range(len(extents))), is_private=True)
    fill(ref, extents, (), _weft.zeros_of(kind.native))
    return ArrayValue(view, kind)


def known_extents(shape):
    """The shape of an array of a thread. Errors: RuntimeError for one that only the run knows."""
    items = shape.items if isinstance(shape, TupleValue) else [shape]
    if isinstance(shape, Static) and isinstance(shape.object, (tuple, list)):
        extents = list(shape.object)
    else:
        extents = []
        for item in items:
            known = item.literal if isinstance(item, Value) and item.literal is not None else None
            extents.append(_weft.known(item.id) if known is None and isinstance(item, Value) else known)
    if any(not isinstance(n, int) for n in extents):
        raise CodegenError("the `shape` argument must be specified as a constant when zero-initializing an array")
    if not 1 <= len(extents) <= 4 or any(n < 1 for n in extents):
        raise CodegenValueError(f"an array has 1 to 4 dimensions of at least one element, not {tuple(extents)}")
    return extents


def element_kind(dtype):
    """The element type that an argument names. Errors: CodegenTypeError for what no array of a thread holds."""
    if dtype is None:
        return scalars.float32
    thing = dtype.object if isinstance(dtype, Static) else None
    if isinstance(thing, type) and is_concrete(thing) and thing.native.kind == "struct":
        raise CodegenTypeError("an array that a kernel makes holds no structs: make one for each field")
    if isinstance(thing, type) and is_concrete(thing):
        return thing
    try:
        return composites.scalar_of(thing)
    except TypeError:
        raise CodegenTypeError(f"the dtype of zeros() is a type of values, not {name_of_type(dtype)}") from None


def fill(ref, extents, index, values):
    """Stores values in all elements."""
    if not extents:
        ref.store(index, values)
        return
    first, *rest = extents
    if first <= 16:
        for k in range(first):
            fill(ref, rest, (*index, number(k)), values)
        return
    counter = _weft.open_range(number(0), number(first), number(1))
    fill(ref, rest, (*index, counter), values)
    _weft.close_range()


HANDLERS = {"zeros": zeros}
