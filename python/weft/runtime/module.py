"""Modules: the kernels and functions of one Python module, with the options that they share."""

import ast
import hashlib
import sys
import warnings

from .. import config
from ..absent import tells_what_is_missing
from ..language.errors import CodegenError
from ..types.annotations import layout_of
from ..types.structs import StructInstance

OPTIONS = {
    "enable_backward": True,
    "max_unroll": None,
    "fast_math": False,
    "fuse_fp": None,
    "lineinfo": False,
    "mode": None,
    "block_dim": 256,
    "optimization_level": None,
    "cpu_compiler_flags": None,
    "verify_fp": None,
    "deterministic": None,
    "deterministic_max_records": 0,
    "compile_time_trace": False,
    "cuda_output": None,
    "default_grid_stride": None,
    "enable_mathdx_fft": True,
    "enable_mathdx_gemm": True,
    "enable_mathdx_solver": True,
    "strip_hash": False,
}
"""The options that a module knows, with their defaults. Those that concern compilers of others are kept and ignored."""

SETTINGS = ("mode", "max_unroll", "fuse_fp", "verify_fp")
"""The settings of the package that kernels take where their module says nothing."""

modules_ = {}


@tells_what_is_missing
class Module:
    """The kernels, functions and structs of a Python module."""

    def __init__(self, name):
        self.name = name
        self.kernels = {}
        self.functions = {}
        self.structs = {}
        self.options = dict(OPTIONS)

    def load(self, device=None, block_dim=None):
        """Traces the kernels whose types are fixed. Returns self.

        A kernel that cannot be traced is a warning here, and an error when it is launched: the others are not its fault.
        """
        for kernel in list(self.kernels.values()):
            try:
                if not kernel.is_generic:
                    kernel.native_kernel().ir_hash()
            except Exception as error:
                warnings.warn(f"kernel {kernel.key}: {error}", RuntimeWarning, stacklevel=3)
        return self

    def hash_module(self):
        """A hash, as bytes, of all that the module's kernels do: of their code, with the functions and constants that they
        use, and of the module's options. Generic kernels count with the types for which they were launched.

        Errors: CodegenError for a kernel that cannot be traced.
        Cost: traces all kernels.
        """
        options = {n: getattr(config, n, None) if value is None else value for n, value in self.options.items()}
        made = hashlib.sha256(repr(sorted(options.items())).encode())
        made.update(repr([getattr(config, name) for name in SETTINGS]).encode())
        for key in sorted(self.kernels):
            kernel = self.kernels[key]
            made.update(repr((key, sorted(kernel.options.items(), key=str))).encode())
            made.update(repr([(name, layout_of(kind)) for name, kind in kernel.parameters]).encode())
            if kernel.is_generic:
                text = ast.unparse(kernel.given_source.node) if kernel.given_source else ""
                made.update(text.encode() if text else kernel.func.__code__.co_code)
            for concrete in kernel.instances.values() if kernel.is_generic else (kernel,):
                made.update(concrete.native_kernel().ir_hash().encode())
        return made.digest()

    get_module_hash = hash_module

    def unload(self):
        """Forgets nothing that is in use: compiled programs belong to the kernels."""

    def __repr__(self):
        return f"<weft module {self.name}>"


def get_module(name):
    """The module of a name; made if it is new."""
    module = modules_.get(name)
    if module is None:
        module = modules_[name] = Module(name)
    return module


def caller_name(depth):
    """The name of the Python module that called."""
    return sys._getframe(depth + 1).f_globals.get("__name__", "__main__")


def module_of(module, depth):
    """The module that an argument names: an object, a name, Python's module, or the caller's if it is None."""
    if module is None:
        return get_module(caller_name(depth + 1))
    if isinstance(module, Module):
        return module
    return get_module(module if isinstance(module, str) else module.__name__)


def set_module_options(options, module=None):
    """Sets options of the caller's module, or of a given one. Kernels take them when they are first launched.

    Errors: CodegenError for an option that there is not.
    """
    home = module_of(module, 1)
    for name in options:
        if name not in OPTIONS:
            raise CodegenError(f"modules have no option {name!r}; there are {', '.join(OPTIONS)}")
    home.options.update(options)


def get_module_options(module=None):
    """The options of the caller's module, or of a given one."""
    return module_of(module, 1).options


def load_module(module=None, device=None, recursive=False, block_dim=None, **_):
    """Traces the kernels of a module, see Module.load(). `recursive`: also those of modules below it.

    Errors: RuntimeError for a module that has nothing that kernels know.
    """
    home = module_of(module, 1)
    if not (home.kernels or home.functions or structs_of(home.name) or recursive):
        raise RuntimeError(f"module {home.name!r} does not contain any Warp kernels, functions, or structs")
    home.load(device, block_dim)
    if recursive:
        for name, other in list(modules_.items()):
            if name.startswith(home.name + "."):
                other.load(device, block_dim)
    return home


def structs_of(name):
    """The structs that stand in Python's module of a name."""
    things = vars(sys.modules[name]).values() if name in sys.modules else ()
    return [t for t in things if isinstance(t, type) and issubclass(t, StructInstance) and t.__module__ == name]


def force_load(device=None, modules=None, block_dim=None, **_):
    """Traces the kernels of all modules, or of the given ones."""
    for module in [module_of(m, 1) for m in modules] if modules is not None else list(modules_.values()):
        module.load(device, block_dim)
