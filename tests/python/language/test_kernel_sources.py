"""Kernels and functions from texts: `source=`, transformers of their trees, and functions that exec() made."""

import ast
import linecache
import types
from typing import Any

import numpy as np
import pytest

import weft as wp
from weft.language.tree.source import lambda_matches

TEXT = """
def scaled(x: wp.array(dtype=float), factor: float):
    i = wp.tid()
    x[i] = factor * x[i] + OFFSET
"""


def executed(text, file="<string>", **names):
    """The names that a text defines when it is executed."""
    namespace = {"wp": wp, "Any": Any, "__name__": __name__, **names}
    exec(compile(text, file, "exec"), namespace)
    return namespace


def numbers(kernel, *more, dtype=float, n=3):
    """What a kernel makes of 1, 2, 3, ..."""
    x = wp.array(np.arange(1, n + 1), dtype=dtype)
    wp.launch(kernel, dim=n, inputs=[x, *more])
    return x.numpy().tolist()


def test_a_kernel_has_the_source_that_it_is_given(device):
    function = executed(TEXT, OFFSET=10.0)["scaled"]
    assert numbers(wp.Kernel(function, source=TEXT), 2.0) == [12.0, 14.0, 16.0]
    other = TEXT.replace("factor *", "3.0 + factor *")
    assert numbers(wp.Kernel(function, key="other", source=other), 2.0) == [15.0, 17.0, 19.0]


def test_a_source_replaces_that_of_a_function_in_a_file(device):
    def add(x: wp.array(dtype=float), amount: float):
        i = wp.tid()
        x[i] = x[i] + amount

    subtract = "    def add(x, amount):\n        i = wp.tid()\n        x[i] = x[i] - amount\n"  # annotations are the function's
    assert numbers(wp.Kernel(add), 1.0) == [2.0, 3.0, 4.0]
    assert numbers(wp.Kernel(add, key="subtract", source=subtract), 1.0) == [0.0, 1.0, 2.0]


def test_generic_kernels_have_their_source_for_all_types(device):
    text = "def twice(x: wp.array(dtype=Any)):\n    i = wp.tid()\n    x[i] = x[i] + x[i]\n"
    kernel = wp.Kernel(executed(text)["twice"], source=text)
    assert numbers(kernel) == [2.0, 4.0, 6.0] and numbers(kernel, dtype=int) == [2, 4, 6]
    assert numbers(wp.overload(kernel, [wp.array(dtype=wp.float64)]), dtype=wp.float64) == [2.0, 4.0, 6.0]


def test_errors_show_the_line_of_the_source(device):
    text = "import math\n\ndef wrong(x: wp.array(dtype=float)):\n    i = wp.tid()\n    x[i] = x[i] + i\n"
    kernel = wp.Kernel(executed(text)["wrong"], source=text)
    with pytest.raises(wp.WarpCodegenError) as caught:
        numbers(kernel)
    assert "<source of wrong>:5:\n    x[i] = x[i] + i\n" in str(caught.value)
    assert caught.value.weft_place == ("<source of wrong>", 5)


def test_sources_of_one_name_are_told_apart():
    texts = [f"def same(x: wp.array(dtype=float)):\n    x[0] = {k} + undefined\n" for k in range(3)]
    files = []
    for text in [*texts, texts[1]]:
        with pytest.raises(wp.WarpCodegenKeyError) as caught:
            numbers(wp.Kernel(executed(text)["same"], key="same", source=text))
        files.append(caught.value.weft_place[0])
        assert text.splitlines()[1].strip() in str(caught.value)
    assert len(set(files)) == 3 and files[3] == files[1]


@pytest.mark.parametrize(
    "text,kind,message",
    [
        (5, TypeError, "is a string, not a int"),
        ("x = 1", wp.WarpCodegenError, "defines no function"),
        ("def k(y): pass", wp.WarpCodegenError, "has the parameters y, and the function itself x"),
        ("def k(x:\n    pass", SyntaxError, "was never closed|invalid syntax"),
    ],
)
def test_wrong_sources_are_refused(text, kind, message):
    def k(x: wp.array(dtype=float)):
        x[0] = 1.0

    with pytest.raises(kind, match=message):
        wp.Kernel(k, source=text)


