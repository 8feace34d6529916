"""Errors of kernels and functions: each names the file, the line and the line's text."""

import linecache


class CodegenError(RuntimeError):
    """A construct that kernels do not have, or use in a wrong way."""


class CodegenTypeError(TypeError):
    """Operands or arguments of types that do not fit."""


class CodegenAttributeError(AttributeError):
    """An attribute that a value in a kernel does not have."""


class CodegenIndexError(IndexError):
    """An index that is known to be out of range."""


class CodegenKeyError(KeyError):
    """A name or key that nothing has."""

    def __str__(self):
        return str(self.args[0]) if self.args else ""


class CodegenValueError(ValueError):
    """A value that cannot be used where it stands."""


KERNEL_RETURNS = (
    "Warp kernels cannot return values. Write results to output arguments, "
    "and omit the return annotation or use `-> None`."
)
"""The message for a kernel that returns something, or says that it does."""

CODEGEN_ERRORS = (
    CodegenError,
    CodegenTypeError,
    CodegenAttributeError,
    CodegenIndexError,
    CodegenKeyError,
    CodegenValueError,
)


def near(name, names):
    """The end of a sentence that suggests the names which a misspelt one may mean; an empty text if there are none."""
    import difflib  # which takes a while, and only errors need it

    found = difflib.get_close_matches(str(name), sorted({str(n) for n in names} - {str(name)}), 3, 0.7)
    return f"; did you mean {' or '.join(f'`{n}`' for n in found)}?" if found else ""


def place_error(error, function, file, line):
    """The error with the place in front of its message, once: callers of the function leave it as it is."""
    if getattr(error, "weft_place", None) is not None or not error.args and not isinstance(error, CODEGEN_ERRORS):
        return error
    text = linecache.getline(file, line).rstrip()
    where = f'Error while parsing function "{function}" at {file}:{line}:\n{text}\n'
    try:
        placed = type(error)(";".join([where] + [str(a) for a in error.args]))
    except Exception:
        return error  # an exception class with other arguments
    placed.weft_place = (file, line)
    return placed.with_traceback(error.__traceback__)
