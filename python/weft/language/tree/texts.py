"""Functions whose tree is not simply that of their file: it is given as a text, or transformers change it.

Python's function still gives the parameters, with their annotations and defaults, and the names of Python that are seen.
"""

import ast
import linecache
import textwrap

from ..errors import CodegenError
from .source import FUNCTIONS, Source, has_parameters, parameters_of, source_of


def given_source(function, name, text=None, transformers=None):
    r"""The tree of a function from what its kernel was given; None if it is that of its file.

    \param name  the kernel's or the function's, as errors show it
    \param text  the text that defines the function, or None
    \param transformers  objects of classes derived from ``ast.NodeTransformer``, which visit the tree one after another

    Errors: SyntaxError for a text that is not Python's, with its line; TypeError for what is no text and no transformer;
    CodegenError for a text that defines no function, or one with other parameters.
    """
    if text is None and not transformers:
        return None
    source = source_of(function) if text is None else source_of_text(name, text, function)
    for transformer in transformers or ():
        if not isinstance(transformer, ast.NodeTransformer):
            raise TypeError(f"code_transformers takes objects of ast.NodeTransformer, not a {type(transformer).__name__}")
    source = transformed(source, name, transformers) if transformers else source
    check_parameters(source.node, name, function)
    return source


def source_of_text(name, text, function):
    """The tree of the function that a text defines: the one of the function's name, or else the first."""
    if not isinstance(text, str):
        raise TypeError(f"the source of kernel or function {name} is a string, not a {type(text).__name__}")
    lines = textwrap.dedent(text).splitlines(keepends=True)
    file = registered(name, lines)
    found = [n for n in ast.parse("".join(lines), file).body if isinstance(n, ast.FunctionDef)]
    if not found:
        raise CodegenError(f"the source of {name} defines no function")
    node = next((n for n in found if n.name == function.__name__), found[0])
    return Source(node, file, lines)


def registered(name, lines):
    """The file name under which errors and Python's tracebacks find the lines of a text."""
    number = 1
    while True:
        file = f"<source of {name}>" if number == 1 else f"<source of {name}, {number}>"
        known = linecache.cache.setdefault(file, (sum(map(len, lines)), None, lines, file))
        if known[2] == lines:
            return file
        number += 1


def check_parameters(node, name, function):
    """Refuses a tree whose parameters are not those of Python's function, whose annotations they have."""
    if not has_parameters(node, function.__code__):
        given = ", ".join(p.arg for p in parameters_of(node)) or "none"
        wanted = ", ".join(function.__code__.co_varnames[: function.__code__.co_argcount]) or "none"
        raise CodegenError(f"the source of {name} has the parameters {given}, and the function itself {wanted}")


def transformed(source, name, transformers):
    """The source with a tree of its own, as those of a file are shared, that the transformers have visited.

    Each is given a module that holds the function alone. What it makes gets the lines of what stands around it.
    """
    tree = ast.Module([fresh_node(source)], [])
    for transformer in transformers:
        tree = transformer.visit(tree)
    node = tree.body[0] if isinstance(tree, ast.Module) and tree.body else None
    if not isinstance(node, FUNCTIONS):
        raise CodegenError(f"code_transformers leave no function of {name}: visit() returns the module, with the function")
    ast.fix_missing_locations(tree)
    return Source(node, source.file, source.lines)


def fresh_node(source):
    """A function's node in a tree that was not parsed before."""
    place = (source.line, source.node.col_offset)
    for node in ast.walk(ast.parse("".join(source.lines), source.file)):
        if type(node) is type(source.node) and (node.lineno, node.col_offset) == place:
            return node
    raise CodegenError(f"{source.file}:{source.line} has changed")
