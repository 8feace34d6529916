"""Atomic operations on elements of arrays: ``atomic_add(array, i, j, value)`` and kin, which return the value before."""

from ...types import scalars
from ...types.annotations import same_type
from ..emitter import adapted_to
from ..errors import CodegenError, CodegenTypeError
from ..subscripts import integer, nonnegative
from ..values import ArrayValue, TupleValue, Value, name_of_type

WORDS = (scalars.int32, scalars.uint32, scalars.int64, scalars.uint64)
ALLOWED = {
    "add": (*WORDS, scalars.float16, scalars.float32, scalars.float64),
    "sub": (*WORDS, scalars.float16, scalars.float32, scalars.float64),
    "min": (*WORDS, scalars.float32, scalars.float64),
    "max": (*WORDS, scalars.float32, scalars.float64),
    "and": WORDS,
    "or": WORDS,
    "xor": WORDS,
    "exchange": (*WORDS, scalars.float32, scalars.float64),
    "cas": (*WORDS, scalars.float32, scalars.float64),
}
SPELLED = {"exchange": "exch"}


def atomic(name):
    """The handler of one of the operations."""
    shown = "atomic_" + SPELLED.get(name, name)
    given = 2 if name == "cas" else 1

    def handler(args):
        values = [*args.values, *args.keywords.values()]
        if len(values) < 2 + given or not isinstance(values[0], ArrayValue):
            raise CodegenError(f"{shown}() takes an array, indices and {'two values' if given == 2 else 'a value'}")
        array, keys, operands = values[0], values[1:-given], values[-given:]
        if len(keys) == 1 and isinstance(keys[0], TupleValue):
            keys = keys[0].items
        keys = [integer(k) for k in keys]
        if len(keys) != array.ndim:
            raise CodegenError(
                f"{shown}(): Num indices < num dimensions for atomic operations: "
                f"an array of {array.ndim} dimensions, {len(keys)} indices"
            )
        operands = [taken(shown, array, value) for value in operands]
        check(shown, name, array)
        wrap = sum(1 << k for k, key in enumerate(keys) if not nonnegative(key))
        address = array.ref.element(tuple(k.id for k in keys), wrap)
        if name == "cas":
            ids = address.atomic("cas", operands[1].ids, operands[0].ids)
        else:
            ids = address.atomic(name, operands[0].ids)
        return Value(array.dtype, ids)

    return handler


def taken(shown, array, value):
    """A value as the array's elements are. Errors: CodegenTypeError for another type."""
    value = adapted_to(value, array.dtype)
    if isinstance(value, Value) and same_type(value.type, array.dtype):
        return value
    raise CodegenTypeError(
        f"{shown}(): the value is of type {name_of_type(value)}, the array's elements are of type "
        f"{array.dtype.__name__}"
    )


def check(shown, name, array):
    """Refuses elements on which the operation does not exist."""
    native = array.dtype.native
    if native.kind == "struct" or scalars.OF_CODE[native.code] not in ALLOWED[name]:
        kinds = "[u]int32, [u]int64" + (", float16" if scalars.float16 in ALLOWED[name] else "")
        kinds += ", float32, or float64" if scalars.float32 in ALLOWED[name] else ""
        raise CodegenError(
            f"{shown}() operations only work on arrays with {kinds} as the underlying scalar types, "
            f"but got {array.dtype.__name__} (with scalar type "
            f"{scalars.OF_CODE[native.code].__name__ if native.kind != 'struct' else 'struct'})"
        )


HANDLERS = {
    "atomic_add": atomic("add"),
    "atomic_sub": atomic("sub"),
    "atomic_min": atomic("min"),
    "atomic_max": atomic("max"),
    "atomic_and": atomic("and"),
    "atomic_or": atomic("or"),
    "atomic_xor": atomic("xor"),
    "atomic_exch": atomic("exchange"),
    "atomic_cas": atomic("cas"),
}


def load(args):
    """``load(array, i)``: an element, as the early documents write it."""
    args.expect("load", 2)
    array, key = args.values
    if not isinstance(array, ArrayValue) or array.ndim != 1:
        raise CodegenError("load() takes an array of one dimension and an index")
    key = integer(key)
    return Value(array.dtype, array.ref.load((key.id,), 0 if nonnegative(key) else 1))


def store(args):
    """``store(array, i, value)``: assigns an element, as the early documents write it."""
    args.expect("store", 3)
    array, key, value = args.values
    if not isinstance(array, ArrayValue) or array.ndim != 1:
        raise CodegenError("store() takes an array of one dimension, an index and a value")
    key = integer(key)
    value = taken("store", array, value)
    array.ref.store((key.id,), value.ids, 0 if nonnegative(key) else 1)


HANDLERS["load"] = load
HANDLERS["store"] = store
