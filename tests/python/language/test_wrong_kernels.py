"""What is wrong in a kernel is an exception of a sensible class that names the function, the file and the line, and shows
the line, with a sentence: for every kind of mistake that programs make.
"""

import linecache

import pytest

import weft as wp

HEAD = '''
N = 3
TABLE = [1.0, 2.0]
NAMES = {"mass": 1.0}
ARRAY = wp.zeros(4, dtype=float)

@wp.struct
class Body:
    pos: wp.vec3
    mass: float
    cells: wp.array(dtype=float)

@wp.func
def twice(x: float):
    return 2.0 * x

@wp.func
def pair(x: float):
    return x, x

@wp.func
def nothing(x: float):
    y = x

@wp.func
def named(x: float, *, y: float = 1.0):
    return x + y

@wp.func
def placed(x: float, /, y: float = 1.0):
    return x + y

def plain(x):
    return x

@wp.kernel
def other(a: wp.array(dtype=float)):
    a[0] = 1.0

'''
PARAMETERS = "a: wp.array(dtype=float), v: wp.array(dtype=wp.vec3), m: wp.array2d(dtype=int), s: float, n: int, b: Body"

ERROR, KIND, NAME = wp.WarpCodegenError, wp.WarpCodegenTypeError, wp.WarpCodegenKeyError
MEMBER, RANGE, VALUE = wp.WarpCodegenAttributeError, wp.WarpCodegenIndexError, wp.WarpCodegenValueError

