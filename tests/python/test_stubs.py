"""The package's type stub: complete, and true to what functions give."""

import ast
import importlib.util
import pathlib
import re

import pytest

import weft as wp

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "python" / "tools" / "stubs.py"


@pytest.fixture(scope="module")
def text():
    """The stub as the build writes it."""
    spec = importlib.util.spec_from_file_location("weft_stubs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.stub()


def defined(tree):
    """The names that a stub defines."""
    found = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {a.asname or a.name for a in node.names}
    return found


def test_every_public_name_is_there(text):
    public = {name for name in vars(wp) if not name.startswith("_")}
    submodules = {name for name in public if type(getattr(wp, name)).__name__ == "module"}
    missing = public - submodules - defined(ast.parse(text))
    assert not missing


def test_types_of_results(text):
    for line in (
        "def dot(a: vec3, b: vec3) -> _b.float: ...",
        "def cross(a: vec3d, b: vec3d) -> vec3d: ...",
        "def transform_point(xform: transform, point: vec3) -> vec3: ...",
        "def rand_init(seed: _b.int, offset: _b.int) -> uint32: ...",
        "def randf(state: uint32) -> _b.float: ...",
        "def svd3(A: mat33) -> tuple[mat33, vec3, mat33]: ...",
        "def isfinite(a: vec2) -> _b.bool: ...",
    ):
        shown = {n: n + "f" for n in ("vec2", "vec3", "mat33", "transform")}
        full = re.sub(r"\b(vec[23]|mat33|transform)\b(?!_)", lambda m: shown[m[1]], line)
        assert line in text or full in text, line


def test_names_in_annotations_are_defined(text):
    tree = ast.parse(text)
    known = defined(tree) | {"_b", "Any", "tuple", "overload"}
    for node in ast.walk(tree):
        annotations = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for part in (p for a in annotations if isinstance(a, ast.AST) for p in ast.walk(a)):
            assert not isinstance(part, ast.Name) or part.id in known, part.id


def test_overloads_are_marked(text):
    counts = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            counts.setdefault(node.name, []).append(bool(node.decorator_list))
    for name, marks in counts.items():
        assert all(marks) if len(marks) > 1 else not any(marks), name
