"""Kernels: ``@wp.kernel``, ``wp.Kernel``, ``wp.overload``."""

import collections
import functools
import inspect
import re
import typing
import weakref

from .. import _weft, config
from ..absent import tells_what_is_missing
from ..language.arrays import indexed
from ..language.emitter import Emission, Environment, asserting
from ..language.errors import KERNEL_RETURNS, CodegenError, CodegenTypeError, near
from ..language.functions import names_function
from ..language.parameters import parameters_of, placed
from ..language.statics import settle
from ..language.tree.source import keep_source, source_of
from ..language.tree.texts import given_source
from ..language.values import ArrayValue, StructValue, from_ids, rebuild
from ..types import annotations, composites, scalars
from ..types.annotations import ArrayType, type_name
from . import showing
from .identity import identity_of, is_settled
from .module import OPTIONS, SETTINGS, Module, get_module

KERNEL_OPTIONS = {
    *OPTIONS, "launch_bounds", "cuda_max_registers", "enable_cuda_smem_spilling", "cluster_dim", "entry_point_abi",
    "grid_stride",
}  # fmt: skip
"""What programs say of a kernel: options of its module, and those that concern compilers of others and change nothing."""

NOTHING = (None, type(None))
"""The annotations of a function that returns nothing."""


@tells_what_is_missing
class Kernel(_weft.KernelHandle):
    r"""A kernel: a Python function with annotated parameters that returns nothing.

    It is traced when it is first launched. `options` override those of its module.

    \param source  the text of the function that is traced in place of the function's own: a program that makes functions by
                   ``exec`` gives it. Parameters and the names of Python that are seen are those of `func`
    \param code_transformers  objects of ``ast.NodeTransformer``, which change the function's tree before it is traced

    Errors: TypeError for what is no function; SyntaxError and CodegenError for a wrong text; CodegenError at the first
    launch, with file and line.
    """

    def __init__(self, func, key=None, module=None, options=None, code_transformers=None, source=None, kinds=None):
        super().__init__()
        if kinds is None:
            keep_source(func)
        self.func = func
        self.module = module if isinstance(module, Module) else get_module(module or func.__module__)
        self.key = key or key_of(func)
        self.options = dict(options or {})
        self.environment = Environment(func)
        self.given_source = given_source(func, self.key, source, code_transformers)
        if kinds is None:
            settle(self)
        self.kinds = kinds
        self.parameters_ = None
        self.instances = {}
        self.fixed = None  # the kernel's own native form
        functools.update_wrapper(self, func, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
        if kinds is None:
            self.module.kernels[self.key] = self

    @property
    def source(self):
        """The tree of the kernel. Errors: CodegenError where the text of its function is not at hand."""
        return self.given_source or source_of(self.func)

    @property
    def parameters(self):
        """The names and types of the parameters. Errors: CodegenError for an annotation that is missing or no type."""
        if self.parameters_ is None:
            self.parameters_ = self.read_parameters()
        return self.parameters_

    def read_parameters(self):
        """Reads the signature; strings among the annotations are evaluated now."""
        if self.func.__annotations__.get("return") not in (*NOTHING, "None"):
            raise placed(CodegenTypeError(KERNEL_RETURNS), self, self.func, self.key, "return")
        if self.kinds is not None:
            return list(zip(inspect.signature(self.func).parameters, self.kinds))
        return [(name, kind) for name, kind, _ in parameters_of(self, self.func, self.key)]

    @property
    def is_generic(self):
        """Whether arguments decide types of parameters."""
        return any(annotations.is_open(kind) for _, kind in self.parameters)

    @property
    def arg_types(self):
        """The types of the parameters by name."""
        return dict(self.parameters)

    @property
    def arg_indices(self):
        """The numbers of the parameters by name."""
        return {name: k for k, (name, _) in enumerate(self.parameters)}

    def option(self, name):
        """An option of the kernel, else of its module, else of the package."""
        for options in (self.options, self.module.options):
            if options.get(name) is not None:
                return options[name]
        return getattr(config, name, None)

    def resolve(self, args):
        """The native kernel for the arguments of a launch. The launch calls it until `native` is set."""
        if not self.is_generic:
            self.native = self.native_kernel()
            return self.native
        return self.instance(self.types_of(args)).native_kernel()

    def native_kernel(self):
        """The kernel as the module has it. Nothing is traced yet."""
        if self.fixed is None:
            self.fixed = self.make_native(self.native_parameters())
            traced_.add(self)
        return self.fixed

    def make_native(self, parameters):
        """The kernel as the module has it. Errors: CodegenError for more parameters than are possible."""
        source = self.source
        checks = self.option("mode") == "debug"
        options = {"max_unroll": self.option("max_unroll"), "assertions": checks}
        try:
            return _weft.Kernel(
                self.key,
                source.file,
                source.line,
                parameters,
                functools.partial(trace, source, self.key, self.environment, self.parameters, options),
                block=0,
                contract=bool(self.option("fuse_fp")),
                checks=checks,
                finite=bool(self.option("verify_fp")),
            )
        except TypeError as error:
            raise placed(CodegenError(str(error)), self, self.func, self.key, None) from None

    def native_parameters(self):
        """The parameters as the module takes them. Errors: CodegenError for types that kernels do not get from outside."""
        made = []
        for name, kind in self.parameters:
            try:
                made.append(native_parameter(self.key, name, kind))
            except Exception as error:
                raise placed(error, self, self.func, self.key, name) from None
        return made

    @property
    def overloads(self):
        """The kernels that were made for types of the parameters, by these."""
        return self.instances

    def instance(self, kinds):
        """The kernel for given types of its parameters."""
        kinds = tuple(kinds)
        made = self.instances.get(kinds)
        if made is None:
            made = Kernel(self.func, self.key, self.module, self.options, kinds=kinds)
            made.given_source, made.environment = self.given_source, self.environment
            made.generic_parent = self
            self.instances[kinds] = made
        return made

    def types_of(self, args):
        """The types of a launch's arguments where parameters leave them open.

        Errors: CodegenError for arguments that the parameters do not take.
        """
        if len(args) != len(self.parameters):
            raise RuntimeError(
                f"Error launching kernel '{self.key}', passed {len(args)} arguments but kernel requires "
                f"{len(self.parameters)}."
            )
        kinds = []
        for (name, kind), value in zip(self.parameters, args):
            if annotations.is_open(kind):
                given = type_of_value(value, kind)
                if given is None or not annotations.matches(kind, given):
                    shown = type(value).__name__ if given is None else type_name(given)
                    raise RuntimeError(
                        f"Unable to infer the type of argument '{name}' for kernel {self.key}: "
                        f"the parameter is {type_name(kind)}, got {shown}"
                    )
                kind = given
            kinds.append(kind)
        return kinds

    infer_argument_types = types_of
    generic_parent = None
    """The generic kernel of which this one is an overload."""

    def get_overload(self, arg_types):
        """The kernel that was made for these types of the parameters; None if there is none yet."""
        return self.instances.get(tuple(annotations.value_type(kind) for kind in arg_types))

    def add_overload(self, kinds):
        """See overload()."""
        if isinstance(kinds, dict):
            for name in kinds:
                if name not in dict(self.parameters):
                    raise RuntimeError(f"kernel {self.key} has no parameter {name!r}")
            kinds = [kinds.get(name, kind) for name, kind in self.parameters]
        if len(kinds) != len(self.parameters):
            raise RuntimeError(
                f"Invalid number of arguments for overload of kernel {self.key}: expected {len(self.parameters)}, "
                f"got {len(kinds)}"
            )
        made = []
        for (name, wanted), kind in zip(self.parameters, kinds):
            kind = annotations.value_type(kind)
            if annotations.is_open(kind) or not annotations.matches(wanted, kind):
                raise RuntimeError(
                    f"Kernel {self.key} argument '{name}' cannot be of type {type_name(kind)}: "
                    f"the parameter is {type_name(wanted)}"
                )
            made.append(kind)
        return self.instance(made)

    def ir(self):
        """The kernel in the library's own representation, as text; it is traced now if it was not.

        Errors: RuntimeError for a kernel whose arguments decide its types: ask one of its overloads.
        """
        if self.is_generic:
            raise RuntimeError(f"the arguments of kernel {self.key} decide its types: ask one of its overloads")
        return self.native_kernel().dump("ir")

    def __repr__(self):
        return showing.kernel_text(self)

    def _repr_html_(self):
        """What notebooks show."""
        return showing.code_html(repr(self)[1:-1], [self])


def key_of(function):
    """The name of a kernel: its function's qualified name as one identifier."""
    return re.sub(r"\W", "", function.__qualname__.replace(".", "__"))


def native_parameter(kernel, name, kind):
    """A parameter's type as the module takes it. Errors: CodegenError for types that kernels do not get from outside."""
    if isinstance(kind, ArrayType):
        if kind.indexed:
            return indexed.native_type(kind)
        return (kind.dtype.native, kind.ndim)
    if not annotations.is_concrete(kind):
        raise CodegenError(f"kernel {kernel}, parameter {name}: {type_name(kind)} is no type of a kernel's argument")
    return kind.native


def trace(source, key, environment, parameters, options, args):
    """Emits a kernel into the trace that a launch has begun."""
    arguments = {}
    for (name, kind), part in zip(parameters, args):
        arguments[name] = argument(name, kind, part)
    with asserting(options["assertions"]):
        Emission(source, key, environment, False, options).run(arguments)


def argument(name, kind, part):
    """A kernel's argument as an expression: a struct that holds arrays comes field by field."""
    if isinstance(kind, ArrayType) and kind.indexed:
        return indexed.value_of(kind, part, name)
    if isinstance(kind, ArrayType):
        return ArrayValue(part, kind.dtype, name)
    if isinstance(part, dict):
        return StructValue(kind, {n: argument(n, k, part[n]) for n, k in kind._wp_layout_.items()})
    if kind.native.kind == "struct":
        return from_ids(kind, part)
    return rebuild(kind, iter([part]))


def type_of_value(value, kind):
    """The type of a launch's argument; None for what no kernel takes."""
    if isinstance(value, bool):
        return scalars.bool
    if isinstance(value, int):
        return scalars.int32
    if isinstance(value, float):
        return scalars.float32
    if isinstance(value, (scalars.Scalar, composites.Composite)):
        return type(value)
    element = getattr(value, "dtype", None)
    if element is not None:
        return array_type(value, element, kind)
    return type(value) if annotations.is_concrete(type(value)) else None


def array_type(value, element, kind):
    """The type of an array, of the package or of others, as a parameter whose type is open takes it."""
    if annotations.is_concrete(element):
        return ArrayType(element, value.ndim, getattr(value, "_wp_is_indexed_", False))
    from ..types.numpy_types import dtype_from_numpy

    try:
        scalar = dtype_from_numpy(getattr(element, "name", None) or str(element).rpartition(".")[2])
    except TypeError:
        return None
    if getattr(value, "ndim", 0) == 0 or not isinstance(kind, ArrayType) and kind is not typing.Any:
        return scalar
    return ArrayType(scalar, value.ndim)


def kernel(f=None, *, name=None, enable_backward=None, module=None, module_options=None, **options):
    r"""Makes a kernel (decorator, with or without arguments).

    \param enable_backward  kept for programs that say it: adjoints are made when a tape first needs them, never before
    \param module  "unique": a module of its own; else a Module
    \param module_options  a dict of options for a module of its own, see set_module_options()
    \param options  ``max_unroll``: the most iterations of a loop over known numbers that is unrolled. Others, such as
                    ``launch_bounds``, are kept for programs that say them

    Errors: TypeError for an option that there is not; ValueError and TypeError for options of a module that is not the
    kernel's own, or that there are not.
    """
    if module_options is not None:
        check_module_options(module_options, module)
    for option in options:
        if option not in KERNEL_OPTIONS:
            raise TypeError(f"kernels have no option {option!r}{near(option, KERNEL_OPTIONS)}")

    def made(function):
        given = {k: v for k, v in options.items() if v is not None}
        if enable_backward is not None:
            given["enable_backward"] = enable_backward
        if module == "unique":
            return unique_kernel(function, name, given, module_options or {})
        return Kernel(function, key=name, module=module, options=given)

    return made if f is None else made(f)


traced_ = weakref.WeakSet()
"""The kernels that have a native form."""


def forget_traces(function):
    """Lets kernels be traced again that call a function which is about to be defined anew, as when a module is loaded
    again or a cell of a notebook runs again: names in kernels mean what they mean in Python, at the next launch.
    """
    for kernel in list(traced_):
        if kernel.fixed is not None and names_function(kernel, function):
            kernel.fixed = kernel.native = None


unique_ = weakref.WeakValueDictionary()
"""The kernels in modules of their own that are still in use, by what they do."""

names_ = collections.Counter()
"""How many modules of their own there were of each name."""


def check_module_options(given, module):
    """Refuses options of a kernel's module that are none, or where the module is not the kernel's own."""
    if module != "unique":
        raise ValueError('module_options are those of a kernel\'s own module: write module="unique", too')
    if not isinstance(given, dict):
        raise TypeError(f"module_options must be a dict, not a {type(given).__name__}")
    for option in given:
        if option not in OPTIONS:
            raise ValueError(f"modules have no option {option!r}. Valid options: {', '.join(sorted(OPTIONS))}")


def unique_kernel(function, name, options, own_options):
    """The kernel of a function in a module of its own: the one that there is already if it was defined before, with the
    same options, and sees the same values.
    """
    module_options = {**get_module(function.__module__).options, **own_options}
    try:
        if not is_settled(function):
            raise TypeError("it may see something else the next time")
        annotated = tuple(function.__annotations__.items())
        package = tuple(getattr(config, option) for option in SETTINGS)
        settings = (tuple(sorted(options.items())), tuple(sorted(module_options.items(), key=str)), package)
        key = (identity_of(function), function.__module__, function.__qualname__, name, annotated, settings)
        known = unique_.get(key)
    except TypeError:  # something that cannot be a key
        key = known = None
    if known is not None and identity_of(known.func) == key[0]:  # else its variables have changed since it was defined
        return known
    shown = f"{function.__module__}.{name or function.__qualname__}"
    names_[shown] += 1
    home = Module(shown if names_[shown] == 1 else f"{shown}__{names_[shown]}")
    home.options.update(module_options)
    made = Kernel(function, key=name, module=home, options=options)
    if key is not None:
        unique_[key] = made
    return made


def overload(kernel, arg_types=None):
    """The kernel for fixed types of its parameters, which can be launched like any other.

    `kernel` is a generic kernel and `arg_types` a list of types or a dict of some by name. As a decorator of a function
    without a body, whose name and annotations say the same, it gives the generic kernel.
    Errors: RuntimeError for types that the kernel does not take; TypeError for a function that says it returns something.
    """
    if isinstance(kernel, Kernel):
        return kernel.add_overload(arg_types or {})
    function = kernel
    if function.__annotations__.get("return") not in (*NOTHING, "None"):
        raise TypeError("Return annotations are not allowed on @wp.overload stubs")
    key = key_of(function)
    kernels = get_module(function.__module__).kernels.values()
    named = [k for k in kernels if k.key == key] or [k for k in kernels if key_of(k.func) == key]
    if not named:
        raise RuntimeError(f"Failed to find a kernel named '{key}' in module {function.__module__}")
    if len(named) > 1:
        raise RuntimeError(f"Ambiguous kernel lookup: {key} could be {', '.join(k.key for k in named)}")
    generic = named[0]
    resolved = annotations.resolve_annotations(function)
    names = [name for name, _ in generic.parameters]
    if [name for name in resolved if name != "return"] != names:
        raise RuntimeError(f"the parameters of the overload are not those of kernel {key}: {', '.join(names)}")
    generic.add_overload([resolved[name] for name in names])
    return generic
