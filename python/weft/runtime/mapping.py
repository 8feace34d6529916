"""``wp.map``: a function applied to the elements of arrays, whose shapes are broadcast as NumPy's are."""

import types
from typing import Any

import numpy as np

from .. import _weft
from ..language import functions
from ..language.builtin import Builtin
from ..language.builtins import Arguments
from ..language.calls import run
from ..language.constructors import construct
from ..language.errors import CODEGEN_ERRORS
from ..language.host import HostCall
from ..language.places import load
from ..language.tree.source import source_of
from ..language.statics import apart
from ..language.values import ArrayValue, TupleValue, ids_of
from ..types import composites, scalars
from ..types.annotations import ArrayType, is_concrete, same_type, type_name
from .function import Function
from .identity import identity_of
from .indexed import indexedarray
from .kernel import Kernel, argument, key_of, native_parameter, type_of_value

ARRAYS = (_weft.Array, indexedarray)

map_cache = {}
"""The kernels that map() has made, by function, types and the way in which shapes are broadcast: the last MOST_KERNELS."""
MOST_KERNELS = 512


def map(func, *inputs, out=None, return_kernel=False, block_dim=256, device=None):  # noqa: A001
    r"""Applies a function to the elements of arrays, and to values, which are the same for all elements.

    \param func  a function of kernels, one of the language's, or a plain function or lambda over values
    \param out  the array for the results, or a list of arrays if there are several; new ones if it is None
    \param return_kernel  returns the kernel, which is launched with the inputs and the outputs, instead of launching it
    Returns the array of results, or a list of them. New ones carry gradients if an input does.
    Errors: ValueError for arrays whose shapes do not fit; TypeError for functions and outputs that do not.
    """
    arrays = [x for x in inputs if isinstance(x, ARRAYS)]
    if not arrays:
        raise ValueError("map requires at least one warp.array input")
    shape = broadcast_shape([tuple(x.shape) for x in arrays])
    inputs = [adapted(func, x, arrays) for x in inputs]
    kernel = kernel_for(func, inputs, shape)
    if return_kernel:
        return kernel
    outputs = outputs_for(out, kernel.results, shape, arrays)
    written = [_weft.empty(shape, o.element_dtype, o.native_device) if isinstance(o, indexedarray) else o for o in outputs]
    _weft.launch(kernel, shape, [*inputs, *written], device=arrays[0].native_device)
    for target, values in zip(outputs, written):
        if target is not values:
            target.scatter(values)
    return outputs[0] if len(outputs) == 1 else outputs


def broadcast_shape(shapes):
    """The shape of all arrays together, as NumPy has it. Errors: ValueError where they do not fit."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Shapes {' and '.join(str(s) for s in shapes)} are not broadcastable") from None


def adapted(func, x, arrays):
    """A bare number as a function of the language takes it beside the arrays; anything else as it is."""
    if not isinstance(x, (int, float)) or isinstance(x, bool) or not isinstance(func, Builtin):
        return x
    found = {scalar_of(a) for a in arrays if a.dtype.native.kind != "struct"} - {scalars.bool}
    kind = found.pop() if len(found) == 1 else None
    if kind is None or isinstance(x, float) and not issubclass(kind, scalars.FloatScalar):
        return x
    return kind(x)


def scalar_of(array):
    """The type of the components of an array's elements."""
    return array.dtype if array.dtype.native.kind == "scalar" else array.dtype._wp_scalar_type_


class MapKernel(Kernel):
    """The kernel of a map: a thread for each element of the results."""

    def __init__(self, name, place, parameters, body, results):
        _weft.KernelHandle.__init__(self)
        self.key = name
        self.options = {}
        self.parameters_ = parameters
        self.results = results
        native = [native_parameter(name, n, kind) for n, kind in parameters]
        self.native = _weft.Kernel(name, *place, native, body)


def kernel_for(func, inputs, shape):
    """The kernel for a function, the types of its inputs, and the way in which these are broadcast."""
    kinds, fixed = [], []
    for x in inputs:
        kinds.append(type_of_value(x, Any))
        if kinds[-1] is None:
            raise TypeError(f"map() takes arrays and values, not a {type(x).__name__}")
        lead = len(shape) - len(x.shape) if isinstance(x, ARRAYS) else 0
        is_array = isinstance(x, ARRAYS)
        fixed.append(tuple(n == 1 and shape[lead + k] != 1 for k, n in enumerate(x.shape)) if is_array else ())
    key = (identity_of(func), tuple(kinds), tuple(fixed), len(shape))
    kernel = map_cache.get(key)
    if kernel is None:
        kernel = make_kernel(func, kinds, fixed, len(shape))
        if len(map_cache) >= MOST_KERNELS:
            del map_cache[next(iter(map_cache))]  # the oldest
        map_cache[key] = kernel
    return kernel


