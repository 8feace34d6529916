"""Branches, loops and returns in kernels do what they do in Python."""

import numpy as np
import pytest

import weft as wp

N = 41


def results(kernel, device, *more):
    """What a kernel writes for i of 0 .. N-1 into an array of floats."""
    out = wp.zeros(N, dtype=float)
    wp.launch(kernel, dim=N, inputs=[out, *more])
    return out.numpy()


def expected(function):
    return np.array([function(i) for i in range(N)], dtype=np.float32)


def test_a_variable_assigned_in_both_branches(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        i = wp.tid()
        if i % 3 == 0:
            x = 1.0
        elif i % 3 == 1:
            x = 2.0
        else:
            x = 3.0
        out[i] = x

    assert np.array_equal(results(k, device), expected(lambda i: i % 3 + 1))


def test_a_sum_in_a_dynamic_loop(device):
    @wp.kernel
    def k(out: wp.array(dtype=float), n: int):
        i = wp.tid()
        s = 0.0
        for j in range(i, n, 3):
            s += float(j)
        out[i] = s

    assert np.array_equal(results(k, device, 50), expected(lambda i: sum(range(i, 50, 3))))


def test_a_loop_that_counts_down(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        i = wp.tid()
        s = 0
        for j in range(i, -1, -2):
            s = s * 2 + j
            s = s % 1000
        out[i] = float(s)

    def f(i):
        s = 0
        for j in range(i, -1, -2):
            s = (s * 2 + j) % 1000
        return s

    assert np.array_equal(results(k, device), expected(f))


def test_break_and_continue(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        i = wp.tid()
        s = 0
        for j in range(100):
            if j % 7 == 3:
                continue
            if j > i:
                break
            s += j
        out[i] = float(s)

    def f(i):
        return sum(j for j in range(i + 1) if j % 7 != 3)

    assert np.array_equal(results(k, device), expected(f))


def test_a_while_loop_with_two_conditions(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        i = wp.tid()
        n = i + 1
        steps = 0
        while n != 1 and steps < 200:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        out[i] = float(steps)

    def f(i):
        n, steps = i + 1, 0
        while n != 1 and steps < 200:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    assert np.array_equal(results(k, device), expected(f))


def test_the_variable_of_a_loop_keeps_its_last_value(device):
    @wp.kernel
    def k(out: wp.array(dtype=float), n: int):
        i = wp.tid()
        for j in range(n):
            if j == i:
                break
        for u in range(4):
            out[i] = 0.0
        out[i] = float(j * 10 + u)

    assert np.array_equal(results(k, device, 30), expected(lambda i: min(i, 29) * 10 + 3))


def test_a_variable_of_an_earlier_iteration(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        i = wp.tid()
        a = 0
        b = 1
        for _ in range(i % 20):
            c = a + b
            a = b
            b = c
        out[i] = float(a)

    def f(i):
        a, b = 0, 1
        for _ in range(i % 20):
            a, b = b, a + b
        return a

    assert np.array_equal(results(k, device), expected(f))


def test_a_constant_that_a_dynamic_loop_changes_is_a_variable(device):
    @wp.kernel
    def k(out: wp.array(dtype=float), n: int):
        i = wp.tid()
        x = 1.0
        for _ in range(n):
            x = x + 0.5
        out[i] = x

    assert np.array_equal(results(k, device, 6), expected(lambda i: 4.0))


def test_return_ends_the_thread(device):
    @wp.kernel
    def k(out: wp.array(dtype=float), n: int):
        i = wp.tid()
        out[i] = 1.0
        if i > 20:
            return
        for j in range(n):
            if j == i:
                return
            out[i] = float(j)
        out[i] = -1.0

    def f(i):
        if i > 20:
            return 1.0
        if i < 15:
            return 1.0 if i == 0 else i - 1.0
        return -1.0

    assert np.array_equal(results(k, device, 15), expected(f))


def test_conditions_are_evaluated_only_where_they_must_be(device):
    @wp.kernel
    def k(out: wp.array(dtype=float), table: wp.array(dtype=int)):
        i = wp.tid()
        if i < table.shape[0] and table[i] > 1:
            out[i] = 2.0
        elif i >= table.shape[0] or table[i] == 0:
            out[i] = 3.0
        else:
            out[i] = 4.0

    table = wp.array([0, 1, 2, 3], dtype=int)
    want = expected(lambda i: 3.0 if i >= 4 or i == 0 else 4.0 if i == 1 else 2.0)
    assert np.array_equal(results(k, device, table), want)


def test_chained_comparisons_and_ternaries(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        i = wp.tid()
        inside = 5 < i <= 12 != 8
        out[i] = 1.0 if inside else float(i) if i > 30 else 0.0

    assert np.array_equal(results(k, device), expected(lambda i: 1.0 if 5 < i <= 12 else i if i > 30 else 0.0))


def test_numbers_are_conditions(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        i = wp.tid()
        x = float(i % 2)
        if i and not x:
            out[i] = 1.0

    assert np.array_equal(results(k, device), expected(lambda i: float(i > 0 and i % 2 == 0)))


def test_functions_return_from_everywhere(device):
    @wp.func
    def search(n: int, limit: int) -> int:
        if n < 0:
            return -1
        for a in range(limit):
            for b in range(limit):
                if a * b == n:
                    return a * 100 + b
        if n > 30:
            return 3000
        return -2

    @wp.kernel
    def k(out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = float(search(i - 3, 6))

    def f(i):
        n = i - 3
        if n < 0:
            return -1
        for a in range(6):
            for b in range(6):
                if a * b == n:
                    return a * 100 + b
        return 3000 if n > 30 else -2

    assert np.array_equal(results(k, device), expected(f))


def test_a_long_loop_over_known_numbers_is_not_unrolled(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        i = wp.tid()
        s = 0.0
        for j in range(100):
            s += float(j)
        for j in range(4):
            s += 10.0
        out[i] = s

    assert np.array_equal(results(k, device), expected(lambda i: 4990.0))
    text = k.native_kernel().dump("ir")
    assert text.count("loop") >= 1


def test_a_function_that_returns_from_a_loop_over_a_tuple_returns_the_first_result(device):
    @wp.func
    def first_above(x: int):
        for limit in (3, 5, 7):
            if x < limit:
                return limit
        return 100

    @wp.func
    def counted(x: int):
        rounds = 0
        for k in wp.static(range(3)):
            rounds += 1
            if x <= k:
                return rounds
        return -rounds

    @wp.kernel
    def k(out: wp.array(dtype=float)):
        i = wp.tid()
        out[i] = float(first_above(i) * 10 + counted(i))

    def f(i):
        limit = next((n for n in (3, 5, 7) if i < n), 100)
        return limit * 10 + (i + 1 if i < 3 else -3)

    assert np.array_equal(results(k, device), expected(f))


@wp.struct
class Hit:
    index: int
    point: wp.vec3


@wp.func
def hit(k: int):
    made = Hit()
    made.index = k
    made.point = wp.vec3(float(k), 1.0, 2.0)
    return made


def test_a_condition_chooses_one_of_two_structs(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        i = wp.tid()
        a, b = hit(i), hit(-i)
        near = a if i % 2 == 0 else b
        far = hit(i * 10) if i % 3 == 0 else near
        out[i] = float(near.index) + far.point[0]

    def f(i):
        near = i if i % 2 == 0 else -i
        return near + (i * 10 if i % 3 == 0 else near)

    assert np.array_equal(results(k, device), expected(f))


@wp.func
def at_most_ten(x: int):
    if x > 3:
        assert x <= 10, "at most ten"
        return 2 * x
    return x


@wp.func
def more_than_twice(x: int):
    return at_most_ten(x) + 1


@wp.func
def applied(f: wp.Function, x: int):
    return f(x)


@pytest.mark.parametrize("mode", ["release", "debug"])
def test_assertions_in_functions_end_threads_in_debug_mode_alone(device, mode, monkeypatch):
    monkeypatch.setattr(wp.config, "mode", mode)

    @wp.kernel(module="unique")
    def called(x: wp.array(dtype=int)):
        i = wp.tid()
        x[i] = more_than_twice(x[i])

    @wp.kernel(module="unique")
    def given(x: wp.array(dtype=int)):
        i = wp.tid()
        x[i] = applied(at_most_ten, x[i])

    for kernel, more in ((called, 1), (given, 0)):
        x = wp.array([1, 5, 10], dtype=int)
        wp.launch(kernel, dim=3, inputs=[x])
        assert x.numpy().tolist() == [1 + more, 10 + more, 20 + more]
        x = wp.array([5, 20], dtype=int)
        wp.launch(kernel, dim=2, inputs=[x])
        if mode == "debug":
            with pytest.raises(RuntimeError, match="at most ten"):
                x.numpy()
        else:
            assert x.numpy().tolist() == [10 + more, 40 + more]
