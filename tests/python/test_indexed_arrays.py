"""Arrays seen through lists of indices, on the host and in kernels."""

from typing import Any

import numpy as np
import pytest

import weft as wp


@wp.struct
class Holder:
    values: wp.indexedarray[float]


def test_shape_and_elements(device):
    base = np.arange(100, dtype=np.int32).reshape(10, 10)
    data = wp.array(base)
    rows, columns = wp.array([1, 3], dtype=int), wp.array([2, 4, 8], dtype=int)
    seen = wp.indexedarray(data, [rows, columns])
    assert (seen.shape, seen.ndim, seen.size, seen.dtype) == ((2, 3), 2, 6, wp.int32)
    assert np.array_equal(seen.numpy(), base[np.ix_([1, 3], [2, 4, 8])])
    assert np.array_equal(data[rows].numpy(), base[[1, 3]])
    assert np.array_equal(data[rows, 1:4].numpy(), base[[1, 3], 1:4])
    assert np.array_equal(data[5, columns].numpy(), base[5, [2, 4, 8]])


def test_kernels_read_write_and_add(device):
    @wp.kernel
    def k(seen: wp.indexedarray[float], out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = seen[i] + float(seen.shape[0])
        seen[i] = 2.0 * seen[i]
        wp.atomic_add(seen, i, 100.0)
        if i == 1:
            wp.atomic_add(seen, -1, 0.5)

    data = wp.array(np.arange(6, dtype=np.float32))
    out = wp.zeros(2, dtype=float)
    wp.launch(k, dim=2, inputs=[data[wp.array([1, 4], dtype=int)], out])
    assert out.numpy().tolist() == [3.0, 6.0]
    assert data.numpy().tolist() == [0.0, 102.0, 2.0, 3.0, 108.5, 5.0]


def test_generic_kernels_functions_and_structs(device):
    @wp.func
    def twice(values: Any, i: int):
        return values[i] * 2.0

    @wp.kernel
    def k(values: Any, holder: Holder, out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = twice(values, i) + holder.values[i]

    data = wp.array(np.arange(6, dtype=np.float32))
    seen = wp.indexedarray(data, [wp.array([5, 3], dtype=int)])
    out = wp.zeros(2, dtype=float)
    wp.launch(k, dim=2, inputs=[seen, Holder(values=seen), out])
    assert out.numpy().tolist() == [15.0, 9.0]
    wp.launch(k, dim=2, inputs=[data, Holder(values=seen), out])
    assert out.numpy().tolist() == [5.0, 5.0]


def test_fill_copy_and_operators(device):
    data = wp.array(np.arange(6, dtype=np.float32))
    seen = data[wp.array([0, 2], dtype=int)]
    seen.fill_(7.0)
    seen += 1.0
    assert data.numpy().tolist() == [8.0, 1.0, 8.0, 3.0, 4.0, 5.0]
    assert (2.0 * seen).numpy().tolist() == [16.0, 16.0]
    wp.copy(seen, wp.array([1.0, 2.0], dtype=float))
    assert wp.clone(seen).numpy().tolist() == [1.0, 2.0]
    seen.assign([3.0, 4.0])
    assert data.numpy().tolist() == [3.0, 1.0, 4.0, 3.0, 4.0, 5.0]
    seen.zero_()
    assert data.numpy().tolist() == [0.0, 1.0, 0.0, 3.0, 4.0, 5.0]


def test_gradients_go_to_the_chosen_elements():
    @wp.kernel
    def k(seen: wp.indexedarray[float], out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = seen[i] * seen[i]

    data = wp.array(np.arange(4, dtype=np.float32), requires_grad=True)
    out = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(k, dim=2, inputs=[data[wp.array([3, 1], dtype=int)], out])
    tape.backward(grads={out: wp.ones(2, dtype=float)})
    assert data.grad.numpy().tolist() == [0.0, 2.0, 0.0, 6.0]


def test_wrong_lists_and_arguments_are_refused():
    @wp.kernel
    def k(seen: wp.indexedarray[float]):
        seen[0] = 1.0

    data = wp.zeros(4, dtype=float)
    with pytest.raises(RuntimeError, match="arrays of int32"):
        wp.indexedarray(data, [wp.zeros(2, dtype=float)])
    with pytest.raises(RuntimeError, match="exceeds number of dimensions"):
        wp.indexedarray(data, [None, None])
    with pytest.raises(RuntimeError, match="no indexed array"):
        wp.launch(k, dim=1, inputs=[data])
    with pytest.raises(RuntimeError, match="shapes"):
        wp.copy(data, data[wp.array([0], dtype=int)])


@wp.struct
class Inner:
    n: int
    chosen: wp.indexedarray(dtype=float)


@wp.struct
class Outer:
    inner: Inner
    weight: float


def test_a_struct_may_lack_its_indexed_array(device):
    @wp.kernel
    def k(outer: Outer, out: wp.array(dtype=float)):
        out[0] = float(outer.inner.n) + outer.weight
        if outer.inner.chosen:
            out[0] += outer.inner.chosen[0]

    outer, out = Outer(), wp.zeros(1, dtype=float)
    outer.inner.n, outer.weight = 3, 0.5
    wp.launch(k, dim=1, inputs=[outer, out])
    assert out.numpy()[0] == 3.5
    outer.inner.chosen = wp.indexedarray(wp.array([5.0, 6.0], dtype=float), [wp.array([1], dtype=int)])
    wp.launch(k, dim=1, inputs=[outer, out])
    assert out.numpy()[0] == 9.5
