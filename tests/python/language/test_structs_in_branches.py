"""Structs that hold arrays, as names that several branches give their values."""

import numpy as np
import pytest

import weft as wp


@wp.struct
class Table:
    numbers: wp.array(dtype=float)
    scale: float


@wp.func
def scaled(table: Table, factor: float):
    table.scale = table.scale * factor
    return table


def tables():
    a, b = Table(), Table()
    a.numbers, a.scale = wp.array([1.0, 2.0, 3.0], dtype=float), 10.0
    b.numbers, b.scale = wp.array([4.0, 5.0], dtype=float), 100.0
    return a, b


def test_each_branch_has_its_own(device):
    @wp.kernel
    def k(a: Table, b: Table, out: wp.array(dtype=float)):
        i = wp.tid()
        if i % 2 == 0:
            table = a
            out[i] = table.numbers[1] * table.scale
        elif i > 2:
            table = b
            if i > 3:
                out[i] = table.numbers[0] * table.scale
            table.scale = 1.0
        else:
            for n in range(2):
                table = b
                out[i] += table.numbers[n]

    out = wp.zeros(6, dtype=float)
    wp.launch(k, dim=6, inputs=[*tables(), out])
    assert out.numpy().tolist() == [20.0, 9.0, 20.0, 0.0, 20.0, 400.0]


def test_the_same_arrays_are_the_same_after_the_branches(device):
    @wp.kernel
    def k(a: Table, out: wp.array(dtype=float)):
        i = wp.tid()
        if i % 2 == 0:
            table = a
            table.scale = 2.0
        else:
            table = a
        out[i] = table.numbers[i] * table.scale

    out = wp.zeros(3, dtype=float)
    wp.launch(k, dim=3, inputs=[tables()[0], out])
    assert out.numpy().tolist() == [2.0, 20.0, 6.0]


def test_which_arrays_they_are_after_the_branches_is_not_known(device):
    @wp.kernel
    def k(a: Table, b: Table, out: wp.array(dtype=float)):
        i = wp.tid()
        if i % 2 == 0:
            table = a
        else:
            table = b
        out[i] = table.numbers[0]

    with pytest.raises(RuntimeError, match=r"(?s)table\.numbers\[0\].*table is depends on a condition"):
        wp.launch(k, dim=2, inputs=[*tables(), wp.zeros(2, dtype=float)])


def test_an_outer_struct_is_not_replaced_in_a_branch(device):
    @wp.kernel
    def k(a: Table, b: Table, out: wp.array(dtype=float)):
        i = wp.tid()
        table = scaled(a, 1.0)
        if i % 2 == 0:
            table = b
        out[i] = table.numbers[0]

    with pytest.raises(RuntimeError, match="cannot depend on a condition or a loop"):
        wp.launch(k, dim=2, inputs=[*tables(), wp.zeros(2, dtype=float)])


def test_a_name_is_given_another_struct_after_the_branches(device):
    @wp.kernel
    def k(a: Table, b: Table, out: wp.array(dtype=float)):
        i = wp.tid()
        if i % 2 == 0:
            table = a
            out[i] = table.numbers[0]
        else:
            table = b
            out[i] = table.numbers[0]
        table = b
        out[i] += table.numbers[1] * 10.0

    out = wp.zeros(2, dtype=float)
    wp.launch(k, dim=2, inputs=[*tables(), out])
    assert np.array_equal(out.numpy(), [51.0, 54.0])
