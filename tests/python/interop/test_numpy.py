"""NumPy's arrays as arguments of launches: which are taken as they are, who keeps their memory, and refusals."""

import gc
import sys
import weakref

import numpy as np
import pytest

import weft as wp

NAMES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


@wp.kernel
def double(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 2.0 * x[i]


@wp.kernel
def scaled(x: wp.array(dtype=float), scale: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * scale[i]


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_each_type_are_taken_as_they_are(cpu, name):
    kind = getattr(wp, name)

    @wp.kernel
    def add_one(x: wp.array(dtype=kind)):
        i = wp.tid()
        x[i] = x[i] + kind(1)

    numbers = np.arange(5).astype(name)
    wp.launch(add_one, dim=5, inputs=[numbers])
    wp.synchronize()
    assert numbers.tolist() == [1, 2, 3, 4, 5]


def test_the_other_names_of_c_types_are_the_same_types(cpu):
    @wp.kernel
    def add_one(x: wp.array(dtype=wp.int64)):
        i = wp.tid()
        x[i] = x[i] + wp.int64(1)

    for kind in (np.longlong, np.dtype("l"), "int64"):
        numbers = np.zeros(2, dtype=kind)
        wp.launch(add_one, dim=2, inputs=[numbers])
        wp.synchronize()
        assert numbers.tolist() == [1, 1]


def test_strides_and_dimensions_of_views_are_kept(cpu):
    @wp.kernel
    def number(x: wp.array2d(dtype=float)):
        i, j = wp.tid()
        x[i, j] = float(10 * i + j)

    whole = np.zeros((4, 6), dtype=np.float32)
    wanted = 10.0 * np.arange(2)[:, None] + np.arange(3)
    for view in (whole[::2, ::2], whole[1:3, 3:], np.asfortranarray(np.zeros((2, 3), dtype=np.float32)), whole.T[:2, :3]):
        wp.launch(number, dim=(2, 3), inputs=[view])
        wp.synchronize()
        assert np.array_equal(view, wanted)


def test_subclasses_and_other_buffers_are_taken_too(cpu, tmp_path):
    class Own(np.ndarray):
        pass

    file = tmp_path / "numbers"
    np.arange(3, dtype=np.float32).tofile(file)
    for numbers in (
        np.arange(3, dtype=np.float32).view(Own),
        np.memmap(file, dtype=np.float32, mode="r+"),
        memoryview(np.arange(3, dtype=np.float32)),
    ):
        wp.launch(double, dim=3, inputs=[numbers])
        wp.synchronize()
        assert np.asarray(numbers).tolist() == [0.0, 2.0, 4.0]


def test_overlapping_views_are_arguments_of_one_launch(cpu):
    numbers = np.arange(6, dtype=np.float32)
    wp.launch(scaled, dim=3, inputs=[numbers[:3], numbers[1:4], numbers[3:]])
    wp.synchronize()
    assert numbers.tolist() == [0.0, 1.0, 2.0, 0.0, 2.0, 6.0]


def test_launches_leave_no_references(device):
    numbers = np.arange(3, dtype=np.float32)
    view = numbers[:2]
    before = sys.getrefcount(numbers), sys.getrefcount(view)
    for _ in range(100):
        wp.launch(double, dim=2, inputs=[view])
        wp.launch(double, dim=3, inputs=[numbers])
    wp.synchronize()
    gc.collect()
    wp.zeros(1, dtype=float)
    assert (sys.getrefcount(numbers), sys.getrefcount(view)) == before


def test_a_tape_keeps_the_memory_that_it_needs(device):
    class Own(np.ndarray):
        """Of NumPy's own arrays there are no weak references on all versions."""

    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    scale = np.array([2.0, 3.0, 4.0], dtype=np.float32).view(Own)
    gone = weakref.ref(scale)
    tape = wp.Tape()
    with tape:
        wp.launch(scaled, dim=3, inputs=[x, scale, y])
    del scale
    gc.collect()
    others = [np.full(3, -1.0, dtype=np.float32) for _ in range(100)]
    tape.backward(grads={y: wp.ones(3, dtype=float)})
    assert x.grad.numpy().tolist() == [2.0, 3.0, 4.0] and len(others) == 100
    assert gone() is not None
    tape.reset()
    wp.synchronize()
    gc.collect()
    wp.zeros(1, dtype=float)
    assert gone() is None


def test_a_graph_keeps_the_memory_that_it_needs(device):
    numbers = np.array([1.0, 2.0, 3.0, 4.0], dtype=np.float32)
    address = numbers.ctypes.data
    with wp.ScopedCapture() as capture:
        wp.launch(double, dim=4, inputs=[numbers])
    del numbers
    gc.collect()
    others = [np.zeros(4, dtype=np.float32) for _ in range(100)]
    assert all(other.ctypes.data != address for other in others)
    wp.capture_launch(capture.graph)
    wp.synchronize()


@pytest.mark.parametrize(
    "numbers, text",
    [
        (np.zeros(3, dtype=np.float64), "dtype=float64"),
        (np.zeros(3, dtype=">f4"), "dtype=>f4"),
        (np.zeros((3, 2), dtype=np.float32), "shape"),
        (np.zeros(3, dtype=[("a", "f4")]), "dtype"),
        (np.broadcast_to(np.float32(1.0), 3), "read-only"),
        (np.zeros(3, dtype=np.complex64), "complex64"),
    ],
)
def test_other_arrays_are_refused_by_name(cpu, numbers, text):
    with pytest.raises(RuntimeError, match=f"'double', argument 'x'.*{text}"):
        wp.launch(double, dim=3, inputs=[numbers])


def test_arrays_that_cannot_be_shared_are_refused_and_not_copied(cpu):
    @wp.kernel
    def shorten(x: wp.array(dtype=wp.vec2)):
        i = wp.tid()
        x[i] = 0.5 * x[i]

    for numbers in (np.ones(3, dtype=np.float32)[::-1], np.ones((3, 4), dtype=np.float32)[:, ::2]):
        kernel, name = (double, "double") if numbers.ndim == 1 else (shorten, "shorten")
        with pytest.raises(RuntimeError, match=f"{name}', argument 'x'.*strides"):
            wp.launch(kernel, dim=3, inputs=[numbers])
        assert (numbers == 1.0).all()
    misaligned = np.zeros(13, dtype=np.uint8)[1:].view(np.float32)
    with pytest.raises((RuntimeError, ValueError), match="multiple"):
        wp.launch(double, dim=3, inputs=[misaligned])


def test_arrays_without_elements_are_taken(cpu):
    wp.launch(double, dim=0, inputs=[np.zeros(0, dtype=np.float32)])
    wp.launch(double, dim=0, inputs=[np.zeros((4, 0), dtype=np.float32)[2]])


# ---- Values of the package


def test_functions_of_numpys_get_the_components_of_values(device):
    v, w = wp.vec3(1.0, 2.0, 3.0), wp.vec3(4.0, 6.0, 8.0)
    assert np.subtract(v, w).tolist() == [-3.0, -4.0, -5.0] and np.subtract(v, w).dtype == np.float32
    assert np.maximum(v, 2.0).tolist() == [2.0, 2.0, 3.0] and np.dot(v, w) == 40.0
    assert (np.array([1.0, 2.0, 3.0]) * v).tolist() == [1.0, 4.0, 9.0]
    total = np.zeros(3)
    total += w
    assert total.tolist() == [4.0, 6.0, 8.0]
    m = wp.mat22(1.0, 2.0, 3.0, 4.0)
    assert (np.ones(2) @ m).tolist() == [4.0, 6.0] and np.linalg.det(np.add(m, 0.0)) < 0.0


def test_operators_beside_numbers_of_numpys_are_the_values_own(device):
    v = wp.vec3(1.0, 2.0, 3.0)
    for made in (np.float32(2.0) * v, v * np.float64(2.0), v / np.float32(0.5), np.int32(2) * v, np.array(2.0) * v):
        assert type(made) is wp.vec3 and list(made) == [2.0, 4.0, 6.0]
    for wrong in (lambda: v + np.float32(1.0), lambda: np.float32(1.0) - v):
        with pytest.raises(TypeError):
            wrong()
    assert (np.array([1.0, 2.0, 3.0]) == v) is True and (v != np.array([1.0, 2.0, 4.0])) is True
    assert not np.float32(1.0) == v and np.float32(1.0) != v


def test_empty_data_have_the_dimensions_that_are_asked_for(device):
    assert wp.array(np.array([]), dtype=wp.int32, ndim=2).shape == (0, 0)
    assert wp.array([], dtype=wp.vec3, ndim=3).shape == (0, 0, 0)
    with pytest.raises(RuntimeError, match="1 dimensions, not 2"):
        wp.array([1.0], dtype=float, ndim=2)


def test_an_array_of_nothing_is_an_argument_of_any_number_of_dimensions(device):
    @wp.kernel
    def count(pairs: wp.array2d(dtype=int), out: wp.array(dtype=int)):
        wp.atomic_add(out, 0, pairs.shape[0] + pairs.shape[1] + 1)

    out = wp.zeros(1, dtype=int)
    nothing = wp.array(np.array([]), dtype=int)
    wp.launch(count, dim=0, inputs=[nothing, out])
    assert out.numpy()[0] == 0
    wp.launch(count, dim=3, inputs=[nothing, out])
    assert out.numpy()[0] == 3
    with pytest.raises(RuntimeError, match="'.*count', argument 'pairs'.* 1 dimension"):
        wp.launch(count, dim=1, inputs=[wp.zeros(2, dtype=int), out])
