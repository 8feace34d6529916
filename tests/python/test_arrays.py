"""Arrays: constructors, views, copies, and NumPy in both directions."""

import numpy as np
import pytest

import weft as wp


def test_constructors(device):
    assert wp.zeros(3, dtype=float).numpy().tolist() == [0.0] * 3
    assert wp.zeros(n=2, dtype=wp.vec3).numpy().shape == (2, 3)
    assert wp.ones((2, 2), dtype=int).numpy().tolist() == [[1, 1], [1, 1]]
    assert wp.full(2, wp.vec2(1.0, 2.0)).numpy().tolist() == [[1.0, 2.0]] * 2
    assert wp.full(2, 7, dtype=wp.uint8).numpy().dtype == np.uint8
    assert wp.empty((3, 4, 5, 6), dtype=float).shape == (3, 4, 5, 6)
    a = wp.array([[1, 2], [3, 4]], dtype=float)
    assert a.shape == (2, 2) and a.ndim == 2 and a.dtype is wp.float32 and a.device == device
    assert wp.array([1, 2, 3]).dtype is wp.int64
    assert wp.array([1, 2, 3], dtype=int).dtype is wp.int32
    assert wp.array([1.0]).dtype is wp.float64
    assert wp.array(np.zeros(3)).dtype is wp.float64
    v = wp.array(np.arange(6.0).reshape(2, 3), dtype=wp.vec3)
    assert v.shape == (2,) and v.numpy().tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert wp.array([wp.vec2(1.0, 2.0), wp.vec2(3.0, 4.0)]).dtype is wp.vec2
    assert wp.zeros_like(v).numpy().tolist() == [[0.0] * 3] * 2
    assert wp.from_numpy(np.arange(4, dtype=np.int64)).dtype is wp.int64


def test_annotations_are_no_arrays():
    made = wp.array(dtype=wp.vec3, ndim=2)
    assert isinstance(made, wp.types.ArrayType) and made == wp.array2d(dtype=wp.vec3) == wp.array2d[wp.vec3]
    assert wp.array[float] == wp.array(dtype=float)


def test_data_that_do_not_fit_are_refused():
    with pytest.raises(RuntimeError, match="makes no elements of type vec3f"):
        wp.array(np.zeros((4, 2)), dtype=wp.vec3)
    with pytest.raises(RuntimeError, match="reshape"):
        wp.array([1.0, 2.0, 3.0], dtype=float, shape=(2, 2))
    with pytest.raises(RuntimeError):
        wp.array(["a"], dtype=float)


def test_views(device):
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    a = wp.array(data, dtype=float)
    assert np.array_equal(a[1].numpy(), data[1])
    assert np.array_equal(a[:, 1].numpy(), data[:, 1])
    assert np.array_equal(a[0, 1:3].numpy(), data[0, 1:3])
    assert np.array_equal(a[1, :, ::2].numpy(), data[1, :, ::2])
    assert np.array_equal(a.transpose().numpy(), data.T)
    assert np.array_equal(a.transpose((1, 0, 2)).numpy(), data.transpose(1, 0, 2))
    assert np.array_equal(a.reshape((4, -1)).numpy(), data.reshape(4, -1))
    assert np.array_equal(a.flatten().numpy(), data.ravel())
    a[1].fill_(5.0)
    assert a.numpy()[1].min() == 5.0 and a.numpy()[0].max() == 11.0
    assert a[0, 1, 2] == 6.0 and a[-1, -1, -1] == 5.0
    with pytest.raises(IndexError):
        a[2]


def test_elements_are_assigned(device):
    a = wp.zeros((3, 2), dtype=float)
    a[1, 0] = 4.0
    a[2] = wp.array([1.0, 2.0], dtype=float)
    a[0:2, 1] = 7.0
    assert a.numpy().tolist() == [[0.0, 7.0], [4.0, 7.0], [1.0, 2.0]]
    v = wp.zeros(2, dtype=wp.vec3)
    v[1] = wp.vec3(1.0, 2.0, 3.0)
    v[0] = (4.0, 5.0, 6.0)
    assert v.numpy().tolist() == [[4.0, 5.0, 6.0], [1.0, 2.0, 3.0]]
    assert v[1] == wp.vec3(1.0, 2.0, 3.0)


