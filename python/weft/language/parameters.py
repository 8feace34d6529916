"""The parameters of kernels and functions as their signatures say them. Errors name the line of the parameter."""

import inspect
import typing

from ..types import annotations, composites, scalars
from ..types.annotations import same_type, type_name
from .errors import CodegenError, CodegenTypeError, place_error
from .values import adapted, literal

STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def parameters_of(owner, function, name):
    r"""Names, types and defaults of the parameters of a kernel's or function's Python function.

    \param owner  gives the tree where an error shows a line of it, as `source`
    \param name  the kernel's or the function's, as errors show it

    Errors: CodegenError for a parameter without annotation, one whose annotation means no type of kernels, and a starred one;
    CodegenTypeError for a default of another type.
    """
    found = []
    for parameter in inspect.signature(function).parameters.values():
        try:
            found.append((parameter.name, type_of(function, parameter, name), parameter.default))
        except Exception as error:
            raise placed(error, owner, function, name, parameter.name) from None
    return found


def type_of(function, parameter, name):
    """The type of one parameter."""
    if parameter.kind in STARRED:
        stars = "*" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else "**"
        raise CodegenError(f"parameter {stars}{parameter.name} of {name} is not supported: each parameter has a name and a type")
    if parameter.name not in function.__annotations__:
        raise CodegenError(
            f"Incomplete argument annotations on function {name}: parameter {parameter.name} has no type, "
            f"as in `{parameter.name}: float`"
        )
    what = f"parameter {parameter.name} of {name}"
    kind = meant(function, parameter.name, what)
    if parameter.default is not inspect.Parameter.empty and not takes_default(kind, parameter.default):
        raise CodegenTypeError(
            f"the default of {what} is of type {type(parameter.default).__name__}, and its annotation is {type_name(kind)}"
        )
    return kind


def result_of(owner, function, name):
    """The type, or tuple of types, that a function says it returns; None if it says nothing or None.

    Errors: CodegenError for an annotation that means no type of kernels.
    """
    if function.__annotations__.get("return") in (None, type(None), "None"):
        return None
    try:
        return meant(function, "return", f"the result of {name}")
    except Exception as error:
        raise placed(error, owner, function, name, "return") from None


def meant(function, name, what):
    """The type that an annotation means; a string is evaluated now. Errors: CodegenError, and NameError for a wrong name."""
    written = function.__annotations__[name]
    try:
        if isinstance(written, str):
            written = eval(written, annotations.names_of(function))
        kind = annotations.value_type(written)
    except NameError as error:
        raise NameError(f"the annotation of {what} cannot be evaluated: {error}") from None
    except Exception as error:
        raise CodegenError(f"the annotation of {what} is wrong: {error}") from None
    element = getattr(kind, "dtype", None)
    is_class = isinstance(element, type) and element is not typing.Any
    if isinstance(kind, annotations.ArrayType) and is_class and not annotations.is_concrete(element):
        raise CodegenError(f"{what} is an array of {type_name(element)}, which is no type of kernels")
    return kind


def takes_default(kind, default):
    """Whether a parameter of a type takes a value of Python's as its default. Of an open type any call tells."""
    if kind is typing.Callable or not isinstance(kind, (tuple, annotations.ArrayType)) and annotations.is_open(kind):
        return True
    if isinstance(kind, (tuple, annotations.ArrayType, annotations.RefType)):
        return False
    if hasattr(default, "dtype") and hasattr(default, "item") and not isinstance(default, scalars.Scalar):
        return True  # a number of NumPy's, which the call compares
    if isinstance(default, (bool, int, float)):
        return kind.native.kind == "scalar" and adapted(literal(default), kind) is not None
    if isinstance(default, (scalars.Scalar, composites.Composite)) or annotations.is_concrete(type(default)):
        return same_type(kind, type(default))
    return False


def placed(error, owner, function, name, parameter):
    """An error about a parameter, or about the result if that is "return", with its line in front."""
    code = function.__code__
    file, line = code.co_filename, code.co_firstlineno
    try:
        source = owner.source
        file, line = source.file, source.line_of_parameter(parameter)
    except Exception:  # the source is not at hand
        pass
    return place_error(error, name, file, line)
