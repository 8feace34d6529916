"""Overloads of the functions of kernels: for the types that tables name, with the results that the library itself gives.

Stubs cannot say "as many components as the argument has", so each function is called with every named type, while a kernel
is traced. Overloads that say the same of several types are joined.
"""

import itertools
import re

import weft
from weft.language import builtins, calls, functions, library, operators, values
from weft.language.errors import CODEGEN_ERRORS
from weft.language.host import HostCall
from weft.language.signatures import FORMS, GROUPS, Form
from weft.language.statics import apart
from weft.types import scalars
from weft.types.named import NAMED

PLAIN = {scalars.int32: "int", scalars.float32: "float", scalars.bool: "bool"}
EXTENTS = (2, 3, 4, 6)
OUTPUTS = {
    "svd3": ("U", "sigma", "V"), "svd2": ("U", "sigma", "V"), "qr3": ("Q", "R"), "eig3": ("Q", "d"),
    "quat_to_axis_angle": ("axis", "angle"),
}  # fmt: skip
"""Functions that also write their results into variables of the caller, with the names of these."""
OTHERS = {"inverse_approx": "inverse"}
"""Functions that take what another one takes."""
OPERATORS = (
    "add", "sub", "mul", "div", "div_approx", "mod", "floordiv", "bit_and", "bit_or", "bit_xor", "lshift", "rshift",
)  # fmt: skip
ATOMICS = ("add", "sub", "min", "max", "and", "or", "xor", "exch", "cas")
WRITTEN = """
norm_l1(v: v[n, F])
norm_l2(v: v[n, F])
norm_huber(v: v[n, F], delta: float32 = 1.0)
norm_pseudo_huber(v: v[n, F], delta: float32 = 1.0)
smooth_normalize(v: v[n, F], delta: float32 = 1.0)
velocity_at_point(qd: spatial_vector, r: vec3)
quat_twist(axis: vec3, q: quat)
quat_twist_angle(axis: vec3, q: quat)
quat_twist_angle_signed(axis: vec3, q: quat)
quat_between_vectors(a: vec3, b: vec3)
quat_from_euler(e: vec3, i: int32, j: int32, k: int32)
quat_to_euler(q: quat, i: int32, j: int32, k: int32)
quat_to_rpy(q: quat)
transform_twist(t: transform, x: spatial_vector)
transform_wrench(t: transform, x: spatial_vector)
"""
"""Functions that are written in the language, as ``weft.language.signatures`` has those of the library."""


def name_of(cls):
    """A type as the stub names it; None for one without a name."""
    if cls in PLAIN:
        return PLAIN[cls]
    if cls in scalars.SCALARS:
        return cls.__name__
    return NAME_OF.get(cls)


NAME_OF = {cls: name for name, cls in reversed(NAMED.items())} | {c: n for n, c in NAMED.items() if n == c.__name__}


def widened(scalar):
    """The parameter for a number beside others of a scalar type, whose type bare numbers take."""
    name = name_of(scalar)
    return name if scalar in PLAIN else f"{name} | {literal_of(scalar)}"


def literal_of(scalar):
    """The type of the bare numbers that adapt to a scalar type."""
    return "float" if scalar in scalars.FLOATS else "int"


def type_of(value):
    """A result as the stub shows it. Results whose types have no name are Any."""
    if value is None:
        return "None"
    if isinstance(value, values.TupleValue):
        return f"tuple[{', '.join(type_of(item) for item in value.items)}]"
    return name_of(value.type) or "Any"


def one(kind):
    """A value of a type whose components are all 1, and which is no bare number."""
    code = kind.native.code
    return values.Value(kind, tuple(weft._weft.constant(code, 1) for _ in range(kind.native.count)))


def bindings(form):
    """What the letters of a form stand for, in each way for which there are named types."""
    kinds = sorted({p.scalar for p in form.parameters if isinstance(p.scalar, str)})
    extents = sorted({n for p in form.parameters for n in p.shape if isinstance(n, str)})
    squares = extents == ["c", "r"]
    for chosen in itertools.product(*(GROUPS[k] for k in kinds)):
        for shape in itertools.product(EXTENTS, repeat=1 if squares else len(extents)):
            shape = shape * 2 if squares else shape
            yield {**dict(zip(kinds, chosen)), **dict(zip(extents, shape))}


