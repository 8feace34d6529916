"""``wp.map``: a function applied to the elements of arrays."""

import types
from typing import Any

from .. import _weft
from ..language import functions
from ..language.builtin import Builtin
from ..language.builtins import Arguments
from ..language.calls import run
from ..language.constructors import construct
from ..language.host import HostCall, HostKernel
from ..language.places import load
from ..language.source import source_of
from ..language.statics import apart, of_python
from ..language.values import TupleValue, fixed, ids_of
from ..types.annotations import is_concrete, same_type, type_name
from .function import Function


def map(func, *inputs, out=None, return_kernel=False, block_dim=256, device=None):  # noqa: A001
    r"""Applies a function to the elements of arrays, and to values, which are the same for all elements.

    \param func  a function of kernels, one of the language's, or a plain function or lambda over values
    \param out  the array for the results, or a list of arrays if there are several; new ones if it is None
    Returns the array of results, or a list of them.
    Errors: RuntimeError and TypeError for arrays of different shapes, and for outputs that do not fit.
    """
    arrays = [x for x in inputs if isinstance(x, _weft.Array)]
    if not arrays:
        raise TypeError("map() takes at least one array")
    shape = arrays[0].shape
    for array in arrays:
        if array.shape != shape:
            raise ValueError(f"Shapes {tuple(shape)} and {tuple(array.shape)} are not broadcastable")
    if return_kernel:
        raise RuntimeError("map(return_kernel=True) is not supported yet")
    applied = callee(func)
    flat = [x.contiguous().flatten() if isinstance(x, _weft.Array) else x for x in inputs]
    kinds = result_kinds(applied, flat)
    outputs = outputs_for(out, kinds, shape, arrays[0].native_device)
    params = [(x.element_dtype, 1) for x in flat if isinstance(x, _weft.Array)]
    params += [(kind.native, 1) for kind in kinds]

    def body(args):
        index = (_weft.thread(0, 1),)
        items = result_items(applied(elements(flat, args, index)))
        for target, item in zip(args[len(args) - len(kinds) :], items):
            target.store(index, ids_of(item))

    source = source_of(func) if isinstance(func, types.FunctionType) else None
    place = (source.file, source.line) if source else (__file__, 1)
    kernel = HostKernel(_weft.Kernel(f"map_{getattr(func, '__name__', 'function').strip('<>')}", *place, params, body))
    given = [x for x in flat if isinstance(x, _weft.Array)]
    results = [o if o.is_contiguous else _weft.empty(o.shape, o.element_dtype, o.native_device) for o in outputs]
    _weft.launch(kernel, int(arrays[0].size), [*given, *(r.flatten() for r in results)])
    for target, result in zip(outputs, results):
        if target is not result:
            target.copy_from(result)
    return outputs[0] if len(outputs) == 1 else outputs


def callee(func):
    """What applies the function to values of the trace."""
    if isinstance(func, functions.Overloads):
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


def elements(flat, args, index):
    """The values to which the function is applied: elements of arrays, and what is the same for all."""
    refs = iter(args)
    values = []
    for x in flat:
        if isinstance(x, _weft.Array):
            ref = next(refs)
            values.append(load(ref.element(index, 0), x.dtype))
        else:
            values.append(fixed(of_python(x)))
    return values


def result_items(result):
    """The values that the function gives. Errors: TypeError for none."""
    if result is None:
        raise TypeError("the function of map() returns nothing")
    return result.items if isinstance(result, TupleValue) else [result]


def result_kinds(applied, flat):
    """The types of the results, from a trace that is thrown away."""
    held = []

    def body(args):
        items = result_items(applied(elements(flat, args, (_weft.thread(0, 1),))))
        held[:] = [item.type for item in items]

    params = [(x.element_dtype, 1) for x in flat if isinstance(x, _weft.Array)]
    apart(_weft.Kernel("map", __file__, 1, params, body).ir_hash)
    return held


def outputs_for(out, kinds, shape, device):
    """The arrays for the results. Errors: TypeError and ValueError for given ones that do not fit."""
    if out is None:
        return [_weft.empty(shape, kind.native, device) for kind in kinds]
    given = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(given) != len(kinds):
        raise TypeError(
            f"Number of provided output arrays ({len(given)}) does not match expected number of function outputs "
            f"({len(kinds)})"
        )
    for array, kind in zip(given, kinds):
        if not same_type(array.dtype, kind):
            raise TypeError(f"an output is of {type_name(array.dtype)}, and the results are of {type_name(kind)}")
        if tuple(array.shape) != tuple(shape):
            raise ValueError(
                f"Output array shape {tuple(array.shape)} does not match expected shape {tuple(shape)}"
            )
    return given
