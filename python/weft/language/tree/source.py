"""The syntax trees of Python functions. A file is parsed once, and its functions are found by their lines."""

import ast
import inspect
import linecache
import textwrap
import types

from ..errors import CodegenError

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

parsed_ = {}


class Source:
    """The tree of one function, with the file in which its lines are counted."""

    def __init__(self, node, file):
        self.node = node
        self.file = file
        self.facts = {}  # what emission finds out about names, kept for the next trace

    @property
    def body(self):
        """The statements; of a lambda, the return of its expression."""
        if isinstance(self.node, ast.Lambda):
            statement = ast.Return(self.node.body)
            ast.copy_location(statement, self.node.body)
            return [statement]
        return self.node.body

    @property
    def text(self):
        """The lines of the definition."""
        lines = linecache.getlines(self.file)[self.line - 1 : self.node.end_lineno]
        return textwrap.dedent("".join(lines)).rstrip() or ast.unparse(self.node)

    @property
    def line(self):
        """The line of the definition."""
        return self.node.lineno


def keep_source(function):
    """Keeps the lines of a function's file as they are now: it may be written again, or go, before a kernel is traced."""
    if isinstance(function, types.FunctionType):
        function._wp_lines_ = lines_of(function.__code__.co_filename)


def lines_of(file):
    """The lines of a file as they are now; the same list as long as the file does not change."""
    linecache.checkcache(file)
    return linecache.getlines(file)


def functions_by_line(file, lines):
    """The functions of a file's lines by the first line of their definition, decorators included."""
    known = parsed_.get(file)
    if known is not None and known[0] is lines:
        return known[1]
    found = {}
    if lines:
        for node in ast.walk(ast.parse("".join(lines), file)):
            if isinstance(node, FUNCTIONS):
                decorators = getattr(node, "decorator_list", ())
                first = min([node.lineno] + [d.lineno for d in decorators])
                found.setdefault(first, []).append(node)
    parsed_[file] = (lines, found)
    return found


def source_of(function):
    """The tree of a function.

    Errors: CodegenError for a function whose source is not at hand (typed into an interpreter that keeps none, or made
    by ``exec`` without ``linecache``), and for one of several lambdas on one line that cannot be told apart.
    """
    code = function.__code__
    file = code.co_filename
    lines = getattr(function, "_wp_lines_", None) or lines_of(file)
    candidates = functions_by_line(file, lines).get(code.co_firstlineno, [])
    if code.co_name == "<lambda>":
        named = [n for n in candidates if isinstance(n, ast.Lambda)]
        named = [n for n in named if lambda_matches(n, code)] if len(named) > 1 else named
    else:
        named = [n for n in candidates if getattr(n, "name", None) == code.co_name]
    if len(named) == 1:
        return Source(named[0], file)
    if len(named) > 1:
        raise CodegenError(f"{code.co_name} at {file}:{code.co_firstlineno} is one of several functions on its line")
    return source_by_inspection(function)


def lambda_matches(node, code):
    """Whether a lambda of the tree is the one that was compiled to `code`: its columns are those of its instructions."""
    positions = [p for p in code.co_positions() if p[0] is not None and p[2] is not None]
    columns = [p[2] for p in positions if p[0] == node.body.lineno]
    return not columns or node.col_offset <= min(columns) <= (node.end_col_offset or 1 << 30)


def source_by_inspection(function):
    """The tree of a function whose file does not have it at its line: what `inspect` knows of it."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise CodegenError(
            f"the source of {function.__qualname__} is not at hand: define kernels and functions in a file, a notebook "
            "or by weft's functions that take strings"
        ) from error
    text = textwrap.dedent("".join(lines))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, FUNCTIONS):
            ast.increment_lineno(node, first - 1)
            return Source(node, function.__code__.co_filename)
    raise CodegenError(f"the source of {function.__qualname__} has no function")
