"""The syntax trees of Python functions. A file is parsed once, and its functions are found by their lines."""

import ast
import inspect
import linecache
import os
import textwrap
import types

from ..errors import CodegenError, place_error

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

parsed_ = {}


class Source:
    """The tree of one function, with the file in which its lines are counted, and all lines of that file."""

    def __init__(self, node, file, lines):
        self.node = node
        self.file = file
        self.lines = lines
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
        lines = self.lines[self.line - 1 : self.node.end_lineno]
        return textwrap.dedent("".join(lines)).rstrip() or ast.unparse(self.node)

    @property
    def line(self):
        """The line of the definition."""
        return self.node.lineno

    def line_of_parameter(self, name):
        """The line of a parameter, or of the annotation of the result if the name is "return"; else of the definition."""
        if name == "return" and getattr(self.node, "returns", None) is not None:
            return self.node.returns.lineno
        return next((p.lineno for p in parameters_of(self.node) if p.arg == name), self.line)


def parameters_of(node):
    """The nodes of all parameters of a function's node, in the order in which Python keeps their names."""
    args = node.args
    starred = [one for one in (args.vararg, args.kwarg) if one is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *starred]


def agrees(node, code):
    """Whether a function's node has the name and the parameters of a function's code."""
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    return name == code.co_name and has_parameters(node, code)


def has_parameters(node, code):
    """Whether a function's node has the parameters of a function's code."""
    names = tuple(p.arg for p in parameters_of(node))
    return names == code.co_varnames[: len(names)] and len(node.args.posonlyargs + node.args.args) == code.co_argcount


def keep_source(function):
    """Keeps the lines of a function's file as they are now: it may be written again, or go, before a kernel is traced.

    Errors: TypeError for what is no function of Python's.
    """
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"kernels and their functions are made of functions of Python, not of a {type(function).__name__}")
    if function.__code__.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise unplaced(function, f"{function.__qualname__} is a coroutine: kernels and their functions have no `async`")
    function._wp_lines_ = lines_of(function.__code__.co_filename)


def lines_of(file):
    """The lines of a file as they are now; the same list as long as the file does not change. Of a name that is no file's,
    such as a cell's of a notebook, what `linecache` was given under it.
    """
    if os.path.exists(file):
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
    named = [n for n in functions_by_line(file, lines).get(code.co_firstlineno, []) if agrees(n, code)]
    if code.co_name == "<lambda>" and len(named) > 1:
        named = [n for n in named if lambda_matches(n, code)]
    if len(named) == 1:
        return Source(named[0], file, lines)
    if len(named) > 1:
        raise unplaced(function, f"{code.co_name} is one of several functions on its line, which cannot be told apart")
    return source_by_inspection(function)


def unplaced(function, message):
    """The error of a function whose tree is not found, with the place that its code names."""
    code = function.__code__
    return place_error(CodegenError(message), function.__qualname__, code.co_filename, code.co_firstlineno)


def lambda_matches(node, code):
    """Whether a lambda of the tree is the one that was compiled to `code`: its columns are those of its instructions."""
    if not hasattr(code, "co_positions"):  # before Python 3.11 code had no columns
        made = next(c for c in compile(ast.Expression(node), code.co_filename, "eval").co_consts if hasattr(c, "co_code"))
        return facts_of(made) == facts_of(code)
    positions = [p for p in code.co_positions() if p[0] is not None and p[2] is not None]
    columns = [p[2] for p in positions if p[0] == node.body.lineno]
    return not columns or node.col_offset <= min(columns) <= (node.end_col_offset or 1 << 30)


def facts_of(code):
    """What the code of a lambda has wherever it is compiled. Outside of its function, the names of that one are global."""
    return code.co_varnames, {*code.co_names, *code.co_freevars}, code.co_consts


def source_by_inspection(function):
    """The tree of a function whose file does not have it at its line: what `inspect` knows of it."""
    try:
        lines, first = inspect.getsourcelines(function)
        text = textwrap.dedent("".join(lines))
        lines = ["\n"] * (first - 1) + text.splitlines(keepends=True)  # with the numbers that they have in the file
        nodes = ast.walk(ast.parse("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        nodes = ()
    for node in nodes:
        if isinstance(node, FUNCTIONS) and agrees(node, function.__code__):
            return Source(node, function.__code__.co_filename, lines)
    raise unplaced(
        function,
        f"the source of {function.__qualname__} is not at hand, as of all that exec() makes of a string: give the string, "
        "too, as in wp.Kernel(function, source=text) and wp.Function(function, source=text), register its lines with "
        "Python's linecache, or define the function in a file or a notebook",
    )
