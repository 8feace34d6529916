"""What kernels cannot do is refused with file, line and the line's text, before anything runs."""

import linecache

import numpy as np
import pytest

import weft as wp

PREFIX = "def bad(a: wp.array(dtype=float), v: wp.array(dtype=wp.vec3)):\n    i = wp.tid()\n"


def kernel_of(text):
    """A kernel whose third line is `text`."""
    source = PREFIX + "    " + text.replace("\n", "\n    ") + "\n"
    name = f"<kernel of {text!r}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = {"wp": wp}
    exec(compile(source, name, "exec"), names)
    return wp.Kernel(names["bad"]), name


CASES = [
    ("a[i] = 1.0 + i", wp.WarpCodegenError, "'add' that matched inputs with types"),
    ("foo(i)", wp.WarpCodegenKeyError, "undefined symbol: foo"),
    ("x = [1, 2]", wp.WarpCodegenError, "List constructs are not supported"),
    ("x = [j for j in range(3)]", wp.WarpCodegenError, "comprehensions"),
    ("x = f'{i}'", wp.WarpCodegenError, "f-strings"),
    ("a[i] = wp.vec3()", wp.WarpCodegenTypeError, "vec3f cannot be assigned where float32"),
    ("wp.sin(i)", wp.WarpCodegenError, "'sin' that matched inputs with types: .int32."),
    ("wp.foo.bar.tid()", wp.WarpCodegenAttributeError, "`foo` is not an attribute of"),
    ("wp.types.tid()", wp.WarpCodegenAttributeError, "Could not find function wp.types.tid as a built-in"),
    ("x = wp.static(1.0 / 0.0)", wp.WarpCodegenError, "Error evaluating static expression: float division by zero"),
    ("wp.nope(i)", wp.WarpCodegenAttributeError, "Could not find function wp.nope"),
    ("x = i.x", wp.WarpCodegenAttributeError, "`x` is not an attribute of 'i'"),
    ("a[i, 0] = 1.0", wp.WarpCodegenError, "1 dimensions, 2 indices"),
    ("a[1.0] = 1.0", wp.WarpCodegenTypeError, "an index is an integer"),
    ("return i", wp.WarpCodegenTypeError, "kernels cannot return values"),
    ("x = wp.vec3(1.0, 2.0)", wp.WarpCodegenError, "incompatible number of values"),
    ("x = wp.vec3(1.0, i, 2.0)", wp.WarpCodegenError, "expected to be of the type `float32`"),
    ("x, y = wp.vec3()", wp.WarpCodegenValueError, "too many values to unpack"),
    ("while True:\n    pass\nelse:\n    pass", wp.WarpCodegenError, "no `else`"),
    ("with a:\n    pass", wp.WarpCodegenError, "ast.With"),
    ("import os", wp.WarpCodegenError, "ast.Import"),
    ("x = wp.vec3()[5]", wp.WarpCodegenIndexError, "out of range"),
    ("wp.atomic_add(a, 0, 0, 1.0)", wp.WarpCodegenError, "an array of 1 dimensions"),
    ("wp.atomic_and(a, 0, 1.0)", wp.WarpCodegenError, "only work on arrays with"),
    ("x = wp.MeshQueryPoint()\nx.face = a", wp.WarpCodegenTypeError, "cannot be assigned where int32"),
    ("x = wp.static(i)", wp.WarpCodegenError, "Error evaluating static expression: name .i. is not defined"),
    ("x = wp.where()", wp.WarpCodegenError, "takes a condition"),
    ("x = wp.expect_near(a)", wp.WarpCodegenError, "takes two values"),
    ("wp.printf(i)", wp.WarpCodegenError, "is a string"),
    ("x = 1\nx = 2.0", wp.WarpCodegenTypeError, "assigning to existing symbol x"),
    ("for j in range(0, 3, 0):\n    pass", wp.WarpCodegenError, "step of range"),
    ("for j in range(1.5):\n    pass", wp.WarpCodegenError, "integers"),
    ("b = a\nif i > 0:\n    b = a[1:]\nb[0] = 1.0", wp.WarpCodegenError, "cannot depend on a condition"),
]


