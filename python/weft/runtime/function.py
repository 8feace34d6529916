"""Functions that kernels call: ``@wp.func``."""

import functools
import typing
from collections.abc import Callable
from typing import Any

from ..language.errors import CodegenError
from ..language.functions import Overload, Overloads, written_annotations
from ..language.parameters import placed
from ..language.tree.source import keep_source
from ..language.tree.texts import given_source
from ..types import annotations
from . import showing
from .module import get_module


class Function(Overloads):
    r"""A function of kernels, with one or more overloads. Called on the host it is the Python function.

    \param namespace  kept for programs that say it
    \param source  the text of the function that is traced in place of the function's own, see Kernel
    \param code_transformers  objects of ``ast.NodeTransformer``, which change the function's tree before it is traced

    Errors: TypeError for what is no function; SyntaxError and CodegenError for a wrong text.
    """

    def __init__(self, func, key=None, namespace="", module=None, source=None, code_transformers=None):
        keep_source(func)
        super().__init__(key or func.__qualname__)
        self.module = module or get_module(func.__module__)
        self.add(func, source=given_source(func, self.key, source, code_transformers))
        functools.update_wrapper(self, func, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())

    def has(self, function):
        """Whether there is an overload with the annotations of a function."""
        return any(written_annotations(o.function) == written_annotations(function) for o in self.overloads)

    def add(self, function, options=None, source=None):
        """Adds an overload. Errors: RuntimeError for one that differs from another only in what is a reference."""
        for other in self.overloads:
            first, second = references_of(other.function), references_of(function)
            if first[0] != second[0] and first[1] == second[1]:
                raise RuntimeError(f"overloads of {self.key} differ only in which parameters are wp.ref[...]")
        return super().add(function, options, source)

    def redefined(self, function):
        """A function with the other overloads, and the new one in place of the one with its annotations."""
        made = Function(function, key=self.key, module=self.module)
        others = [o for o in self.overloads if written_annotations(o.function) != written_annotations(function)]
        made.overloads = [*others, *made.overloads]
        return made

    @property
    def func(self):
        """The Python function that was added last."""
        return self.overloads[-1].function

    @property
    def input_types(self):
        """The parameters' types by name, of the overload that was added last."""
        return {name: kind for name, kind, _ in self.overloads[-1].parameters}

    def is_builtin(self):
        """False: the language's own functions say True."""
        return False

    def __call__(self, *args, **keywords):
        if len(self.overloads) == 1:
            return self.overloads[0].function(*args, **keywords)
        for overload in self.overloads:
            if fits(overload, args, keywords):
                return overload.function(*args, **keywords)
        shown = ", ".join(str(a) for a in args)
        raise RuntimeError(f"Error calling function '{self.key}', no overload found for arguments ({shown},)")

    def __repr__(self):
        return showing.function_text(self)

    def _repr_html_(self):
        """What notebooks show."""
        return showing.code_html(repr(self)[1:-1], self.overloads)


def references_of(function):
    """Which parameters of a function are references, and the types of all, those of the variables for references."""
    written = [a for name, a in function.__annotations__.items() if name != "return"]
    plain = [a.dtype if isinstance(a, annotations.RefType) else a for a in written]
    kinds = [annotations.value_type(a) if a in (int, float, bool) else a for a in plain]
    return [isinstance(a, annotations.RefType) for a in written], kinds


def fits(overload, args, keywords):
    """Whether values of the host are ones that an overload takes."""
    names = [name for name, _, _ in overload.parameters]
    if len(args) + len(keywords) > len(names) or not set(keywords) <= set(names):
        return False
    given = [*zip(names, args), *keywords.items()]
    kinds = {name: kind for name, kind, _ in overload.parameters}
    return all(value_fits(kinds[name], value) for name, value in given)


def value_fits(kind, value):
    """Whether a value of the host is of a parameter's type."""
    from ..types import composites, scalars

    if isinstance(value, bool):
        return annotations.matches(kind, scalars.bool)
    if isinstance(value, int):
        return not isinstance(kind, (annotations.ArrayType, tuple)) and annotations.matches(kind, scalars.int32)
    if isinstance(value, float):
        return annotations.matches(kind, scalars.float32)
    if isinstance(value, (scalars.Scalar, composites.Composite)):
        return annotations.matches(kind, type(value))
    return annotations.matches(kind, type_of_argument(value))


def type_of_argument(value):
    """The type of a value of the host that is no number."""
    element = getattr(value, "dtype", None)
    if annotations.is_concrete(element):
        return annotations.ArrayType(element, value.ndim)
    return type(value)


P = typing.ParamSpec("P")
R = typing.TypeVar("R")


@typing.overload
def func(f: Callable[P, R], /) -> Callable[P, R]: ...


@typing.overload
def func(
    *, name: str | None = None, module: Any = None, **options: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def func(f=None, *, name=None, module=None, **_):
    """Makes a function that kernels call (decorator). Parameters are annotated, as those of kernels; ``Any`` and open
    types make it generic. Further functions of the same name in one Python module are overloads of it.

    Errors: CodegenError for unions of types, and at the first use for annotations that are no types of kernels.
    """

    def made(function):
        keep_source(function)
        for parameter, annotation in function.__annotations__.items():
            if annotations.is_union(annotation):
                message = f"function {function.__name__}, {parameter}: Union type annotations are only supported at Python scope"
                raise placed(CodegenError(message), Overload(function, function.__name__), function, function.__name__, parameter)
        home = get_module(module if isinstance(module, str) else function.__module__)
        key = name or function.__qualname__
        known = home.functions.get(key)
        is_closure = "<locals>" in function.__qualname__
        if known is None or is_closure and not same_scope(known, function):
            known = Function(function, key=key, module=home)
            home.functions[key] = known
        elif known.has(function):
            from .kernel import forget_traces  # which needs functions first

            forget_traces(known)
            known = known.redefined(function)  # kernels that were given the one before as a value keep it
            home.functions[key] = known
        else:
            known.add(function)
        return known

    return made if f is None else made(f)


def same_scope(known, function):
    """Whether a function inside a function is an overload: it then stands in the same call of the outer function as the
    one before, which shows by its place after that one in the same code.
    """
    before = known.overloads[-1].function
    same_file = before.__code__.co_filename == function.__code__.co_filename
    return same_file and before.__code__.co_firstlineno < function.__code__.co_firstlineno