def result_of(key, kinds):
    """The result of a function for arguments of given types, as the stub shows it; None where there is no such function."""
    thing = getattr(weft, key)
    try:
        if isinstance(thing, functions.Overloads):
            return traced_apart(lambda: type_of(functions.call(thing, [one(k) for k in kinds], {})))
        given = [one(k) for k in kinds]
        if key in library.DRAWS:
            return type_of(library.call(key, given).items[0])
        return type_of(calls.run(key, builtins.Arguments(None, HostCall(), given, {}, 1)))
    except (*CODEGEN_ERRORS, RuntimeError, TypeError):
        return None


def traced_apart(work):
    """What a function gives in a trace of its own, which an error may end."""
    held = []
    apart(weft._weft.Kernel("stubs", __file__, 1, [], lambda args: held.append(work())).ir_hash)
    return held[0]


class Row:
    """One overload: the types of its parameters as texts, which of them are types of several components, the result."""

    def __init__(self, types, composite, result):
        self.types = list(types)
        self.composite = list(composite)
        self.result = result


def rows_of(key, form):
    """The overloads of one form, one for each type, with bare numbers where these adapt."""
    rows = []
    for bound in bindings(form):
        kinds = [p.type_for(bound) for p in form.parameters]
        names = [name_of(k) for k in kinds]
        result = None if None in names else result_of(key, kinds)
        if result is None:
            continue
        composite = [p.kind != "scalar" for p in form.parameters]
        open_numbers = [k for k, p in enumerate(form.parameters) if isinstance(p.scalar, str) and not composite[k]]
        typed = any(isinstance(p.scalar, str) for p, many in zip(form.parameters, composite) if many)
        scalar = next((kinds[k] for k in open_numbers), None)
        if scalar is None or scalar in PLAIN:
            rows.append(Row(names, composite, result))
        elif typed:
            types = [widened(scalar) if k in open_numbers else n for k, n in enumerate(names)]
            rows.append(Row(types, composite, result))
        else:
            for first in open_numbers:  # the first number that is not bare
                types = [
                    literal_of(scalar) if k in open_numbers and k < first else name if k == first else
                    widened(scalar) if k in open_numbers else name
                    for k, name in enumerate(names)
                ]  # fmt: skip
                rows.append(Row(types, composite, result))
    return rows


class Variables:
    """The type variables that overloads need: each stands for one of several types."""

    def __init__(self):
        self.names = {}

    def of(self, types):
        """The name of the variable for some types."""
        kind = re.match("[a-z]+", types[0])[0].capitalize()
        return self.names.setdefault(tuple(types), f"_{kind}{len(self.names)}")

    def lines(self):
        """Their declarations."""
        return [f'{name} = TypeVar("{name}", {", ".join(types)})' for types, name in self.names.items()]


def joined(rows, variables):
    """Fewer overloads that say the same, of those with one parameter of several components: a type variable where the result
    is of its type, else a union. What gives types without a name is one overload for anything, after the others.
    """
    groups, open_ones = {}, []
    for row in rows:
        many = [t for t, composite in zip(row.types, row.composite) if composite]
        if row.result == "Any":
            open_ones = [Row(["Any"] * len(row.types), [False] * len(row.types), "Any")]
        elif len(many) == 1:
            fixed = tuple("" if composite else t for t, composite in zip(row.types, row.composite))
            groups.setdefault((fixed, "=" if row.result == many[0] else row.result), []).append(many[0])
        else:
            groups.setdefault((tuple(row.types), row.result), []).append("")
    made = []
    for (fixed, result), members in groups.items():
        singles = list(dict.fromkeys(members))
        shown = variables.of(singles) if len(singles) > 1 and result == "=" else " | ".join(singles)
        made.append(Row([shown if t == "" else t for t in fixed], [], shown if result == "=" else result))
    return made + open_ones


def lines_of(key, parameters, result):
    """The line of one overload."""
    return f"def {key}({', '.join(parameters)}) -> {result}: ..."


def marked(lines):
    """Lines of one function, as overloads if there are several."""
    lines = list(dict.fromkeys(lines))
    return [part for line in lines for part in ((["@typing.overload"] if len(lines) > 1 else []) + [line])] + [""]


def ordered(rows):
    """Whole numbers first: an overload for float takes them too."""
    return sorted(rows, key=lambda row: 0 if "int" in row.types else 1 if "float" in row.types else 2)