def test_fill_assign_clone_and_copy(device):
    a = wp.zeros(4, dtype=wp.vec2)
    a.fill_(wp.vec2(1.0, 2.0))
    b = wp.clone(a)
    a.zero_()
    assert b.numpy().tolist() == [[1.0, 2.0]] * 4
    a.assign(np.arange(8.0).reshape(4, 2))
    wp.copy(b, a)
    assert np.array_equal(b.numpy(), np.arange(8.0).reshape(4, 2))
    wp.copy(b, a, dest_offset=2, src_offset=0, count=2)
    assert b.numpy()[2:].tolist() == [[0.0, 1.0], [2.0, 3.0]]
    with pytest.raises(RuntimeError, match="Incompatible array shapes"):
        wp.copy(wp.zeros((2, 2), dtype=float), wp.zeros((3, 2), dtype=float))
    assert [list(x) for x in a.list()] == np.arange(8.0).reshape(4, 2).tolist()


def test_numpy_shares_memory_on_the_processor(cpu):
    a = wp.zeros(4, dtype=float)
    view = a.numpy()
    view[2] = 3.0
    assert a.numpy()[2] == 3.0
    host = np.zeros((5, 3), dtype=np.float32)
    b = wp.array(host, dtype=wp.vec3, copy=False)
    b.fill_(2.0)
    wp.synchronize()
    assert host.min() == 2.0
    every_second = wp.array(host[::2], dtype=wp.vec3, copy=False)
    every_second.zero_()
    wp.synchronize()
    assert host[:, 0].tolist() == [0.0, 2.0, 0.0, 2.0, 0.0]
    assert np.asarray(a).tolist() == [0.0, 0.0, 3.0, 0.0]


def test_numpy_arrays_are_arguments(cpu):
    @wp.kernel
    def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
        i = wp.tid()
        y[i] = a * x[i] + y[i]

    x = np.arange(10, dtype=np.float32)
    y = np.ones(10, dtype=np.float32)
    wp.launch(saxpy, dim=10, inputs=[x, y, 2.0], device="cpu")
    wp.synchronize()
    assert np.array_equal(y, 2.0 * np.arange(10) + 1.0)
    with pytest.raises(RuntimeError, match="dtype=float64"):
        wp.launch(saxpy, dim=10, inputs=[x, y.astype(np.float64), 2.0], device="cpu")


def test_arrays_move_between_devices(cpu):
    a = wp.array([1.0, 2.0, 3.0], dtype=float, device="cpu")
    b = a.to("reference")
    assert b.device == wp.get_device("reference") and b.numpy().tolist() == [1.0, 2.0, 3.0]
    assert a.to("cpu") is a


def test_element_types_of_every_width(device):
    for numpy_type in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16):
        data = np.array([1, 2, 100], dtype=numpy_type)
        a = wp.array(data)
        assert a.dtype is wp.dtype_from_numpy(numpy_type) and np.array_equal(a.numpy(), data)


def test_operators_work_element_by_element(device):
    a = wp.array([[1, 2], [3, 4]], dtype=float)
    assert (a + a).numpy().tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert (a * 2.0 - 1).numpy().tolist() == [[1.0, 3.0], [5.0, 7.0]]
    assert (12.0 / a).numpy().tolist() == [[12.0, 6.0], [4.0, 3.0]]
    assert (-a[1] % 3.0).numpy().tolist() == [0.0, -1.0]
    with pytest.raises(ValueError, match="not broadcastable"):
        a + wp.zeros(3, dtype=float)


def test_ranges_of_strided_arrays_are_copied(device):
    a = wp.array(np.arange(8), dtype=float)
    b = wp.zeros(6, dtype=float)
    wp.copy(b, a[::2], dest_offset=1, src_offset=2, count=2)
    wp.copy(b[::3], a, src_offset=6, count=2)
    assert b.numpy().tolist() == [6.0, 4.0, 6.0, 7.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="too large"):
        wp.copy(b[::3], a, dest_offset=1, count=2)


def test_arrays_around_pointers_of_others(cpu):
    a = wp.zeros(4, dtype=float)
    inner = wp.array(ptr=a.ptr + 4, shape=2, dtype=float)
    inner.fill_(3.0)
    assert a.numpy().tolist() == [0.0, 3.0, 3.0, 0.0]
    across = wp.array(ptr=a.ptr, shape=(2, 2), strides=(4, 8), dtype=float)
    assert across.numpy().tolist() == [[0.0, 3.0], [3.0, 0.0]]
    assert wp.zeros(0, dtype=float).ptr is None
    with pytest.raises(ValueError, match="non-negative"):
        wp.zeros((2, -1), dtype=float)