CASES = [
    # Names
    ("x = undefined", NAME, "undefined symbol: undefined"),
    ("total = 1.0\nx = totla", NAME, "totla; did you mean `total`"),
    ("x = later\nlater = 1", NAME, "later, which is given a value only after this"),
    ("x = wp.sinn(s)", MEMBER, "wp.sinn .* did you mean `sin`"),
    ("x = wp.vec33()", MEMBER, "did you mean `vec3`"),
    ("x = b.posn", MEMBER, "`posn` is not an attribute of 'b' .*did you mean `pos`"),
    ("b.maas = 1.0", MEMBER, "did you mean `mass`"),
    ("x = Body(masss=1.0)", ERROR, "no field `masss` to set; did you mean `mass`"),
    ("x = NAMES['mas']", NAME, "NAMES has no item 'mas'; did you mean `mass`"),
    ("x = v[i].xy", MEMBER, "`xy` is not an attribute"),
    ("x = a.numpy()", MEMBER, "`numpy` is not an attribute of 'a'"),
    # Calls
    ("x = wp.sin(s, s)", ERROR, "'sin' that matched inputs with types: .float32, float32."),
    ("x = wp.sin()", ERROR, "there are sin"),
    ("x = twice(n)", ERROR, "there is twice.x: float32."),
    ("x = twice(y=s)", ERROR, "y=float32"),
    ("x = twice(s, s)", ERROR, "matched inputs"),
    ("x = named(s, s)", ERROR, "there is named"),
    ("x = placed(x=s)", ERROR, "there is placed"),
    ("twice(**NAMES)", ERROR, "do not unpack"),
    ("other(a)", ERROR, "other .*it is a kernel"),
    ("x = plain(s)", ERROR, "plain .*decorated with @wp.func"),
    ("wp.synchronize()", ERROR, "belongs to the host"),
    ("x = sum(a)", ERROR, "belongs to the host"),
    ("x = str(n)", ERROR, "cannot be made in a kernel"),
    ("x = s()", ERROR, "cannot be called"),
    ("x = nothing(s)", ERROR, "has no value"),
    ("x = nothing(s) + 1.0", ERROR, "nothing, float32"),
    ("x = -nothing(s)", ERROR, "nothing"),
    ("x = twice(nothing(s))", ERROR, "has no value"),
    ("if nothing(s):\n    pass", KIND, "nothing is no condition"),
    ("x = a[nothing(s)]", KIND, "not a nothing"),
    # Types
    ("x = s + n", ERROR, "such as float32.*around one"),
    ("x = n * 1.5", ERROR, "such as float32.*around one"),
    ("x = s << 1", ERROR, "shifts are of integers"),
    ("x = n ** 2", ERROR, "is of real numbers"),
    ("x = s & 1.0", ERROR, "of integers and booleans"),
    ("x = (n > 0) + (n > 1)", ERROR, "booleans are no numbers"),
    ("x = wp.vec3() + wp.vec2()", ERROR, "vec3f, vec2f"),
    ("x = a + a", ERROR, "array.float32., array.float32."),
    ("x = 'text' + 'more'", ERROR, "str, str"),
    ("x = not v[i]", KIND, "is no condition"),
    ("x = s if n > 0 else n", ERROR, "two sides are of types float32 and int32"),
    ("x = wp.where(n > 0, 1.0, n)", ERROR, "float32, int32"),
    ("x = 1\nx = 2.0", KIND, "existing symbol x .int32. with different type .float32."),
    ("if n > 0:\n    x = 1\nelse:\n    x = 1.0", KIND, "existing symbol x"),
    ("s = 3", KIND, "existing symbol s"),
    ("a = v", KIND, "existing symbol a"),
    ("x: float = n", KIND, "declared as float32"),
    ("x: int", ERROR, "declared with its first value"),
    ("x, y, z = pair(s)", VALUE, "not enough values"),
    ("x, *y = pair(s)", ERROR, "starred"),
    # Places
    ("a[i] = n", KIND, "int32 cannot be assigned where float32"),
    ("v[i] = (1.0, 2.0, 3.0)", KIND, "cannot be assigned where vec3f"),
    ("t = (1, 2)\nt[0] = 3", ERROR, "cannot be assigned to"),
    ("TABLE[0] = 3.0", ERROR, "cannot be assigned to"),
    ("wp.pi = 3.0", ERROR, "wp.pi cannot be assigned to"),
    ("m[i] = 3", ERROR, "give 1 more indices"),
    ("m[i, i, i] = 3", ERROR, "2 dimensions, 3 indices"),
    ("a[0:2] = 1.0", ERROR, "1 more indices"),
    ("x = a[s]", KIND, "an index is an integer"),
    ("x = a['k']", KIND, "an index is an integer"),
    ("x = v[i][3]", RANGE, "index 3 is out of range"),
    ("x = wp.mat22()[0, -3]", RANGE, "index -3 is out of range"),
    ("t = (1, 2)\nx = t[5]", RANGE, "out of range for a tuple"),
    ("t = (1, 2.0)\nx = t[n]", RANGE, "unless all are of one type"),
    ("x = TABLE[n]", ERROR, "keys that are known"),
    ("x = ARRAY[0]", KIND, "kernels get arrays as arguments"),
    ("x = wp.zeros(n, dtype=float)", ERROR, "specified as a constant"),
    # Numbers
    ("x = 99999999999999999999", VALUE, "more than 64 bits"),
    ("x = -99999999999999999999", VALUE, "more than 64 bits"),
    ("x = 2 ** 100", VALUE, "more than 64 bits"),
    ("x = 10 ** 1000000000", VALUE, "more than 64 bits"),
    ("x = 10.0 ** 1000", VALUE, "too large"),
    ("x = 1 << -1", VALUE, "negative number"),
    ("m[0, 0] = 3000000000", KIND, "uint32 cannot be assigned where int32"),
    ("x = n + 99999999999", ERROR, "int32, int64"),
    ("x = 5 % 0", ERROR, "divides by zero"),
    # Constructs
    ("x = [1, 2]", ERROR, "List constructs"),
    ("x = {1: 2}", ERROR, "ast.Dict` not supported in kernels: "),
    ("x = {1, 2}", ERROR, "ast.Set"),
    ("x = [j for j in range(3)]", ERROR, "comprehensions"),
    ("x = {j: j for j in range(3)}", ERROR, "ast.DictComp"),
    ("x = max(j for j in range(3))", ERROR, "ast.GeneratorExp"),
    ("x = f'{n}'", ERROR, "f-strings"),
    ("x = lambda y: y", ERROR, "lambdas"),
    ("x = (y := 3)", ERROR, "`:=`"),
    ("x = 1j", ERROR, "complex"),
    ("x = n in (1, 2)", ERROR, "no `in`"),
    ("with a:\n    pass", ERROR, "ast.With"),
    ("try:\n    x = 1\nexcept:\n    pass", ERROR, "ast.Try.*no exceptions"),
    ("raise ValueError('x')", ERROR, "ast.Raise"),
    ("class A:\n    pass", ERROR, "ast.ClassDef"),
    ("def inner(y: float):\n    return y", ERROR, "ast.FunctionDef.*@wp.func"),
    ("global N\nN = 4", ERROR, "ast.Global"),
    ("x = 1\ndel x", ERROR, "ast.Delete"),
    ("yield 1", ERROR, "ast.Yield"),
    ("match n:\n    case 1:\n        x = 1", ERROR, "ast.Match.*`elif`"),
    ("import os", ERROR, "ast.Import"),
    ("x = (*v[i], 1.0)", ERROR, "ast.Starred"),
    ("for j in range(3):\n    pass\nelse:\n    pass", ERROR, "no `else`"),
    ("for j in a:\n    pass", ERROR, "use range"),
    ("for j, k in range(3):\n    pass", ERROR, "a single name"),
    ("for j in range(s):\n    pass", ERROR, "are integers"),
    ("return n", KIND, "cannot return values"),
]