def by_forms(key, forms, variables):
    """The lines of a function that has forms."""
    lines = []
    for form in forms:
        rows = rows_of(key, form)
        for row in ordered(joined(rows, variables)):
            shown = [f"{p.name}: {t}{'' if p.default is None else ' = ...'}" for p, t in zip(form.parameters, row.types)]
            if key == "rand_init":
                shown = [text.replace(": int", ": int | uint32") for text in shown]
            lines.append(lines_of(key, shown, row.result))
        for row in rows if key in OUTPUTS else ():
            parts = row.result[len("tuple[") : -1].split(", ")
            shown = [f"{p.name}: {t}" for p, t in zip(form.parameters, row.types)]
            shown += [f"{name}: {kind}" for name, kind in zip(OUTPUTS[key], parts)]
            lines.append(lines_of(key, [*shown, "/"], "None"))
    return marked(lines)


def pairs():
    """The pairs of named types of one scalar type, numbers among them."""
    for scalar in scalars.SCALARS:
        kinds = [scalar, *(c for c in NAME_OF if c._wp_scalar_type_ is scalar)]
        yield from itertools.product(kinds, repeat=2)


def operator_result(name, a, b):
    """The result of an operator; None for operands that do not fit."""
    try:
        return type_of(operators.binary(name, one(a), one(b)))
    except (*CODEGEN_ERRORS, RuntimeError, TypeError):
        return None


def operator_functions(variables):
    """The lines of the operators that are functions, too."""
    lines = []
    for key in OPERATORS:
        name = "div" if key == "div_approx" else key
        rows = []
        for a, b in pairs():
            result = operator_result(name, a, b)
            if result is None:
                continue
            first, second = name_of(a), name_of(b)
            numbers = [kind for kind in (a, b) if kind in scalars.SCALARS and kind not in PLAIN]
            if len(numbers) == 2:
                rows.append(Row([first, widened(b)], [False, False], result))
                rows.append(Row([literal_of(a), second], [False, False], result))
                continue
            types = [widened(kind) if kind in numbers else shown for kind, shown in ((a, first), (b, second))]
            rows.append(Row(types, [a not in scalars.SCALARS, b not in scalars.SCALARS], result))
        made = ordered(joined(rows, variables))
        lines += marked(lines_of(key, [f"a: {row.types[0]}", f"b: {row.types[1]}", "/"], row.result) for row in made)
    return lines


def atomics():
    """The lines of the atomic operations, for arrays of up to four dimensions."""
    lines = []
    for name in ATOMICS:
        values_ = ["compare: _U | float", "value: _U | float"] if name == "cas" else ["value: _U | float"]
        made = []
        for n in range(1, 5):
            places = ["i: _Index | tuple[_Index, ...]"] if n == 1 else [f"{k}: _Index" for k in "ijkl"[:n]]
            made.append(lines_of(f"atomic_{name}", ["arr: array[_U, Any]", *places, *values_], "_U"))
        lines += marked(made)
    return lines


def made_of_types():
    """The lines of functions that make matrices and change transforms."""
    lines, rows, columns = [], [], []
    for n in EXTENTS:
        for scalar in scalars.FLOATS:
            kind = weft.types.matrix((n, n), scalar)
            given = f"type[{name_of(scalar)}]{' = ...' if scalar is scalars.float32 else ''}"
            lines.append(lines_of("identity", [f"n: Literal[{n}]", f"dtype: {given}"], name_of(kind)))
            part = name_of(kind._wp_row_type_)
            several = [f"v{k}: {part}" for k in range(n)]
            rows.append(lines_of("matrix_from_rows", [*several, "/"], name_of(kind)))
            columns.append(lines_of("matrix_from_cols", [*several, "/"], name_of(kind)))
    anything = "def {}(*{}: Any) -> Any: ..."
    lines.append("def identity(n: int, dtype: type = ...) -> Any: ...")
    lines = marked(lines) + marked([*rows, anything.format("matrix_from_rows", "rows")])
    lines += marked([*columns, anything.format("matrix_from_cols", "columns")])
    for part, letter, kind in (("translation", "p", "vec3"), ("rotation", "q", "quat")):
        for ending in ("", "_copy"):
            key = f"transform_set_{part}{ending}"
            lines += marked(
                lines_of(key, [f"t: transform{s}", f"{letter}: {kind}{s}", "/"], f"transform{s}" if ending else "None")
                for s in "hfd"
            )
    return lines


def function_lines():
    """The lines of all functions that tables describe, with the type variables that they need before them."""
    variables, lines = Variables(), []
    written = {}
    for line in WRITTEN.strip().splitlines():
        written.setdefault(line[: line.index("(")], []).append(Form(line))
    for key, forms in {**FORMS, **{key: FORMS[other] for key, other in OTHERS.items()}, **written}.items():
        lines += by_forms(key, forms, variables)
    lines += operator_functions(variables)
    return [*variables.lines(), "", *lines, *atomics(), *made_of_types()]
