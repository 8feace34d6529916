"""Writes the package's type stub: what `weft` offers to editors and checkers, functions of kernels included.

    python stubs.py FILE

The package is imported from where Python finds it. Functions of kernels come from the tables by which calls are matched
(`weft.language.signatures`), each with the types that it takes and the type that the library gives for them.
"""

import ast
import itertools
import pathlib
import sys

import weft
from weft import _weft, names
from weft.language import builtins, calls, library, values
from weft.language.host import HostCall
from weft.language.signatures import FORMS
from weft.types import scalars
from weft.types.named import NAMED

HEAD = '''"""What the package offers, for editors and checkers. Written by python/tools/stubs.py."""

import builtins as _b
from typing import Any, overload

from . import _weft as _weft
'''

PLAIN = {scalars.int32: "_b.int", scalars.float32: "_b.float", scalars.bool: "_b.bool"}
# The scalar types and extents of which a stub is written for each letter of a pattern.
SCALARS_OF = {
    "S": (scalars.float32, scalars.float64, scalars.int32),
    "F": (scalars.float32, scalars.float64, scalars.float16),
    "I": (scalars.int32, scalars.uint32, scalars.int64),
}
EXTENTS = (2, 3, 4)

OPERATORS = """
    def __add__(self, other: Any) -> {0}: ...
    def __radd__(self, other: Any) -> {0}: ...
    def __sub__(self, other: Any) -> {0}: ...
    def __rsub__(self, other: Any) -> {0}: ...
    def __neg__(self) -> {0}: ...
    def __mul__(self, other: Any) -> Any: ...
    def __rmul__(self, other: Any) -> Any: ...
    def __matmul__(self, other: Any) -> Any: ...
    def __truediv__(self, other: Any) -> {0}: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __len__(self) -> _b.int: ...
    def __iter__(self) -> Any: ...
"""


def name_of(cls):
    """A type as the stub names it; None for one without a name."""
    if cls in PLAIN:
        return PLAIN[cls]
    if cls in scalars.SCALARS:
        return cls.__name__
    return next((n for n, t in NAMED.items() if t is cls and n == t.__name__), None) or next(
        (n for n, t in NAMED.items() if t is cls), None
    )


def type_of(value):
    """A result as the stub shows it. Results whose types have no name are Any."""
    if value is None:
        return "None"
    if isinstance(value, values.TupleValue):
        return f"tuple[{', '.join(type_of(item) for item in value.items)}]"
    return name_of(value.type) or "Any"


def has_letters(form):
    """Whether a form is one of many: for several scalar types or extents."""
    return any(isinstance(x, str) for p in form.parameters for x in (p.scalar, *p.shape))


def bindings(form):
    """What the letters of a form stand for, in each way that the stub shows."""
    kinds = sorted({p.scalar for p in form.parameters if isinstance(p.scalar, str)})
    extents = sorted({n for p in form.parameters for n in p.shape if isinstance(n, str)})
    squares = extents == ["c", "r"]
    for chosen in itertools.product(*(SCALARS_OF[k] for k in kinds)):
        for shape in itertools.product(EXTENTS, repeat=1 if squares else len(extents)):
            shape = shape * 2 if squares else shape
            yield {**dict(zip(kinds, chosen)), **dict(zip(extents, shape))}


def instance(key, form, bound):
    """The line for one form with types for its letters; None where the stub has no names for these, or the library no such
    function.
    """
    kinds = [p.type_for(bound) for p in form.parameters]
    shown = [name_of(k) for k in kinds]
    if None in shown:
        return None
    given = [values.zero(k) for k in kinds]
    try:
        if key in library.DRAWS:
            result = library.call(key, given).items[0]
        else:
            result = calls.run(key, builtins.Arguments(None, HostCall(), given, {}, 1))
    except (RuntimeError, TypeError):
        return None
    parameters = []
    for p, name in zip(form.parameters, shown):
        default = "" if p.default is None else " = ..."
        parameters.append(f"{p.name}: {name}{default}")
    return f"def {key}({', '.join(parameters)}) -> {type_of(result)}: ..."


def functions():
    """The lines of all functions of kernels."""
    lines = []
    for key in names.FUNCTIONS:
        found = []
        for form in FORMS.get(key, ()):
            for bound in bindings(form):
                line = instance(key, form, bound)
                if line is not None and line not in found:
                    found.append(line)
        if not found:
            lines += [f"def {key}(*args: Any, **keywords: Any) -> Any: ...", ""]
            continue
        if any(has_letters(form) for form in FORMS[key]):
            found.append(f"def {key}(*args: Any, **keywords: Any) -> Any: ...")  # other extents and scalar types
        for line in found:
            lines += (["@overload"] if len(found) > 1 else []) + [line]
        lines.append("")
    return lines


def traced_functions():
    """The same, computed where calls can be traced: in the body of a kernel that is never run."""
    held = []
    kernel = _weft.Kernel("stubs", __file__, 1, [], lambda args: held.append(functions()))
    kernel.ir_hash()
    return held[0]


def named_types():
    """The lines of the types with names of their own: classes, and other names for them."""
    lines, known = [], {}
    for name, cls in NAMED.items():
        if cls in known:
            lines += [f"{name} = {known[cls]}", ""]
            continue
        known[cls] = name
        lines += [f"class {name}:", "    def __init__(self, *args: Any, **keywords: Any) -> None: ..."]
        if cls.native.kind in ("vector", "quaternion") and cls._length_ <= 4:
            component = name_of(cls._wp_scalar_type_)
            lines += [f"    {c}: {component}" for c in "xyzw"[: cls._length_]]
        lines += OPERATORS.format(name).strip("\n").splitlines() + [""]
    return lines


def imports(init):
    """The imports of the package's own file, which name what it offers from other files."""
    lines = []
    for node in ast.parse(init.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            public = [a for a in node.names if a.asname and not a.asname.startswith("_")]
            lines += [f"from {'.' * node.level}{node.module or ''} import {a.name} as {a.asname}" for a in public]
    return lines


def constants():
    """The lines of numbers and texts, and of the scalar types."""
    lines = [f"from .types.scalars import {s.__name__} as {s.__name__}" for s in scalars.SCALARS]
    for name, value in vars(weft).items():
        if type(value) in (int, float, str) and (name == "__version__" or not name.startswith("_")):
            lines.append(f"{name}: _b.{type(value).__name__}")
    return lines


def stub():
    """The text of the stub."""
    init = pathlib.Path(weft.__file__)
    own = [
        "def constant(x: Any) -> Any: ...",
        "def init() -> None: ...",
        "",
    ]
    lines = [HEAD, *imports(init), *constants(), "", *named_types(), *own, *traced_functions()]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(stub())
