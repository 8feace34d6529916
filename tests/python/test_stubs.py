"""The package's type stub: complete, without contradictions, true to what the package has, and of use to type checkers."""

import ast
import collections
import importlib.util
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import weft as wp

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "python" / "tools"
TYPED = pathlib.Path(__file__).resolve().parent / "typed"

OPEN = {
    "vector": "a type on the host, a value in kernels",
    "matrix": "a type on the host, a value in kernels",
    "vec": "a type, which has no name",
    "mat": "a type, which has no name",
    "quaternion": "a type on the host, a value in kernels",
    "transformation": "a type on the host, a value in kernels",
    "dtype_to_numpy": "a class of NumPy's, or a structured type",
    "to_dlpack": "a capsule, for which Python has no type",
    "to_jax": "of a library that may not be installed",
    "dtype_to_jax": "of a library that may not be installed",
    "device_to_jax": "of a library that may not be installed",
    "to_torch": "of a library that may not be installed",
    "dtype_to_torch": "of a library that may not be installed",
    "stream_to_torch": "of a library that may not be installed",
    "to_paddle": "of a library that may not be installed",
    "dtype_to_paddle": "of a library that may not be installed",
}
"""Functions of which no overload says what it gives, with the reason."""


@pytest.fixture(scope="module")
def text():
    """The stub as the build writes it."""
    sys.path.insert(0, str(TOOLS))
    try:
        spec = importlib.util.spec_from_file_location("weft_stubs", TOOLS / "stubs.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.stub()
    finally:
        sys.path.remove(str(TOOLS))


@pytest.fixture(scope="module")
def tree(text):
    """The stub's syntax."""
    return ast.parse(text)


def is_public(node):
    """Whether an import of a stub is one for others, too: of a name as itself."""
    return [a.asname for a in node.names if a.asname == a.name]


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
            found |= set(is_public(node))
    return found


def marks(node):
    """The names of a function's decorators."""
    return {ast.unparse(d).rpartition(".")[2] for d in node.decorator_list}


def bodies(tree):
    """The module and its classes: what definitions stand in."""
    yield "", tree.body
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name + ".", node.body


def functions_of(body):
    """The functions of a body by their names: each with all of its overloads."""
    found = collections.defaultdict(list)
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found[node.name].append(node)
    return found


def test_every_public_name_is_there(tree):
    public = {name for name in dir(wp) if not name.startswith("_")} | {"__version__"}
    assert not public - defined(tree)


def test_nothing_is_defined_twice(tree):
    for place, body in bodies(tree):
        names = [node.name for node in body if isinstance(node, ast.ClassDef)]
        names += [node.target.id for node in body if isinstance(node, ast.AnnAssign)]
        names += [t.id for node in body if isinstance(node, ast.Assign) for t in node.targets]
        names += [a.asname or a.name for node in body if isinstance(node, (ast.Import, ast.ImportFrom)) for a in node.names]
        for name, found in functions_of(body).items():
            names.append(name)
            is_overloaded = ["overload" in marks(node) for node in found]
            assert all(is_overloaded) if len(found) > 1 else not any(is_overloaded), place + name
            signatures = [ast.unparse(node.args) for node in found]
            assert len(set(signatures)) == len(signatures), place + name
        assert not [name for name, count in collections.Counter(names).items() if count > 1]


def test_overloads_stand_together(tree):
    for place, body in bodies(tree):
        order = [node.name for node in body if isinstance(node, ast.FunctionDef)]
        runs = [name for name, before in zip(order, [None, *order]) if name != before]
        assert len(set(runs)) == len(runs), place


def test_names_in_annotations_are_defined(tree):
    known = defined(tree) | set(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)
    known |= {a.asname or a.name for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    for node in ast.walk(tree):
        annotations = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for part in (p for a in annotations if isinstance(a, ast.AST) for p in ast.walk(a)):
            assert not isinstance(part, ast.Name) or part.id in known, part.id


def test_results_are_open_only_for_a_reason(tree):
    found = set()
    for name, overloads in functions_of(tree.body).items():
        if all(node.returns is None or ast.unparse(node.returns) == "Any" for node in overloads):
            found.add(name)
    assert found <= set(OPEN), "say in python/tools/stub_parts/ what these give"


def test_members_are_open_only_where_they_hold_anything(tree):
    count = total = 0
    for _, body in bodies(tree):
        for name, overloads in functions_of(body).items():
            total += 1
            is_open = all(ast.unparse(node.returns or ast.Name("Any")) == "Any" for node in overloads)
            count += is_open and not name.startswith("__")
    assert total > 1000
    assert count - len(OPEN) < 50


def parameters(nodes):
    """The names of the parameters of all overloads, without those that are positional in the stub alone."""
    names = {a.arg for node in nodes for a in (*node.args.args, *node.args.kwonlyargs)}
    return {name for name in names if name not in ("self", "cls")}


def is_open_ended(nodes):
    """Whether an overload takes anything."""
    return any(node.args.kwarg or node.args.vararg for node in nodes)


def check_parameters(place, nodes, thing):
    """Compares the parameters of a function of the stub with those that it has."""
    thing = getattr(thing, "__func__", thing)
    if not inspect.isfunction(thing):
        return 0
    given = inspect.signature(thing).parameters.values()
    names = {p.name for p in given if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)} - {"self", "cls"}
    takes_more = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in given)
    positional = {a.arg for node in nodes for a in node.args.posonlyargs}
    shown = parameters(nodes)
    assert takes_more or shown <= names | positional, f"{place}: {shown - names}"
    assert is_open_ended(nodes) or positional or names <= shown, f"{place}: {names - shown}"
    return 1


