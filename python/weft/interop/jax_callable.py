"""Functions of Python's that programs of JAX call: ``jax_callable``, ``register_ffi_callback``."""

import ctypes
import enum
import functools
import itertools
import os
import types as types_

import numpy as np

from .. import _weft
from ..runtime.device import ScopedDevice, get_device
from ..types import annotations, numpy_types
from ..types.annotations import ArrayType
from .jax import library
from .jax_signature import Signature, hashable, inner_shape, is_traced

TARGET = "weft_function"
Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class JaxCallableGraphMode(enum.IntEnum):
    """Who captures the work of a callable in a graph of CUDA's. On the processor it runs directly in each mode."""

    NONE = 0
    JAX = 1
    WARP = 2
    WARP_STAGED = 3
    WARP_STAGED_EX = 4


class JaxModulePreloadMode(enum.IntEnum):
    """When kernels are compiled. Here they are when a program is traced, in each mode."""

    NONE = 0
    CURRENT_DEVICE = 1
    ALL_DEVICES = 2


handlers_ = {}
"""The functions that XLA knows by name, each with the pointer to it. Programs may call them as long as the process runs."""


def register(name, function):
    """Has XLA call a function ``function(inputs, outputs, attributes)`` under a name; a later one takes its place."""
    known = handlers_.get(name)
    if known is not None:
        known[0][0] = function
        return
    current = [function]
    pointer = Handler(lambda frame: _weft.answer_xla(frame, current[0]) or None)
    handlers_[name] = (current, pointer)
    library().ffi.register_ffi_target(name, library().ffi.pycapsule(ctypes.cast(pointer, ctypes.c_void_p).value))


def register_ffi_callback(name, func, graph_compatible=True):
    r"""Has XLA call ``func(inputs, outputs, attrs, ctx)`` for ``jax.ffi.ffi_call(name, ...)``.

    The inputs and outputs are NumPy arrays on XLA's memory, which are valid during the call; `attrs` is a dict;
    ``ctx.stream`` is 0. What it raises is an error of the program.
    """
    del graph_compatible

    def function(inputs, outputs, attributes):
        with ScopedDevice("cpu"):
            func(inputs, outputs, attributes, types_.SimpleNamespace(stream=0, device_ordinal=0, platform="cpu"))

    register(name, function)


callables_ = {}
"""The callables by the name that programs say."""

numbers_ = itertools.count()
"""The numbers of the callables of this process."""


def call_named(inputs, outputs, attributes):
    """Calls the callable that a program names."""
    made = callables_.get(attributes["function"])
    if made is None:
        raise RuntimeError(f"this process has no function {attributes['function']}: a stored program called it")
    made.run(inputs, outputs, attributes)


@functools.cache
def target():
    """The name by which XLA knows all callables."""
    register(TARGET, call_named)
    return TARGET


class JaxCallable:
    """A function of Python's that functions of JAX call. See jax_callable()."""

    def __init__(self, func, signature, vmap_method, output_dims, has_side_effect):
        self.func = func
        self.signature = signature
        self.vmap_method = vmap_method
        self.output_dims = output_dims
        self.has_side_effect = has_side_effect
        # A program that another process has stored does not find its function, rather than another one.
        self.name = f"{func.__module__}.{func.__qualname__} {os.getpid()}:{next(numbers_)}"
        self.graph_mode = None
        self.graph_cache_max = None
        callables_[self.name] = self

    def __call__(self, *args, output_dims=None, vmap_method=None):
        signature = self.signature
        signature.check_inputs(args)
        given = self.output_dims if output_dims is None else output_dims
        types = signature.output_types(args, given, signature.first_shape(args))
        buffers, constants, aliases = [], {}, {}
        for k, value in enumerate(args):
            if isinstance(signature.kinds[k], ArrayType) or is_traced(value):
                if k in signature.changed:
                    aliases[len(buffers)] = signature.outputs.index(k)
                buffers.append(library().numpy.asarray(value))
            else:
                packed = _weft.pack(value, signature.kinds[k].native)
                constants[f"value{k}"] = np.frombuffer(packed, dtype=np.uint8)
        method = vmap_method or self.vmap_method
        make = library().ffi.ffi_call(
            target(),
            types,
            has_side_effect=self.has_side_effect,
            vmap_method="broadcast_all" if aliases and method == "expand_dims" else method,
            input_output_aliases=aliases,
        )
        return tuple(make(*buffers, function=self.name, **constants))

    def run(self, inputs, outputs, attributes):
        """Calls the function with the buffers of one call, once for each element of the dimensions that vmap adds."""
        signature = self.signature
        given = iter(inputs)
        values = []
        for k, kind in enumerate(signature.kinds):
            if k in signature.outputs:
                if k in signature.changed:
                    next(given)  # the output holds its elements
                values.append(outputs[signature.outputs.index(k)])
            elif f"value{k}" in attributes:
                values.append(constant(kind, attributes[f"value{k}"]))
            else:
                values.append(next(given))
        arrays = [k for k, value in enumerate(values) if isinstance(value, np.ndarray)]
        fronts = [values[k].shape[: values[k].ndim - own_dimensions(signature.kinds[k])] for k in arrays]
        front = np.broadcast_shapes(*fronts)
        for place in np.ndindex(*front):
            self.func(
                *(
                    element(signature.kinds[k], value, place, len(front)) if k in arrays else value
                    for k, value in enumerate(values)
                )
            )


