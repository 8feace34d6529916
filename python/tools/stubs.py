"""Writes the package's type stub: what `weft` offers to editors and checkers, functions of kernels included.

    python stubs.py FILE

The package is imported from where Python finds it. Classes, and functions of the host, are written by hand in `stub_parts/`;
named types and functions of kernels come from the tables by which calls are matched (`weft.language.signatures`), each with
the types that it takes and the type that the library gives for them. What nothing describes is there with open types.
"""

import ast
import enum
import inspect
import pathlib
import sys
import types

import stub_functions
import stub_types

import weft
from weft import _weft, absent

PARTS = pathlib.Path(__file__).resolve().parent / "stub_parts"
MAKERS = ("empty", "zeros", "ones")
MAKER = """
@typing.overload
def {name}(
    shape: {shape},
    dtype: type[_E] = ...,
    device: _AnyDevice = ...,
    requires_grad: bool = ...,
    pinned: bool = ...,
    **keywords: Any,
) -> array[_E, {ndim}]: ...
"""
FULL = """
@typing.overload
def full(
    shape: {shape},
    value: Any,
    dtype: {dtype},
    device: _AnyDevice = ...,
    requires_grad: bool = ...,
    pinned: bool = ...,
    **keywords: Any,
) -> array[{element}, {ndim}]: ...
"""
SHAPES = [
    ("SupportsIndex | tuple[SupportsIndex]", "Literal[1]"),
    *((f"tuple[{', '.join(['SupportsIndex'] * n)}]", f"Literal[{n}]") for n in (2, 3, 4)),
    ("_Shape | None = ...", "Any"),
]
"""Shapes as makers of arrays take them, with the numbers of dimensions that they mean."""
UNTOLD = (weft.types.scalars.Scalar, weft.types.StructInstance)
"""Bases of classes that have more members than their stubs: those that serve the language alone."""


def part(name):
    """The text of a part that is written by hand."""
    return (PARTS / f"{name}.pyi").read_text().rstrip() + "\n"


def makers():
    """The functions that make arrays, for each number of dimensions that a shape shows."""
    texts = [MAKER.format(name=name, shape=shape, ndim=ndim) for name in MAKERS for shape, ndim in SHAPES]
    for shape, ndim in SHAPES:
        shape = shape.replace(" | None = ...", "")
        texts.append(FULL.format(shape=shape, dtype="type[_U]", element="_U", ndim=ndim))
    texts.append(FULL.format(shape="_Shape | None = ...", dtype="None = ...", element="Any", ndim="Any").replace(
        "value: Any,", "value: Any = ...,"))  # fmt: skip
    return "".join(texts)


def traced_lines():
    """The lines that are computed where calls can be traced: in the body of a kernel that is never run."""
    held = []
    kernel = _weft.Kernel(
        "stubs", __file__, 1, [], lambda args: held.extend([stub_types.type_lines(), stub_functions.function_lines()])
    )
    kernel.ir_hash()
    return held


def defined(tree):
    """The names that a stub defines for others."""
    found = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {a.asname for a in node.names if a.asname == a.name}
    return found


def imports():
    """Classes that are typed where they stand: errors, enumerations, named tuples, as the package's own file imports them."""
    lines = []
    for node in ast.parse(pathlib.Path(weft.__file__).read_text()).body:
        for alias in node.names if isinstance(node, ast.ImportFrom) and node.level else ():
            shown = alias.asname or alias.name
            thing = getattr(weft, shown, None)
            if isinstance(thing, type) and (issubclass(thing, (BaseException, enum.Enum)) or hasattr(thing, "_fields")):
                source = f"from {'.' * node.level}{node.module or ''} import {alias.name}"
                lines.append(f"{source} as {shown}" if shown == alias.name else f"{source} as _{alias.name}")
                lines += [] if shown == alias.name else [f"{shown} = _{alias.name}"]
    return lines


def signature(thing, first=()):
    """The parameters of a function of Python's, with open types."""
    try:
        given = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return ", ".join([*first, "*args: Any", "**keywords: Any"])
    shown = list(first)
    for parameter in list(given)[len(first) :]:
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.kind == parameter.KEYWORD_ONLY and not any(text.startswith("*") for text in shown):
            shown.append("*")
        default = "" if parameter.default is parameter.empty else " = ..."
        shown.append(f"{star}{parameter.name}: Any{default}")
    return ", ".join(shown)


def open_lines(name):
    """The lines of a public name that no table and no part describes."""
    thing = getattr(weft, name)
    if isinstance(thing, types.ModuleType):
        return [f"from . import {name} as {name}"]
    if type(thing) in (int, float, str):
        return [f"{name}: {type(thing).__name__}"]
    if isinstance(thing, type):
        return [f"class {name}:", "    def __init__(self, *args: Any, **keywords: Any) -> None: ..."]
    if callable(thing):
        return [f"def {name}({signature(thing)}) -> Any: ..."]
    return [f"{name}: Any"]


def members_of(node):
    """The names that a class of the stub defines."""
    names = {n.name for n in node.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return names | {n.target.id for n in node.body if isinstance(n, ast.AnnAssign)}


def open_members(node):
    """The lines for public members that a class of the package has, and its stub lacks."""
    cls = getattr(weft, node.name, None)
    if node.name.startswith("_") or not isinstance(cls, type) or cls in stub_functions.NAME_OF:
        return []
    lines = []
    for name in sorted(set(dir(cls)) - members_of(node)):
        member = inspect.getattr_static(cls, name)
        if name.startswith("_") or name in absent.MEMBERS.get(node.name, ()) or issubclass(cls, UNTOLD):
            continue
        if isinstance(member, property) or not callable(getattr(cls, name)):
            lines += ["    @property", f"    def {name}(self) -> Any: ..."]
        elif isinstance(member, (classmethod, staticmethod)):
            is_class = isinstance(member, classmethod)
            lines += [f"    @{type(member).__name__}"]
            lines += [f"    def {name}({'cls, ' if is_class else ''}*args: Any, **keywords: Any) -> Any: ..."]
        else:
            lines.append(f"    def {name}({signature(member, ['self'])}) -> Any: ...")
    return lines


def completed(text):
    """The text with what the package has and the text lacks."""
    tree = ast.parse(text)
    lines = text.splitlines()
    for node in reversed([n for n in tree.body if isinstance(n, ast.ClassDef)]):
        lines[node.end_lineno : node.end_lineno] = open_members(node)
    public = {name for name in dir(weft) if not name.startswith("_")} | {"__version__"}
    for name in sorted(public - defined(tree)):
        lines += open_lines(name)
    return "\n".join(lines).rstrip() + "\n"


def stub():
    """The text of the stub."""
    named, functions = ("\n".join(lines) + "\n" for lines in traced_lines())
    texts = [part("head"), "\n".join(imports()), named, part("arrays"), makers()]
    texts += [part(name) for name in ("runtime", "geometry", "interop", "kernels")]
    return completed("\n".join([*texts, functions]))


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(stub())
