"""Kernels as functions of JAX's: ``jax_kernel``.

The module calls them from XLA's threads without Python. Numbers that JAX knows when it traces are constants of the call;
others come with it, as arrays without dimensions.
"""

import functools

import numpy as np

from .. import _weft
from ..runtime.kernel import Kernel
from ..types.annotations import ArrayType, is_open
from .jax import library
from .jax_signature import Signature, array_type, hashable, dimensions, dtype_to_jax, inner_shape, is_traced, placement
from .tensors import scalar_of

TARGET = "weft_kernel"
INPUT, OUTPUT, CHANGED, CONSTANT, NUMBER = range(5)


@functools.cache
def target():
    """The name by which XLA knows the module's function."""
    capsule = library().ffi.pycapsule(_weft.xla_handler())
    library().ffi.register_ffi_target(TARGET, capsule, platform="cpu")
    return TARGET


class Sources:
    """Where the values of a kernel's parameters come from in one call, and the values themselves."""

    def __init__(self, signature, args):
        self.buffers = []  # what JAX gives
        self.constants = bytearray()
        self.items = []  # for each parameter (kind, input, output, offset of a constant, gradient)
        self.gradients = []  # the buffers that have gradients
        self.numbers = {}  # names of parameters that are numbers of JAX's, by buffer
        self.aliases = {}  # buffers that are changed, with their outputs
        for k, kind in enumerate(signature.kinds):
            output = signature.outputs.index(k) if k in signature.outputs else -1
            if k >= signature.input_count:
                self.items.append((OUTPUT, -1, output, 0, -1))
            elif isinstance(kind, ArrayType):
                self.add_array(args[k], kind, output)
            elif is_traced(args[k]):
                self.numbers[len(self.buffers)] = signature.names[k]
                self.items.append((NUMBER, len(self.buffers), -1, 0, -1))
                number = library().numpy.asarray(args[k], dtype=dtype_to_jax(scalar_of(kind)))
                if number.shape != inner_shape(kind):
                    raise ValueError(f"{signature.name}: argument '{signature.names[k]}' has shape {number.shape}")
                self.buffers.append(number)
            else:
                self.add_constant(signature, k, args[k], kind)

    def add_array(self, value, kind, output):
        """An array of JAX's."""
        place = len(self.buffers)
        gradient = -1
        if kind.dtype.native.has_reals:
            gradient = len(self.gradients)
            self.gradients.append(place)
        if output >= 0:
            self.aliases[place] = output
        self.items.append((CHANGED if output >= 0 else INPUT, place, output, 0, gradient))
        self.buffers.append(value)

    def add_constant(self, signature, k, value, kind):
        """A number or a value that is known now."""
        try:
            packed = _weft.pack(value, kind.native)
        except (TypeError, OverflowError) as error:
            raise TypeError(f"{signature.name}: argument '{signature.names[k]}': {error}") from None
        self.constants += bytes(-len(self.constants) % 16)
        self.items.append((CONSTANT, -1, -1, len(self.constants), -1))
        self.constants += packed


class JaxKernel:
    """A kernel that functions of JAX call. See jax_kernel()."""

    def __init__(self, kernel, signature, vmap_method, launch_dims, output_dims, enable_backward, has_side_effect):
        self.kernel = kernel
        self.signature = signature
        self.vmap_method = vmap_method
        self.launch_dims = launch_dims
        self.output_dims = output_dims
        self.enable_backward = enable_backward
        self.has_side_effect = has_side_effect
        self.names = {}  # of calls that the module knows

    def __call__(self, *args, output_dims=None, launch_dims=None, vmap_method=None):
        signature = self.signature
        signature.check_inputs(args)
        threads = dimensions(self.launch_dims if launch_dims is None else launch_dims)
        if threads is None:
            threads = signature.first_shape(args)
        if threads is None:
            raise ValueError(f"{signature.name}: launch_dims are needed where no input is an array")
        sources = Sources(signature, args)
        given = self.output_dims if output_dims is None else output_dims
        types = signature.output_types(args, given, threads)
        call = functools.partial(self.call, sources, threads, vmap_method or self.vmap_method)
        if self.enable_backward:
            return differentiable(signature, sources, types, call)(*sources.buffers)
        return tuple(call(False, types, sources.aliases, *sources.buffers))

    def call(self, sources, threads, vmap_method, gradient, types, aliases, *buffers):
        """The call as JAX has it."""
        if aliases and vmap_method == "expand_dims":
            vmap_method = "broadcast_all"  # an output has all elements, and so has what it begins as
        make = library().ffi.ffi_call(
            target(),
            types,
            has_side_effect=self.has_side_effect,
            vmap_method=vmap_method,
            input_output_aliases=aliases,
        )
        return make(
            *buffers,
            kernel=self.name(sources, gradient),
            dims=np.array(threads, dtype=np.int64),
            values=np.frombuffer(bytes(sources.constants) or b"\0", dtype=np.uint8),
        )

    def name(self, sources, gradient):
        """The name of a call, which says what it computes: programs of XLA's may be kept on disk."""
        key = (tuple(sources.items), gradient)
        known = self.names.get(key)
        if known is None:
            native = self.kernel.native_kernel()
            known = f"{self.kernel.key} {native.ir_hash()} {key}"
            outputs = len(self.signature.outputs)
            _weft.add_xla_call(known, native, sources.items, len(sources.buffers), outputs, gradient)
            self.names[key] = known
        return known