def test_functions_have_the_parameters_that_the_stub_says(tree):
    checked = 0
    for name, nodes in functions_of(tree.body).items():
        checked += check_parameters(name, nodes, getattr(wp, name))
    for node in tree.body:
        cls = getattr(wp, node.name, None) if isinstance(node, ast.ClassDef) else None
        for name, nodes in functions_of(node.body).items() if isinstance(cls, type) else ():
            member = inspect.getattr_static(cls, name, None)
            if name.startswith("__") and name != "__init__":
                continue  # Python calls these by position
            checked += check_parameters(f"{node.name}.{name}", nodes, getattr(member, "__func__", member))
    assert checked > 250


def test_members_of_classes_exist(tree):
    for node in tree.body:
        cls = getattr(wp, node.name, None) if isinstance(node, ast.ClassDef) else None
        if not isinstance(cls, type) or issubclass(cls, (wp.types.Vector, wp.types.Matrix, wp.types.StructInstance)):
            continue
        for name, nodes in functions_of(node.body).items():
            is_here = hasattr(cls, name) or name in ("__iter__", "__setitem__") or "property" in marks(nodes[0])
            assert is_here, f"{node.name}.{name}"


def test_types_of_results(text):
    for line in (
        "def dot(a: vec3f, b: vec3f) -> float: ...",
        "def transform_point(xform: transformf, point: vec3f) -> vec3f: ...",
        "def quat_rotate(quat: quatd, vec: vec3d) -> vec3d: ...",
        "def sin(x: float64) -> float64: ...",
        "def clamp(x: uint32, low: uint32 | int, high: uint32 | int) -> uint32: ...",
        "def rand_init(seed: int | uint32, offset: int | uint32) -> uint32: ...",
        "def randf(state: uint32) -> float: ...",
        "def svd3(A: mat33f) -> tuple[mat33f, vec3f, mat33f]: ...",
        "def svd3(A: mat33f, U: mat33f, sigma: vec3f, V: mat33f, /) -> None: ...",
        "def length(a: vec2f | vec3f | vec4f | spatial_vectorf) -> float: ...",
        "def isfinite(a: quath | quatf | quatd) -> bool: ...",
        "def norm_l2(v: vec2d | vec3d | vec4d | spatial_vectord) -> float64: ...",
        "def identity(n: Literal[3], dtype: type[float] = ...) -> mat33f: ...",
        "def outer(a: vec3f, b: vec3f) -> mat33f: ...",
    ):
        assert line in text or in_variable(text, line), line


def in_variable(text, line):
    """Whether an overload stands for several types, of which a line says one."""
    for name, types in re.findall(r'^(\w+) = TypeVar\("\w+", (.*)\)$', text, re.MULTILINE):
        for kind in types.split(", ") if re.fullmatch(r"[\w, ]+", types) else ():
            if re.sub(rf"\b{kind}\b", name, line) in text:
                return True
    return False


def test_overloads_that_differ_in_the_type_alone_share_a_variable(text):
    assert len(re.findall(r"^def abs\(", text, re.MULTILINE)) < 16
    assert in_variable(text, "def normalize(a: vec3d) -> vec3d: ...")


@pytest.fixture(scope="module")
def package(text, tmp_path_factory):
    """A folder with the package as checkers see an installed one."""
    folder = tmp_path_factory.mktemp("typed")
    source = pathlib.Path(wp.__file__).parent
    shutil.copytree(source, folder / "weft", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (folder / "weft" / "__init__.pyi").write_text(text)
    return folder


def checked_by_mypy(package, *files):
    """What mypy says in its strictest mode, as lines."""
    pytest.importorskip("mypy")
    # What nanobind writes of the module leaves out what tuples hold.
    (package / "mypy.ini").write_text("[mypy]\nfollow_imports = silent\n[mypy-weft._weft]\nignore_errors = True\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(package / "mypy.ini"), "--no-error-summary"]
    command += ["--cache-dir", str(package / "cache"), *map(str, files)]
    environment = {**os.environ, "MYPYPATH": str(package)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=package)
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


def test_mypy_finds_nothing_in_the_stub_and_in_a_program(package):
    assert checked_by_mypy(package, package / "weft" / "__init__.pyi", TYPED / "program.py") == []


def test_mypy_finds_mistakes(package):
    wanted = {}
    for number, line in enumerate((TYPED / "mistakes.py").read_text().splitlines(), 1):
        if "  # " in line:
            wanted[number] = line.rpartition("  # ")[2]
    found = {}
    for line in checked_by_mypy(package, TYPED / "mistakes.py"):
        match = re.match(r".*?:(\d+): error: .*\[([\w-]+)\]$", line)
        if match:
            found.setdefault(int(match[1]), match[2])
    assert found == wanted


def test_the_typed_program_runs():
    done = subprocess.run([sys.executable, str(TYPED / "program.py")], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert re.match(r"-?\d+\.\d{4} \[", done.stdout)
