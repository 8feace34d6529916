"""The package `warp` of the peer's tests: weft under another name, and what tests take from private places.

A name that weft lacks is a stand-in, so that the other tests of its file run: a test that uses it fails, and says so, also
where it expects an error.
"""

import functools
import importlib.util
import os
import re
import sys
from types import ModuleType

import weft
from weft.language.calls import of_python

__path__ = [__path__[0]]  # noqa: F821  (of the package, whose tests are the wheel's)


class NotThere(BaseException):
    """A test uses a name that weft does not have. No error that a test may expect is of this class."""


class Absent:
    """Stands for a name that weft does not have."""

    def __init__(self, name):
        self.__name__ = name

    loading = not any(part.startswith("warp.examples") for part in sys.orig_argv)
    """While files are loaded a call gives a stand-in, too: decorators and annotations fail no file. Not so in examples."""

    def use(self, while_loading):
        """What a use of the name gives while files are loaded. Errors: NotThere later."""
        if Absent.loading:
            return while_loading
        raise NotThere(f"weft has no {self.__name__}")

    def __call__(self, *args, **keywords):
        return self.use(Absent(self.__name__))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("_wp_key_", "overloads"):  # a kernel calls it
            return self.use(None)
        return Absent(f"{self.__name__}.{name}")

    def __getitem__(self, item):
        return self

    def __iter__(self):
        return iter(self.use(()))

    def __bool__(self):
        return self.use(True)

    def __eq__(self, other):
        return self.use(self is other)

    def __hash__(self):
        return id(self)


_wheel = os.path.dirname(os.path.realpath(os.path.join(__path__[0], "tests")))


def names_of(file):
    """The names that stand in one of the peer's files, its own among them; none if there is no such file."""
    path = os.path.join(_wheel, file)
    if not os.path.exists(path):
        return set()
    with open(path) as text:
        found = re.findall(r"^ *(?:from .* import .* as (\w+)|(?:def|class) (\w+)|(\w+) *[:=])|^ +(\w+),?$", text.read(), re.M)
    return {name for names in found for name in names if name}


class Front(ModuleType):
    """A module that is one of weft's, with stand-ins for what that lacks."""

    def __init__(self, name, of, **more):
        super().__init__(f"warp.{name}")
        self.__dict__.update({k: v for k, v in vars(of).items() if not k.startswith("__")})
        self.__dict__.update(more)
        self.__dict__["__path__"] = []
        self.__dict__["_names"] = names_of(f"{name}.py")

    def __getattr__(self, name):
        if name.startswith("__") or self._names and name not in self._names:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return Absent(f"{self.__name__}.{name}")


def place(name, of, **more):
    """Makes a module importable under the peer's name."""
    made = Front(name, of, **more)
    sys.modules[f"warp.{name}"] = made
    return made


def private(weft):
    """What tests take from the peer's private modules, by the names that it has there."""
    from weft.autograd import FunctionMetadata
    from weft.runtime.module import modules_
    from weft.types import numpy_types, scalars
    from weft.runtime.mapping import map_cache
    from weft.types.annotations import ArrayType, RefType

    numbers = {numpy: scalar for numpy, scalar in numpy_types.FROM_NUMPY.items()}
    return {
        "types": dict(
            np_dtype_to_warp_type=numbers,
            warp_type_to_np_dtype=dict(numpy_types.TO_NUMPY),
            array=weft.array,
            float_types=list(scalars.FLOATS),
            int_types=list(scalars.INTEGERS),
            scalar_types=list(scalars.SCALARS),
            ArrayType=ArrayType,
            non_atomic_types=(weft.int8, weft.uint8, weft.int16, weft.uint16),
            Reference=RefType,
            _ArrayAnnotation=ArrayType,
            _ArrayAnnotationBase=ArrayType,
            _IndexedArrayAnnotation=ArrayType,
        ),
        "utils": dict(map_cache=map_cache),
        "context": dict(user_modules=modules_),
        "logger": dict(log_error=sys.stderr.write, log_info=sys.stderr.write),
        "autograd": dict(FunctionMetadata=FunctionMetadata),
    }


globals().update({k: v for k, v in vars(weft).items() if not k.startswith("__")})
config = weft.config
sys.modules["warp.config"] = weft.config
_private = private(weft)
weft.Kernel.adj = property(lambda kernel: Absent("Kernel.adj"))  # generated code, which weft has none of
_src = Front("_src", ModuleType("_src"))
sys.modules["warp._src"] = _src
_src.__path__ = [os.path.join(__path__[0], "_src")]  # the renderers
for _name in ("types", "context", "codegen", "utils", "builtins", "build", "logger", "fem", "texture", "optim", "sparse", "autograd"):
    _of = getattr(weft, _name, None) if _name in ("types", "utils") else weft
    setattr(_src, _name, place(f"_src.{_name}", _of or weft, **_private.get(_name, {})))


def of_present(make):
    """A function that makes a type, and a stand-in of a stand-in: of bfloat16."""

    @functools.wraps(make)
    def made(*args, **keywords):
        absent = [value for value in (*args, *keywords.values()) if isinstance(value, Absent)]
        return absent[0] if absent else make(*args, **keywords)

    made._wp_key_ = of_python(make)  # kernels call it
    return made


types = place("types", weft.types, **{n: of_present(getattr(weft.types, n)) for n in ("vector", "matrix")})  # noqa: A001
utils = place("utils", weft.utils)
weft.types.annotations.annotated_element = of_present(weft.types.annotations.annotated_element)
for _name in ("jax", "jax.ffi", "torch", "paddle"):
    place(f"_src.{_name}", weft)
_src.jax = sys.modules["warp._src.jax"]
_src.jax.ffi = sys.modules["warp._src.jax.ffi"]


@weft.struct
class Sample:
    """Stands for a struct of the peer's library of finite elements, which tests of structs hold in theirs."""

    index: int
    weight: float


for _name in ("autograd", "optim", "sparse", "jax_experimental"):
    _of = importlib.import_module(f"weft.{_name}") if importlib.util.find_spec(f"weft.{_name}") else None
    globals()[_name] = place(_name, _of) if _of is not None else place(_name, sys)
fem = place("fem", ModuleType("fem"), Sample=Sample)


_names = names_of("__init__.pyi") | names_of("__init__.py") | {"HashGridQueryH", "HashGridQueryD"}


def __getattr__(name):
    if name.startswith("__") or not (hasattr(weft, name) or name in _names):
        raise AttributeError(f"module 'warp' has no attribute '{name}'")  # as the peer says
    return getattr(weft, name, None) or Absent(name)


def loaded(load):
    """A way to load modules that leaves out kernels with stand-ins: these fail at their launches."""

    @functools.wraps(load)
    def made(*args, **keywords):
        try:
            return load(*args, **keywords)
        except NotThere:
            return args[0]

    return made


_module = type(weft.get_module("warp"))
_module.load = loaded(_module.load)
