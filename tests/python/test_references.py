"""Functions that assign to variables of their caller, through parameters of type wp.ref[...]."""

import numpy as np
import pytest

import weft as wp


@wp.struct
class Pair:
    a: float
    v: wp.vec3


@wp.func
def add_to(x: wp.ref[float], amount: float) -> float:
    before = x
    if amount > 1.0:
        x += amount
    return before


@wp.func
def set_second(v: wp.ref[wp.vec3], amount: float):
    add_to(v[1], amount)


@wp.func
def swap(x: wp.ref[float], y: wp.ref[float]):
    x, y = y, x


@wp.func
def change(p: wp.ref[Pair]):
    p.a += 1.0
    set_second(p.v, 4.0)


def test_variables_and_elements_are_assigned(device):
    @wp.kernel
    def k(a: wp.array(dtype=float), vectors: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
        i = wp.tid()
        x = a[i]
        for _ in range(3):
            out[i] += add_to(x, 2.0)
        y = float(1.0)
        swap(x, y)
        out[i] += 100.0 * y + 10000.0 * x
        add_to(a[i], 7.0)
        set_second(vectors[i], 5.0)

    a = wp.array([1.0, 2.0, 3.0], dtype=float)
    vectors, out = wp.zeros(3, dtype=wp.vec3), wp.zeros(3, dtype=float)
    wp.launch(k, dim=3, inputs=[a, vectors, out])
    assert out.numpy().tolist() == [10709.0, 10812.0, 10915.0]
    assert a.numpy().tolist() == [8.0, 9.0, 10.0]
    assert vectors.numpy().tolist() == [[0.0, 5.0, 0.0]] * 3


def test_a_call_under_a_condition_changes_the_variable(device):
    @wp.kernel
    def k(a: wp.array(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        x = a[i]
        if i > 0:
            add_to(x, 10.0)
        out[i] = x

    out = wp.zeros(3, dtype=float)
    wp.launch(k, dim=3, inputs=[wp.array([1.0, 2.0, 3.0], dtype=float), out])
    assert out.numpy().tolist() == [1.0, 12.0, 13.0]


def test_structs_and_their_fields(device):
    @wp.kernel
    def k(pairs: wp.array(dtype=Pair), out: wp.array(dtype=float)):
        i = wp.tid()
        change(pairs[i])
        p = Pair()
        change(p)
        out[i] = p.a + p.v[1]

    pairs, out = wp.zeros(2, dtype=Pair), wp.zeros(2, dtype=float)
    wp.launch(k, dim=2, inputs=[pairs, out])
    assert out.numpy().tolist() == [5.0, 5.0]
    assert [(p.a, p.v[1]) for p in pairs.list()] == [(1.0, 4.0)] * 2


def test_gradients_go_through_references():
    @wp.func
    def square(x: wp.ref[float]):
        x = x * x

    @wp.kernel
    def k(a: wp.array(dtype=float), out: wp.array(dtype=float)):
        i = wp.tid()
        x = a[i]
        square(x)
        square(x)
        out[i] = x

    a = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    out = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(k, dim=3, inputs=[a, out])
    tape.backward(grads={out: wp.ones(3, dtype=float)})
    assert np.allclose(a.grad.numpy(), [4.0, 32.0, 108.0])


def test_what_is_no_variable_is_refused():
    @wp.kernel
    def of_number():
        add_to(1.0, 2.0)

    @wp.kernel
    def of_another_type(out: wp.array(dtype=int)):
        add_to(out[0], 2.0)

    @wp.kernel
    def as_parameter(x: wp.ref[float]):
        x = 1.0

    with pytest.raises(wp.WarpCodegenError, match="assigns to its parameter x"):
        wp.launch(of_number, dim=1)
    with pytest.raises(wp.WarpCodegenError, match="add_to"):
        wp.launch(of_another_type, dim=1, inputs=[wp.zeros(1, dtype=int)])
    with pytest.raises(wp.WarpCodegenError, match="no type of a kernel's argument"):
        wp.launch(as_parameter, dim=1, inputs=[1.0])


def test_overloads_do_not_differ_by_references_alone():
    @wp.func
    def changed(x: int) -> int:
        return x

    with pytest.raises(RuntimeError, match="differ only"):

        @wp.func
        def changed(x: wp.ref[int]):
            x += 1
