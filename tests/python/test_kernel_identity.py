"""What a module's kernels do as a hash; kernels and functions that are defined again: in modules of their own, in
notebooks, in modules that are loaded again, under other options.
"""

import importlib.util
import sys

import numpy as np
import pytest

import weft as wp

FACTOR = 2.0


def make(amount):
    @wp.kernel(module="unique")
    def add_amount(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] + amount

    return add_amount


def test_a_kernel_that_is_defined_again_is_the_same():
    assert make(1.0) is make(1.0)
    assert make(1.0) is not make(2.0)
    x = wp.zeros(2, dtype=float)
    wp.launch(make(1.0), dim=2, inputs=[x])
    wp.launch(make(2.0), dim=2, inputs=[x])
    assert x.numpy().tolist() == [3.0, 3.0]


def test_what_may_change_makes_a_new_kernel():
    table = {"amount": 1.0}

    def define():
        @wp.kernel(module="unique")
        def add_static(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = x[i] + wp.static(table["amount"])

        return add_static

    x = wp.zeros(1, dtype=float)
    wp.launch(define(), dim=1, inputs=[x])
    table["amount"] = 10.0
    wp.launch(define(), dim=1, inputs=[x])
    assert x.numpy().tolist() == [11.0]


def test_kernels_that_see_what_is_assigned_later_are_not_the_same():
    def define(value):
        @wp.kernel(module="unique")
        def add_later(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = x[i] + later

        later = value
        return add_later

    x = wp.zeros(1, dtype=float)
    kernels = [define(1.0), define(10.0)]
    for kernel in kernels:
        wp.launch(kernel, dim=1, inputs=[x])
    assert x.numpy().tolist() == [11.0]


def test_a_kernel_whose_variables_have_changed_is_not_the_one_that_is_defined_again():
    def define(values):
        for value in values:

            @wp.kernel(module="unique")
            def add_value(x: wp.array(dtype=float)):
                i = wp.tid()
                x[i] = x[i] + value

            yield add_value

    x = wp.zeros(1, dtype=float)
    first, second = define([1.0, 10.0])  # which see the last value, as functions of Python do
    wp.launch(first, dim=1, inputs=[x])
    (third,) = define([1.0])
    wp.launch(third, dim=1, inputs=[x])
    assert x.numpy().tolist() == [11.0] and second is not first


def test_hashes_of_modules():
    global FACTOR

    @wp.kernel(module="unique")
    def scale(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = FACTOR * x[i]

    before = scale.module.hash_module()
    assert isinstance(before, bytes) and scale.module.hash_module() == before
    assert make(1.0).module.hash_module() != make(2.0).module.hash_module()
    FACTOR = 3.0
    try:
        assert scale.module.hash_module() != before
    finally:
        FACTOR = 2.0


def test_angles_of_rotations(device):
    @wp.kernel
    def k(angles: wp.array(dtype=wp.vec3), i: int, j: int, k: int, out: wp.array2d(dtype=wp.quat)):
        t = wp.tid()
        q = wp.quat_from_euler(angles[t], i, j, k)
        out[t, 0] = q
        out[t, 1] = wp.quat_from_euler(wp.quat_to_euler(q, i, j, k), i, j, k)

    given = np.random.default_rng(5).uniform(-3.0, 3.0, (64, 3)).astype(np.float32)
    given[0] = [0.4, -0.2, 0.3]
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0), (0, 2, 1), (2, 0, 1)):
        given[1, order[1]], given[2, order[1]] = np.pi / 2, -np.pi / 2
        out = wp.zeros((64, 2), dtype=wp.quat)
        wp.launch(k, dim=64, inputs=[wp.array(given, dtype=wp.vec3), *order, out])
        made = out.numpy()
        assert np.allclose(np.abs((made[:, 0] * made[:, 1]).sum(axis=1)), 1.0, atol=1e-5)
        if order == (2, 1, 0):
            assert np.allclose(made[0, 0], [0.18083558, -0.12628517, 0.12611651, 0.96718415], atol=1e-6)


def test_conditions_and_loops_outside_and_inside_of_graphs(device):
    @wp.kernel
    def count(left: wp.array(dtype=int), done: wp.array(dtype=int)):
        left[0] = left[0] - 1
        done[0] = done[0] + 1

    left, done, flag = wp.array([3], dtype=int), wp.zeros(1, dtype=int), wp.array([0], dtype=int)

    def work():
        wp.launch(count, dim=1, inputs=[left, done])

    wp.capture_while(left, work)
    assert done.numpy()[0] == 3
    wp.capture_if(flag, on_true=work, on_false=lambda: done.fill_(50))
    assert done.numpy()[0] == 50
    with wp.ScopedCapture() as capture:
        left.fill_(4)
        wp.capture_while(left, work, limit=8)
        wp.capture_if(flag, on_true=work, on_false=work)
    wp.capture_launch(capture.graph)
    assert done.numpy()[0] == 55


PROGRAM = """
import weft as wp

@wp.func
def factor():
    return {factor}

@wp.func
def scaled(x: float):
    return x * factor()

@wp.kernel
def k(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = scaled(x[i])
"""


def module_of(path, name, text):
    """The module that a file with a text gives, which is gone afterwards."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    path.unlink()
    return module


def test_kernels_have_the_source_that_they_were_defined_with(device, tmp_path):
    path = tmp_path / "program.py"
    first = module_of(path, "program_once", PROGRAM.format(factor="2.0"))
    second = module_of(path, "program_twice", "# another line\n" + PROGRAM.format(factor="3.0"))
    for module, want in ((second, 3.0), (first, 2.0)):
        x = wp.ones(2, dtype=float)
        wp.launch(module.k, dim=2, inputs=[x])
        assert x.numpy().tolist() == [want, want]


@wp.func
def step():
    return 1.0


@wp.func
def two_steps():
    return 2.0 * step()


def test_a_function_that_is_defined_again_is_the_one_that_kernels_call(device):
    @wp.kernel
    def k(x: wp.array(dtype=float)):
        x[0] = two_steps()

    @wp.kernel
    def other(x: wp.array(dtype=float)):
        x[0] = 7.0

    x = wp.zeros(1, dtype=float)
    wp.launch(k, dim=1, inputs=[x])
    wp.launch(other, dim=1, inputs=[x])
    kept = other.native
    before = globals()["step"]
    try:
        for number in (10.0, 20.0):
            source = f"@wp.func\ndef step():\n    return {number}\n"
            globals()["step"] = define(source)
            wp.launch(k, dim=1, inputs=[x])
            assert x.numpy()[0] == 2.0 * number
    finally:
        globals()["step"] = before
    assert other.native is kept  # it does not call the function


def define(source):
    """The function that a text defines in this module."""
    import linecache

    name = f"<{source}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = {"wp": wp, "__name__": __name__}
    exec(compile(source, name, "exec"), names)
    return names["step"]


def unique(**options):
    @wp.kernel(module="unique", **options)
    def k(x: wp.array(dtype=float)):
        x[wp.tid()] = 1.0

    return k


def test_kernels_of_their_own_module_are_told_apart_by_options_and_settings(monkeypatch):
    plain = unique()
    assert unique() is plain
    named, fast = unique(name="another"), unique(module_options={"fast_math": True})
    bounded = unique(launch_bounds=64)
    monkeypatch.setattr(wp.config, "mode", "debug")
    made = [plain, named, fast, bounded, unique()]
    assert len({id(kernel) for kernel in made}) == len({kernel.module.name for kernel in made}) == 5
    assert fast.module.options["fast_math"] and not plain.module.options["fast_math"]
    assert unique(module_options={"fast_math": True}, name="x").options.get("fast_math") is None


def test_options_of_modules_are_checked():
    for given, module, kind, message in (
        ({"fast_math": True}, None, ValueError, 'module="unique"'),
        ({}, "shared", ValueError, 'module="unique"'),
        ("fast_math", "unique", TypeError, "must be a dict, not a str"),
        ({"fast_mth": True}, "unique", ValueError, "'fast_mth'. Valid options: .*fast_math"),
    ):
        with pytest.raises(kind, match=message):
            wp.kernel(module=module, module_options=given)


def test_a_module_without_kernels_is_not_loaded():
    with pytest.raises(RuntimeError, match="'no_such_module' does not contain any Warp kernels, functions, or structs"):
        wp.load_module("no_such_module")
    wp.load_module(__name__)


def test_a_module_has_the_hash_of_the_options_that_hold(monkeypatch):
    monkeypatch.setattr(wp.config, "mode", "release")
    module = unique().module
    before = module.hash_module()
    module.options["mode"] = "release"
    assert module.hash_module() == before
    module.options["mode"] = "debug"
    assert module.hash_module() != before


def test_names_of_arrays_may_have_other_dimensions(device):
    @wp.kernel
    def k(a: wp.array3d(dtype=float), out: wp.array(dtype=float)):
        part = a[0]
        out[0] = part[1, 1]
        part = part[1]
        out[1] = part[2]
        part = a[1:, 1]
        out[2] = part[0, 0]

    a = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    out = wp.zeros(3, dtype=float)
    wp.launch(k, dim=1, inputs=[wp.array(a), out])
    assert out.numpy().tolist() == [a[0, 1, 1], a[0, 1, 2], a[1, 1, 0]]


def test_the_fields_of_structs_are_in_the_hash_of_a_module():
    hashes = []
    for kind in (int, float, int):

        @wp.struct
        class Part:
            value: kind

        @wp.kernel(module="unique", name=f"uses_{len(hashes)}")
        def k(parts: wp.array(dtype=Part)):
            pass

        del k.module.kernels[k.key]
        k.module.kernels["k"] = k
        hashes.append(k.module.hash_module())
    assert hashes[0] == hashes[2] != hashes[1]


def test_unions_are_no_types_of_kernels():
    with pytest.raises(RuntimeError, match="f, a: Union type annotations are only supported at Python scope"):

        @wp.func
        def f(a: wp.array(dtype=float) | float):
            return 0.0