def differentiable(signature, sources, types, call):
    """The call as a function of its buffers that JAX differentiates. Gradients are those of a tape over the launch."""
    jax = library()

    @jax.custom_vjp
    def function(*buffers):
        return tuple(call(False, types, sources.aliases, *buffers))

    def forward(*primals):
        buffers = tuple(p.value for p in primals)
        for place, name in sources.numbers.items():
            if primals[place].perturbed:
                raise TypeError(
                    f"{signature.name}: JAX asks for the gradient with respect to the number '{name}': kernels have "
                    "gradients with respect to arrays; make it an array of one element"
                )
        return function(*buffers), buffers

    def backward(buffers, cotangents):
        given = []
        for t, cotangent in zip(types, cotangents):
            zero = isinstance(cotangent, jax.custom_derivatives.SymbolicZero) or cotangent.dtype == jax.dtypes.float0
            given.append(jax.numpy.zeros(t.shape, t.dtype) if zero else cotangent)
        common = placement((*buffers, *given))
        wanted = [array_type(buffers[place].shape, buffers[place].dtype, common) for place in sources.gradients]
        made = call(True, wanted, {}, *buffers, *given) if wanted else []
        gradients = dict(zip(sources.gradients, made))
        return tuple(gradients.get(place) for place in range(len(buffers)))

    function.defvjp(forward, backward, symbolic_zeros=True)
    return function


def jax_kernel(
    kernel,
    num_outputs=1,
    vmap_method="broadcast_all",
    launch_dims=None,
    output_dims=None,
    in_out_argnames=None,
    module_preload_mode=None,
    enable_backward=False,
    has_side_effect=False,
    block_dim=None,
):
    r"""The kernel as a function of JAX's arrays, which gives a tuple of its outputs; also inside jit, vmap, grad, shard_map.

    \param num_outputs  the number of outputs: arrays that are changed, and the kernel's last parameters
    \param vmap_method  how JAX makes batches: the kernel is launched once for each of their elements
    \param launch_dims  the numbers of threads; left out, the shape of the first array
    \param output_dims  the shape of all outputs, or a dict by name; left out, that of the threads
    \param in_out_argnames  the parameters that the kernel changes
    \param enable_backward  lets JAX differentiate, with respect to arrays
    \param has_side_effect  runs the kernel even if nobody uses its outputs
    Numbers are constants or traced. `module_preload_mode` and `block_dim` change nothing here.
    Errors: TypeError and ValueError for parameters that are no such function's; at calls also for wrong arguments.
    """
    del module_preload_mode
    if block_dim is not None and (isinstance(block_dim, bool) or not hasattr(block_dim, "__index__")):
        raise TypeError("jax_kernel(): block_dim must be an integer or None")
    if block_dim is not None and block_dim <= 0:
        raise ValueError("jax_kernel(): block_dim must be positive")
    if not isinstance(kernel, Kernel):
        raise TypeError(f"jax_kernel() takes a kernel, not {type(kernel).__name__}")
    if any(is_open(kind) for _, kind in kernel.parameters):
        raise TypeError(f"kernel {kernel.key} is generic: give jax_kernel() one of its overloads")
    given = (num_outputs, vmap_method, launch_dims, output_dims, in_out_argnames, enable_backward, has_side_effect)
    key = (kernel, *(hashable(value) for value in given))
    made = made_.get(key)
    if made is None:
        signature = Signature(f"kernel {kernel.key}", kernel.parameters, num_outputs, in_out_argnames)
        made = JaxKernel(kernel, signature, vmap_method, launch_dims, output_dims, enable_backward, has_side_effect)
        made_[key] = made
    return made


made_ = {}
"""The functions that jax_kernel() has made, by what it was given: JAX traces again for another one."""