def own_dimensions(kind):
    """The number of dimensions of a buffer for one value of a parameter's type."""
    if isinstance(kind, ArrayType):
        return kind.ndim + len(inner_shape(kind.dtype))
    return len(inner_shape(kind))


def element(kind, buffer, place, dimensions):
    """The value of a parameter at one place in the dimensions in front, which have one element where it serves for all."""
    index = tuple(0 if buffer.shape[k] == 1 else place[k] for k in range(dimensions))
    part = buffer[index + (...,)]
    if isinstance(kind, ArrayType):
        return _weft.from_tensor(part, kind.dtype.native, get_device("cpu").native)
    return constant(kind, np.ascontiguousarray(part).reshape(-1).view(np.uint8))


def constant(kind, data):
    """A number or a value of the package from its bytes."""
    base, _ = numpy_types.element_layout(kind)
    numbers = np.frombuffer(data.tobytes(), dtype=base).tolist()
    return numbers[0] if kind.native.kind == "scalar" else kind._make(numbers)


def jax_callable(
    func,
    num_outputs=1,
    graph_mode=JaxCallableGraphMode.JAX,
    vmap_method="broadcast_all",
    output_dims=None,
    in_out_argnames=None,
    stage_in_argnames=None,
    stage_out_argnames=None,
    graph_cache_max=32,
    module_preload_mode=JaxModulePreloadMode.CURRENT_DEVICE,
    has_side_effect=False,
):
    r"""A function of Python's, with annotations as a kernel's, as a function of JAX's arrays; also inside jit and vmap.

    It is called with arrays on JAX's memory, which are valid during the call, and launches what it likes.
    \param num_outputs, vmap_method, output_dims, in_out_argnames, has_side_effect  as those of jax_kernel()
    Graph modes, staging and preloading change nothing on the processor.
    Errors: TypeError and ValueError for parameters that are no such function's.
    """
    del stage_in_argnames, stage_out_argnames, module_preload_mode
    graph_mode = JaxCallableGraphMode(graph_mode)
    given = (num_outputs, graph_mode, vmap_method, output_dims, in_out_argnames, has_side_effect)
    key = (func, *(hashable(value) for value in given))
    made = made_.get(key)
    if made is not None:
        made.graph_cache_max = graph_cache_max
        return made
    resolved = annotations.resolve_annotations(func)
    names = func.__code__.co_varnames[: func.__code__.co_argcount]
    missing = [name for name in names if name not in resolved]
    if missing:
        raise TypeError(f"function {func.__qualname__}: parameters {missing} have no annotations")
    parameters = [(name, annotations.value_type(resolved[name])) for name in names]
    signature = Signature(f"function {func.__qualname__}", parameters, num_outputs, in_out_argnames)
    made = JaxCallable(func, signature, vmap_method, output_dims, has_side_effect)
    made.graph_mode = graph_mode
    made.graph_cache_max = graph_cache_max
    made_[key] = made
    return made


made_ = {}
"""The functions that jax_callable() has made, by what it was given."""


def clear_jax_callable_graph_cache(callable=None):
    """Does nothing: no graphs are kept on the processor."""