@pytest.mark.parametrize("text,kind,message", CASES, ids=[c[0].splitlines()[0] for c in CASES])
def test_refusals(text, kind, message):
    kernel, name = kernel_of(text)
    a, v = wp.zeros(4, dtype=float), wp.zeros(4, dtype=wp.vec3)
    with pytest.raises(kind, match=message) as caught:
        wp.launch(kernel, dim=4, inputs=[a, v])
    shown = str(caught.value)
    assert 'Error while parsing function "bad"' in shown
    lines = (PREFIX + "    " + text.replace("\n", "\n    ")).splitlines()
    line = caught.value.weft_place[1]
    assert f"{name}:{line}" in shown and lines[line - 1].strip() in shown
    assert line >= 3


def test_a_function_is_named_and_not_its_caller():
    @wp.func
    def inner(x: float):
        return x + 1 * wp.int64(2)

    @wp.kernel
    def outer(a: wp.array(dtype=float)):
        a[0] = inner(1.0)

    with pytest.raises(wp.WarpCodegenError) as caught:
        wp.launch(outer, dim=1, inputs=[wp.zeros(1, dtype=float)])
    assert str(caught.value).count("Error while parsing function") == 1
    assert '"' in str(caught.value) and "inner" in str(caught.value)


def test_a_kernel_that_failed_can_be_launched_again():
    kernel, _ = kernel_of("foo(i)")
    a, v = wp.zeros(4, dtype=float), wp.zeros(4, dtype=wp.vec3)
    for _ in range(2):
        with pytest.raises(wp.WarpCodegenKeyError):
            wp.launch(kernel, dim=4, inputs=[a, v])


def test_wrong_arguments_name_the_argument(device):
    @wp.kernel
    def k(a: wp.array(dtype=float), s: float, v: wp.vec3):
        i = wp.tid()
        a[i] = s + v[0]

    good = [wp.zeros(2, dtype=float), 1.0, wp.vec3()]
    wp.launch(k, dim=2, inputs=good)
    for position, wrong, message in [
        (0, wp.zeros(2, dtype=int), "dtype"),
        (0, wp.zeros((2, 2), dtype=float), "dimension"),
        (0, [1.0, 2.0], "passed value has type list"),
        (1, "x", "argument 's'"),
        (2, wp.vec2(), "argument 'v'"),
    ]:
        inputs = list(good)
        inputs[position] = wrong
        with pytest.raises((RuntimeError, TypeError), match=message):
            wp.launch(k, dim=2, inputs=inputs)
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        wp.launch(k, dim=2, inputs=good[:2])


def test_missing_annotations():
    @wp.kernel
    def k(a):
        a[0] = 1.0

    with pytest.raises(wp.WarpCodegenError, match="Incomplete argument annotations"):
        wp.launch(k, dim=1, inputs=[wp.zeros(1, dtype=float)])


def test_texts_and_numbers_in_place_of_values_are_refused():
    for wrong in (lambda: wp.vec3("abc"), lambda: wp.mat22("abcd")):
        with pytest.raises(TypeError, match="is no number"):
            wrong()
    with pytest.raises(TypeError, match="the loss is an array"):
        wp.Tape().backward(3.0)


def test_types_of_numpy_are_element_types():
    @wp.kernel
    def doubled(x: wp.array(dtype=np.float32)):
        i = wp.tid()
        x[i] = 2.0 * x[i]

    x = wp.full(3, 2.0, dtype=np.float32)
    wp.launch(doubled, 3, [x])
    assert x.numpy().tolist() == [4.0] * 3


def test_what_is_not_there_is_refused_by_name():
    for name, text in (("launch_tiled", "no tiles"), ("bfloat16", "float16"), ("Texture2D", "no textures"), ("sparse", "sparse")):
        assert not hasattr(wp, name)
        with pytest.raises(AttributeError, match=text):
            getattr(wp, name)

    @wp.kernel
    def tiled(x: wp.array(dtype=float)):
        t = wp.tile_load(x, shape=4)
        x[0] = t[0]

    with pytest.raises(Exception, match="there are no tiles yet"):
        wp.launch(tiled, 1, [wp.zeros(4, dtype=float)])