def test_an_index_that_is_a_remainder_of_what_grew_too_large_counts_from_the_end(device):
    """As hashes of cells do: the product wraps, and the remainder of a negative number is negative."""

    @wp.kernel
    def k(table: wp.array(dtype=int), out: wp.array2d(dtype=int)):
        i = wp.tid()
        out[i, 0] = table[(i * 73856093) % 7]
        out[i, 1] = table[(i * 73856093 + 19349663) // 400000000 % 7]
        out[i, 2] = table[abs(i * 73856093) % 7]
        out[i, 3] = table[int(wp.uint32(4000000000) + wp.uint32(i)) % 7]

    def wrapped(n):
        return (n + 2**31) % 2**32 - 2**31

    def remainder(n):
        return int(np.fmod(n, 7))

    table = np.arange(7) * 10
    out = wp.zeros((100, 4), dtype=int)
    wp.launch(k, dim=100, inputs=[wp.array(table, dtype=int), out])
    for i, row in enumerate(out.numpy()):
        product = wrapped(i * 73856093)
        indices = [
            remainder(product), remainder(wrapped(product + 19349663) // 400000000), remainder(abs(product)),
            remainder(wrapped(4000000000 + i)),
        ]  # fmt: skip
        assert [table[n] for n in indices] == row.tolist()


def test_structs_that_hold_arrays_are_no_elements():
    @wp.struct
    class Inner:
        values: wp.array(dtype=float)

    @wp.struct
    class Outer:
        n: int
        inner: Inner

    made = wp.zeros(2, dtype=Outer)
    value = Outer(3)
    made.fill_(value)
    assert made.numpy()["n"].tolist() == [3, 3]
    value.inner.values = wp.zeros(2, dtype=float)
    with pytest.raises(RuntimeError, match="Outer.inner.values is an array"):
        made.fill_(value)
    with pytest.raises(RuntimeError, match="Outer.inner.values is an array"):
        wp.full(2, value, dtype=Outer)


def test_numpy_keeps_what_it_reads(device):
    @wp.kernel
    def copied(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i]

    n = 100000
    x = wp.array(np.arange(n, dtype=np.float32), requires_grad=True)
    y = wp.zeros(n, dtype=float, requires_grad=True)
    with wp.Tape():
        wp.launch(copied, n, [x, y])
        seen = np.asarray(y)
        others = [np.full(n, 7, np.float32) for _ in range(8)]
    assert np.array_equal(seen, np.arange(n, dtype=np.float32)) and len(others) == 8
    apart = np.array(y, copy=True)
    apart[0] = 99.0
    assert y[0] == 0.0

    @wp.struct
    class Pair:
        a: float
        b: int

    pairs = wp.array([Pair(a=float(k), b=k) for k in range(10)], dtype=Pair)
    every_other = np.asarray(pairs[::2])
    others = [np.full(40, 7, np.uint8) for _ in range(8)]
    assert every_other["b"].tolist() == [0, 2, 4, 6, 8]


def test_elements_outside_are_not_assigned(device):
    a = wp.zeros(4, dtype=float)
    for key in (10, -5, (0, 0)):
        with pytest.raises(IndexError):
            a[key] = 1.0
    a[-1] = 2.0
    assert a.numpy().tolist() == [0.0, 0.0, 0.0, 2.0]


def test_numbers_that_an_element_cannot_hold_are_refused():
    assert wp.array([2**40]).numpy().tolist() == [2**40]
    for numbers, dtype in (([-1], wp.uint8), ([2**31], wp.int32), ([300], wp.int8)):
        with pytest.raises(RuntimeError, match="cannot be an array"):
            wp.array(numbers, dtype=dtype)


def test_rows_of_numpy_are_vectors_and_matrices():
    assert wp.from_numpy(np.zeros((5, 3), np.float32)).dtype is wp.vec3
    assert wp.from_numpy(np.zeros((5, 2, 2))).dtype is wp.mat22d
    assert wp.from_numpy(np.zeros((5, 3), np.float32), dtype=float).shape == (5, 3)
