"""Mistakes in the signatures of kernels and functions are refused with the line of the parameter; defaults and kinds of
parameters mean what they mean in Python.
"""

import itertools
import linecache
import numpy as np
import pytest

import weft as wp

ERROR, KIND = wp.WarpCodegenError, wp.WarpCodegenTypeError
MANY = "".join(f"    a{k}: wp.array(dtype=float),\n" for k in range(65))

CASES = [
    ("def k(\n    a: float,\n    s,\n): pass", 3, ERROR, "Incomplete argument annotations.* parameter s has no type"),
    ("def k(a: float,\n    *args: float): pass", 2, ERROR, r"parameter \*args of k is not supported"),
    ("def k(a: float,\n    **more): pass", 2, ERROR, r"parameter \*\*more of k is not supported"),
    ("def k(a: float,\n    b: str): pass", 2, ERROR, "parameter b of k is wrong: .*str.* is no type of kernels"),
    ("def k(a: float,\n    b: list): pass", 2, ERROR, "is no type of kernels"),
    ("def k(a: float,\n    b: np.ndarray): pass", 2, ERROR, "is no type of kernels"),
    ("def k(a: float,\n    b: 'float | int'): pass", 2, ERROR, "is no type of kernels"),
    ("def k(a: float,\n    b: Plain): pass", 2, ERROR, "is no type of kernels"),
    ("def k(a: float,\n    b: wp.array(dtype=Plain)): pass", 2, ERROR, "array of Plain, which is no type of kernels"),
    ("def k(a: float,\n    b: wp.array): pass", 2, ERROR, "is no type of kernels"),
    ("def k(a: float,\n    b: wp.ref[float]): pass", 2, ERROR, "is no type of a kernel's argument"),
    ("def k(a: float,\n    b: tuple[int, int]): pass", 2, ERROR, "is no type of a kernel's argument"),
    ("def k(a: float,\n    b: 'nope'): pass", 2, NameError, "parameter b of k cannot be evaluated: name 'nope'"),
    ("def k(a: float,\n    b: 'wp.arry(float)'): pass", 2, ERROR, "parameter b of k is wrong: .*arry"),
    ("def k(a: float,\n    b: '1 +'): pass", 2, ERROR, "parameter b of k is wrong: invalid syntax"),
    ("def k(a: float,\n    b: int = 1.5): pass", 2, KIND, "default of parameter b of k is of type float.*int32"),
    ("def k(a: float,\n    b: wp.vec3 = 1.0): pass", 2, KIND, "default of parameter b"),
    ("def k(a: float,\n    b: float\n    ) -> float: pass", 3, KIND, "kernels cannot return values"),
    (f"def k(\n{MANY}): pass", 1, ERROR, "65 parameters.* 64 are possible"),
    ("async def k(a: float): pass", 1, ERROR, "is a coroutine"),
]


numbers = itertools.count()


class Plain:
    """No type of kernels."""


def defined(source):
    """The function that a text defines first, and the text's file name."""
    name = f"<signature {source!r}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = {"wp": wp, "np": np, "Plain": Plain, "__name__": f"{__name__}.{next(numbers)}"}  # no two are overloads
    exec(compile(source, name, "exec"), names)
    return names["k"], name


@pytest.mark.parametrize("text,line,kind,message", CASES, ids=[f"{k}" for k in range(len(CASES))])
def test_mistakes_in_signatures_of_kernels_name_the_line(text, line, kind, message):
    function, name = defined(text)
    with pytest.raises(kind, match=message) as caught:
        wp.launch(wp.kernel(function), dim=1, inputs=[1.0] * function.__code__.co_argcount)
    shown = text.splitlines()[line - 1].rstrip()
    assert f'Error while parsing function "k" at {name}:{line}:\n{shown}\n' in str(caught.value)


@pytest.mark.parametrize("text,line,kind,message", [c for c in CASES if "wp.ref" not in c[0] and "tuple" not in c[0]][:14])
def test_mistakes_in_signatures_of_functions_name_the_line(text, line, kind, message):
    function, name = defined(text)
    function = wp.func(function)

    @wp.kernel(module="unique")
    def caller(a: wp.array(dtype=float)):
        a[0] = function(1.0, 2.0)

    with pytest.raises(kind, match=message) as caught:
        wp.launch(caller, dim=1, inputs=[wp.zeros(1, dtype=float)])
    assert f"{name}:{line}:\n" in str(caught.value)


def test_a_union_is_refused_with_its_line():
    function, name = defined("def k(a: float,\n    b: float | int): pass")
    with pytest.raises(ERROR, match="Union type annotations") as caught:
        wp.func(function)
    assert f"{name}:2:\n    b: float | int" in str(caught.value)


def test_what_is_no_function_is_refused():
    class Body:
        pass

    for decorate in (wp.kernel, wp.func, wp.Kernel, wp.Function):
        for wrong in (5, "text", Body, len):
            with pytest.raises(TypeError, match="made of functions of Python, not of a"):
                decorate(wrong)


def test_options_that_there_are_not_are_refused():
    with pytest.raises(TypeError, match="no option 'max_unrol'; did you mean `max_unroll`"):
        wp.kernel(max_unrol=3)

    @wp.kernel(max_unroll=3, launch_bounds=64, fast_math=True)
    def k(a: wp.array(dtype=float)):
        a[0] = 1.0

    assert k.options == {"max_unroll": 3, "launch_bounds": 64, "fast_math": True}


def test_parameters_may_have_the_names_of_fields_and_of_modules(device):
    @wp.struct
    class Body:
        mass: float
        pos: wp.vec3

    @wp.kernel
    def k(out: wp.array(dtype=float), body: Body, mass: float, pos: float, np: float):
        out[0] = body.mass + 10.0 * mass + 100.0 * pos + 1000.0 * np + 10000.0 * body.pos[1]

    body = Body()
    body.mass, body.pos = 1.0, wp.vec3(0.0, 5.0, 0.0)
    out = wp.zeros(1, dtype=float)
    wp.launch(k, dim=1, inputs=[out, body, 2.0, 3.0, 4.0])
    assert out.numpy()[0] == 54321.0


@wp.func
def weighted(x: float, /, y: float = 2.0, *, z: float = 3.0, n: int = 4):
    return x + 10.0 * y + 100.0 * z + 1000.0 * float(n)


@wp.func
def with_types(x: float, v: wp.vec2 = wp.vec2(1.0, 2.0), d: wp.float64 = 3, u: wp.uint8 = wp.uint8(4), b: bool = True):
    return x + v[1] + float(d) + float(u) + float(int(b))


def test_defaults_and_kinds_of_parameters_are_those_of_python(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        out[0] = weighted(1.0)
        out[1] = weighted(1.0, 5.0)
        out[2] = weighted(1.0, z=6.0, y=7.0)
        out[3] = weighted(1.0, n=8)
        out[4] = with_types(1.0)

    out = wp.zeros(5, dtype=float)
    wp.launch(k, dim=1, inputs=[out])
    host = [weighted(1.0), weighted(1.0, 5.0), weighted(1.0, z=6.0, y=7.0), weighted(1.0, n=8)]
    assert out.numpy().tolist() == [*host, 11.0]