def test_functions_have_the_source_that_they_are_given(device):
    text = "def shifted(x: float):\n    return x + 0.5\n"
    shifted = wp.Function(executed(text)["shifted"], key="shifted", source=text)

    @wp.kernel
    def k(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = shifted(x[i])

    assert numbers(k) == [1.5, 2.5, 3.5] and shifted(1.0) == 1.5


def test_kernels_of_exec_say_what_to_do(device):
    text = "@wp.func\ndef f(x: float):\n    return x\n\n@wp.kernel\ndef k(x: wp.array(dtype=float)):\n    x[0] = 1.0\n"
    made = executed(text)

    @wp.kernel
    def caller(x: wp.array(dtype=float)):
        x[0] = made_f(x[0])

    made_f = made["f"]
    for kernel in (made["k"], caller):
        with pytest.raises(wp.WarpCodegenError, match=r"source of . is not at hand.*source=text.*linecache") as caught:
            numbers(kernel)
        assert "<string>:" in str(caught.value)


def test_a_function_of_exec_does_not_take_the_lines_of_another_file(device):
    """A name of a file that is not there makes Python look at the lines of the module in whose names the text ran."""
    first = next(k for k, line in enumerate(open(__file__)) if line.startswith("def numbers"))
    text = "\n" * first + "def numbers(x: wp.array(dtype=float)):\n    x[0] = 7.0\n"
    namespace = dict(globals())
    exec(compile(text, "not_there.py", "exec"), namespace)
    with pytest.raises(wp.WarpCodegenError, match="not at hand"):
        wp.launch(wp.Kernel(namespace["numbers"]), dim=1, inputs=[wp.zeros(1, dtype=float)])


@pytest.mark.parametrize("modified", [None, 12.5])
def test_lines_that_linecache_was_given_are_a_source(device, modified):
    text = "@wp.kernel\ndef k(x: wp.array(dtype=float)):\n    i = wp.tid()\n    x[i] = -x[i]\n"
    file = f"<a cell {modified}>"
    linecache.cache[file] = (len(text), modified, text.splitlines(True), file)
    assert numbers(executed(text, file)["k"]) == [-1.0, -2.0, -3.0]


class Doubled(ast.NodeTransformer):
    """Doubles the real literals."""

    def visit_Constant(self, node):
        return ast.Constant(2.0 * node.value) if isinstance(node.value, float) else node


class Negated(ast.NodeTransformer):
    """Puts a minus before what is assigned to elements."""

    def visit_Assign(self, node):
        if isinstance(node.targets[0], ast.Subscript):
            node.value = ast.UnaryOp(ast.USub(), node.value)
        return node


def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


def test_transformers_change_the_tree_one_after_another(device):
    assert numbers(wp.Kernel(add, key="changed", code_transformers=[Doubled(), Negated()])) == [-3.0, -4.0, -5.0]
    assert numbers(wp.Kernel(add, key="unchanged")) == [2.0, 3.0, 4.0]  # the tree of the file is as it was
    text = "def add(x):\n    i = wp.tid()\n    x[i] = x[i] * 1.5\n"
    assert numbers(wp.Kernel(add, key="both", source=text, code_transformers=[Doubled()])) == [3.0, 6.0, 9.0]

    def half(x: float):
        return x * 0.25

    function = wp.Function(half, code_transformers=[Doubled()])

    @wp.kernel
    def k(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = function(x[i])

    assert numbers(k) == [0.5, 1.0, 1.5]


def test_wrong_transformers_are_refused():
    class Removes(ast.NodeTransformer):
        def visit_FunctionDef(self, node):
            return None

    class Renames(ast.NodeTransformer):
        def visit_arg(self, node):
            node.arg = "y"
            return node

    for wrong, kind, message in (
        (5, TypeError, "ast.NodeTransformer, not a int"),
        (Removes(), wp.WarpCodegenError, "leave no function of add"),
        (Renames(), wp.WarpCodegenError, "has the parameters y, and the function itself x"),
    ):
        with pytest.raises(kind, match=message):
            wp.Kernel(add, key="add", code_transformers=[wrong])


def test_an_error_in_what_a_transformer_made_shows_the_line_around_it():
    class Undefined(ast.NodeTransformer):
        def visit_Constant(self, node):
            return ast.Name("missing", ast.Load())

    with pytest.raises(wp.WarpCodegenKeyError, match="missing") as caught:
        numbers(wp.Kernel(add, key="undefined", code_transformers=[Undefined()]))
    assert "x[i] = x[i] + 1.0" in str(caught.value)


def test_hashes_and_notebooks_know_the_source():
    text = "def shown(x: wp.array(dtype=Any)):\n    x[0] = x[0] + x[0]\n"
    function = executed(text)["shown"]
    kernels = []
    for k, source in enumerate((text, text.replace("+", "*"))):
        module = wp.get_module(f"{__name__}.sources{k}")
        kernels.append(wp.Kernel(function, module=module, source=source))
    assert kernels[0].module.hash_module() != kernels[1].module.hash_module()
    assert "x[0] * x[0]" in kernels[1]._repr_html_()


def test_lambdas_on_one_line_are_told_apart_by_a_python_without_columns():
    functions = (lambda x: x + 1.0, lambda x: x * 2.0, lambda y: y + 1.0)
    tree = ast.parse("(lambda x: x + 1.0, lambda x: x * 2.0, lambda y: y + 1.0)")
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    facts = ("co_filename", "co_varnames", "co_names", "co_freevars", "co_consts")
    codes = [types.SimpleNamespace(**{n: getattr(f.__code__, n) for n in facts}) for f in functions]
    found = [[lambda_matches(node, code) for node in nodes] for code in codes]
    assert found == [[True, False, False], [False, True, False], [False, False, True]]