def make_kernel(func, kinds, fixed, ndim):
    """Traces the function once to learn the types of its results, and makes the kernel.

    Errors: TypeError for a function that does not take the types, or gives nothing.
    """
    applied = callee(func, len(kinds))
    names = [f"input{k}" for k in range(len(kinds))]
    name = f"map_{name_of(func)}"
    source = source_of(func) if isinstance(func, types.FunctionType) else None
    place = (source.file, source.line) if source else (__file__, 1)

    def items(args):
        index = tuple(_weft.thread(k, ndim) for k in range(ndim))
        given = [argument(n, kind, part) for n, kind, part in zip(names, kinds, args)]
        return index, result_items(applied([element(v, f, index) for v, f in zip(given, fixed)]))

    results = []
    parameters = [native_parameter(name, n, kind) for n, kind in zip(names, kinds)]
    try:
        apart(_weft.Kernel(name, *place, parameters, lambda args: results.extend(r.type for r in items(args)[1])).ir_hash)
    except CODEGEN_ERRORS as error:
        if "function overload" not in str(error):
            raise
        shown = ", ".join(type_name(kind.dtype if isinstance(kind, ArrayType) else kind) for kind in kinds)
        raise TypeError(f"Function {name_of(func)} does not support the provided argument types {shown}") from error

    def body(args):
        index, made = items(args)
        for target, item in zip(args[len(kinds) :], made):
            target.store(index, ids_of(item))

    outputs = [(f"output{k}", ArrayType(kind, ndim)) for k, kind in enumerate(results)]
    return MapKernel(name, place, [*zip(names, kinds), *outputs], body, results)


def element(value, fixed, index):
    """The element of an array that belongs to a thread, its only one in dimensions that are fixed; a value as it is."""
    if not isinstance(value, ArrayValue):
        return value
    zero = _weft.constant(_weft.INT32, 0)
    own = index[len(index) - len(fixed) :]
    return load(value.ref.element(tuple(zero if f else i for f, i in zip(fixed, own)), 0), value.dtype)


def name_of(func):
    """The function's name as one identifier."""
    if isinstance(func, functions.Overloads):
        return key_of(func.overloads[-1].function)
    return getattr(func, "__name__", "function").strip("<>")


def callee(func, count):
    """What applies the function to values of the trace. Errors: TypeError for what is no function of `count` values."""
    if isinstance(func, functions.Overloads):
        wanted = {len(overload.parameters) for overload in func.overloads}
        if len(wanted) == 1 and count > max(wanted):
            raise TypeError(
                f"Number of input arguments ({count}) does not match expected number of function arguments "
                f"({wanted.pop()})"
            )
        return lambda values: functions.call(func, values, {})
    if isinstance(func, Builtin):
        return lambda values: run(func.key, Arguments(None, HostCall(), values, {}, 1))
    if isinstance(func, type) and is_concrete(func):
        return lambda values: construct(func, values, {})
    if isinstance(func, types.FunctionType):
        copy = types.FunctionType(func.__code__, func.__globals__, func.__name__, func.__defaults__, func.__closure__)
        names = func.__code__.co_varnames[: func.__code__.co_argcount]
        copy.__annotations__ = {name: func.__annotations__.get(name, Any) for name in names}
        made = Function(copy, key=func.__name__)
        return lambda values: functions.call(made, values, {})
    raise TypeError(f"map() takes a function, not a {type(func).__name__}")


def result_items(result):
    """The values that the function gives. Errors: TypeError for none."""
    if result is None:
        raise TypeError("The provided function must return a value")
    return result.items if isinstance(result, TupleValue) else [result]


def outputs_for(out, kinds, shape, arrays):
    """The arrays for the results. Errors: TypeError for given ones that do not fit."""
    if out is None:
        grad = any(x.requires_grad for x in arrays)
        return [_weft.empty(shape, kind.native, arrays[0].native_device, grad and has_reals(kind)) for kind in kinds]
    given = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(given) == 1 and len(kinds) > 1 and not isinstance(out, (list, tuple)):
        shown = ", ".join(type_name(kind) for kind in kinds)
        raise TypeError(
            f"Invalid output provided, expected {len(kinds)} Warp arrays with shape {tuple(shape)} and dtypes ({shown})"
        )
    if len(given) != len(kinds):
        raise TypeError(
            f"Number of provided output arrays ({len(given)}) does not match expected number of function outputs "
            f"({len(kinds)})"
        )
    for k, (array, kind) in enumerate(zip(given, kinds)):
        which = f"Output array {k}" if len(given) > 1 else "Output array"
        if not isinstance(array, ARRAYS):
            raise TypeError(f"{which} is a {type(array).__name__}, no array")
        if not same_type(array.dtype, kind):
            raise TypeError(f"{which} dtype {type_name(array.dtype)} does not match expected dtype {type_name(kind)}")
        if tuple(array.shape) != tuple(shape):
            raise TypeError(f"{which} shape {tuple(array.shape)} does not match expected shape {tuple(shape)}")
    return given


def has_reals(kind):
    """Whether elements of a type have gradients."""
    return kind.native.has_reals


def in_place(func, array, other):
    """``array op= other``: the results go where they came from."""
    return map(func, array, operand(array, other), out=array)


def operand(array, other):
    """A number beside an array, as an element or a component of it."""
    if isinstance(other, (int, float)) and array.dtype.native.kind != "struct":
        return scalar_of(array)(other)
    return other


def is_operand(other):
    """Whether something can stand beside an array in an operator."""
    return isinstance(other, (*ARRAYS, bool, int, float, scalars.Scalar, composites.Composite))