def kernel_of(text):
    """A kernel whose body is a text after the thread's number, and its lines."""
    source = HEAD + f"def wrong({PARAMETERS}):\n    i = wp.tid()\n    " + text.replace("\n", "\n    ") + "\n"
    name = f"<kernel of {text!r}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = {"wp": wp, "__name__": __name__}
    exec(compile(source, name, "exec"), names)
    return wp.Kernel(names["wrong"], key="wrong"), names["Body"], name, source.splitlines()


@pytest.mark.parametrize("text,kind,message", CASES, ids=[c[0].replace("\n", " ") for c in CASES])
def test_mistakes_in_kernels_are_refused_with_their_line(text, kind, message):
    kernel, struct, name, lines = kernel_of(text)
    inputs = [wp.zeros(4, dtype=float), wp.zeros(4, dtype=wp.vec3), wp.zeros((4, 4), dtype=int), 1.0, 2, struct()]
    with pytest.raises(kind, match=message) as caught:
        wp.launch(kernel, dim=2, inputs=inputs)
    line = caught.value.weft_place[1]
    assert line > lines.index(f"def wrong({PARAMETERS}):") + 1
    assert str(caught.value).startswith(f'Error while parsing function "wrong" at {name}:{line}:\n{lines[line - 1]}\n')


FUNCTIONS = [
    ("def f(x: float) -> int:\n    return x", ERROR, "annotated as `int` but the code returns a value of type `float32`"),
    ("def f(x: float) -> int:\n    y = x", ERROR, "annotated as `int` but the code returns nothing"),
    ("def f(x: float) -> float:\n    if x > 0.0:\n        return\n    return x", ERROR, "the code returns nothing"),
    ("def f(x: float) -> tuple[float, float]:\n    return x", ERROR, "tuple of 2 elements"),
    ("def f(x: float):\n    if x > 0.0:\n        return 1\n    return 1.0", KIND, "different types"),
    ("def f(x: float):\n    if x > 0.0:\n        return\n    return x", KIND, "different numbers of values"),
    ("def f(x: float):\n    return g(x)", wp.Error, "recursion is not supported: g -> f -> g"),
    ("def f(x: float):\n    return f(x) + 1.0", wp.Error, "recursion is not supported: f -> f"),
]


@pytest.mark.parametrize("text,kind,message", FUNCTIONS)
def test_mistakes_in_functions_are_refused_with_their_line(text, kind, message):
    call = "\n\n@wp.func\ndef g(x: float):\n    return f(x)\n\ndef k(a: wp.array(dtype=float)):\n    a[0] = float(g(a[0]))\n"
    source = f"@wp.func\n{text}{call}"
    name = f"<function {text!r}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = {"wp": wp, "__name__": f"{__name__}.{abs(hash(text))}"}
    exec(compile(source, name, "exec"), names)
    with pytest.raises(kind, match=message) as caught:
        wp.launch(wp.Kernel(names["k"]), dim=1, inputs=[wp.zeros(1, dtype=float)])
    assert f"{name}:" in str(caught.value)


def test_recursion_in_debug_mode_is_refused_too(monkeypatch):
    """There functions that assert are traced in the place of their calls."""
    monkeypatch.setattr(wp.config, "mode", "debug")

    @wp.func
    def down(n: int):
        assert n > 0
        return down(n - 1)

    @wp.kernel(module="unique")
    def k(a: wp.array(dtype=int)):
        a[0] = down(a[0])

    with pytest.raises(wp.WarpCodegenError, match="down calls itself"):
        wp.launch(k, dim=1, inputs=[wp.zeros(1, dtype=int)])


def test_recursion_of_a_function_that_returns_arrays_is_refused():
    @wp.func
    def down(a: wp.array(dtype=int), n: int):
        return down(a, n - 1)

    @wp.kernel(module="unique")
    def k(a: wp.array(dtype=int)):
        b = down(a, 3)
        b[0] = 1

    with pytest.raises(RuntimeError, match="down calls itself|recursion is not supported"):
        wp.launch(k, dim=1, inputs=[wp.zeros(1, dtype=int)])


def test_an_expression_that_is_too_deep_says_so():
    text = "a[0] = " + "-(" * 90 + "a[0]" + ")" * 90 + "".join(f" + {float(k)}" for k in range(900))
    kernel, struct, _, _ = kernel_of(text)
    inputs = [wp.zeros(4, dtype=float), wp.zeros(4, dtype=wp.vec3), wp.zeros((4, 4), dtype=int), 1.0, 2, struct()]
    with pytest.raises(wp.WarpCodegenError, match="nest too deeply"):
        wp.launch(kernel, dim=1, inputs=inputs)
