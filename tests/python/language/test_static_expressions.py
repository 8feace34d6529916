"""Static expressions are evaluated where a kernel or a function is defined, or when it is traced if they cannot be before."""

import pytest

import weft as wp


def written(kernel, n=1):
    """What a kernel of one thread writes."""
    out = wp.zeros(n, dtype=float)
    wp.launch(kernel, dim=1, inputs=[out])
    return out.numpy().tolist()


def test_kernels_of_a_loop_have_the_values_of_their_turn(device):
    kernels = []
    table = []
    for factor in (1.0, 2.0, 3.0):
        table.append(factor)

        @wp.func
        def scaled():
            return wp.static(10.0 * factor)

        @wp.kernel(module="unique")
        def k(out: wp.array(dtype=float)):
            out[0] = wp.static(factor)
            out[1] = wp.static(sum(x for x in table))
            out[2] = wp.static(scaled)()

        kernels.append(k)
    assert [written(k, 3) for k in kernels] == [[1.0, 1.0, 10.0], [2.0, 3.0, 20.0], [3.0, 6.0, 30.0]]


def test_static_values_do_not_change_after_the_definition(device):
    amount, table = 1.0, [1.0]

    @wp.kernel(module="unique")
    def k(out: wp.array(dtype=float)):
        out[0] = wp.static(amount)
        out[1] = wp.static(sum(x for x in table))
        out[2] = wp.static(len(table) * 2.0)

    amount = 5.0
    table.append(7.0)
    assert written(k, 3) == [1.0, 1.0, 2.0]


def test_names_that_are_given_later_are_evaluated_at_the_launch(device):
    @wp.kernel(module="unique")
    def k(out: wp.array(dtype=float)):
        out[0] = wp.static(later + 1.0)

    with pytest.raises(wp.WarpCodegenError, match="static expression"):
        written(k)
    later = 2.0
    assert written(k) == [3.0]


def test_variables_of_the_kernel_hide_names_of_python(device):
    j = 100

    @wp.kernel(module="unique")
    def k(out: wp.array(dtype=float)):
        for j in range(3):
            out[j] = wp.static(float(j))

    assert written(k, 3) == [0.0, 1.0, 2.0] and j == 100


def test_kernels_of_one_text_have_values_of_their_own(device):
    def make(amount):
        def k(out: wp.array(dtype=float)):
            out[0] = wp.static(amount)

        return wp.Kernel(k, key=f"k{amount}")

    kernels = [make(float(n)) for n in range(3)]
    assert [written(kernel)[0] for kernel in kernels] == [0.0, 1.0, 2.0]
