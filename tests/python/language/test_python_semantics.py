"""Programs that give in a kernel what the same functions give when Python calls them, for many numbers at once.

Each is compared as a function that a kernel calls, and as the body of the kernel itself.
"""

import ast
import inspect

import numpy as np
import pytest

import weft as wp

COUNT = 13
TABLE = (1.0, 2.0, 4.0, 8.0)
FACTOR = 4
FLAG = True
PROGRAMS = []


def program(function):
    """Takes a function of the thread's number, 5 and 1.5 among the programs."""
    PROGRAMS.append(function)
    return function


@wp.func
def sign_of(v: int):
    if v < 0:
        return -1
    elif v > 0:
        return 1
    return 0


@wp.func
def divided(a: int, b: int):
    return a // b, a - a // b * b


@program
def quotients_are_rounded_down(i: int, n: int, x: float):
    return float((i - 6) // 4 * 100 + (i - 6) // (n - 8) + (0 - 7) // 2)


@program
def quotients_of_real_numbers_are_rounded_down(i: int, n: int, x: float):
    return (float(i - 6) * 0.75) // 2.0 + x // -0.4


@program
def shifts_and_bits(i: int, n: int, x: float):
    return float((i << 3) >> 1 | (i - 6) >> 1 & 255 ^ ~i & 15)


@program
def precedences(i: int, n: int, x: float):
    return float(i + 2 * 3 - 4 // 2 & 7 | 1 ^ 2 << 1) - -(2.0**2.0) + float(not i > 3 and not i == 1)


@program
def booleans_are_bits(i: int, n: int, x: float):
    a = (i > 3) & (i < 9)
    b = (i > 3) | (i < 2)
    c = (i > 3) ^ (i > 6)
    return float(int(a) + 2 * int(b) + 4 * int(c) + 8 * int(a == b) + 16 * int(a != c))


@program
def comparisons_are_chained(i: int, n: int, x: float):
    return float(int(2 < i < 8) + 2 * int(0 <= i < n) + 4 * int(1 < i != 5) + 8 * int(0 < sign_of(i - 3) <= 1))


@program
def numbers_of_two_types_are_compared(i: int, n: int, x: float):
    return float(int(x < i) + 2 * int(float(i) == 3) + 4 * int(i >= 2.5))


@program
def numbers_are_conditions(i: int, n: int, x: float):
    r = 0
    if i:
        r = 1
    if not i - 3:
        r = 2
    if x - 1.5 or i > 10 and n:
        r += 4
    return float(r)


@program
def choices_of_literals_of_two_types(i: int, n: int, x: float):
    return (2 if i > 3 else 0.5) + (1.0 if i < 3 else 2.0 if i < 6 else 3.0)


@program
def a_choice_evaluates_one_side(i: int, n: int, x: float):
    return 100.0 / float(i) if i != 0 else -1.0


@program
def variables_are_exchanged(i: int, n: int, x: float):
    a, b, c = i, n, 7
    a, b = b, a
    a, b, c = c, a, b
    return float(a * 10000 + b * 100 + c)


@program
def a_pair_moves_through_a_loop(i: int, n: int, x: float):
    a, b = 0, 1
    for _ in range(i):
        a, b = b, a + b
    return float(a)


@program
def several_targets(i: int, n: int, x: float):
    a = b = i
    b += 1
    return float(a * 100 + b)


@program
def all_operators_change_variables(i: int, n: int, x: float):
    r = i
    r += 3
    r -= 1
    r *= 2
    r //= 3
    r <<= 2
    r >>= 1
    r |= 1
    r &= 30
    r ^= 5
    y = x
    y += 1.0
    y -= 0.25
    y *= 3.0
    y /= 2.0
    y **= 2.0
    return float(r) + y


@program
def results_of_functions_are_unpacked_and_taken(i: int, n: int, x: float):
    q, r = divided(i * 7 - 20, n)
    both = divided(i, 3)
    return float(q * 1000 + r * 100 + both[0] * 10 + divided(i, 4)[-1])


@program
def a_range_with_a_negative_step(i: int, n: int, x: float):
    r = 0
    for j in range(i, -1, -2):
        r = r * 2 + j
    for j in range(0, i, -1):
        r += 1000
    return float(r)


@program
def a_range_whose_step_depends_on_a_condition(i: int, n: int, x: float):
    step = -1
    if i > 6:
        step = -2
    r = 0
    for j in range(i, 0, step):
        r = r * 3 + j
    return float(r % 10007)


@program
def bounds_of_a_range_are_read_once(i: int, n: int, x: float):
    bound = i
    r = 0
    for j in range(bound):
        bound = 0
        r += j + 1
    known = 3
    for j in range(known):
        known = known + 1
        r += known
    return float(r)


@program
def a_counter_that_the_body_changes(i: int, n: int, x: float):
    r = 0
    for j in range(i):
        r += j
        j = 100
        r += j
    return float(r)


@program
def the_counter_after_loops(i: int, n: int, x: float):
    j = 99
    for j in range(i - 4):
        pass
    k = 98
    for k in range(3):
        pass
    return float(j * 100 + k)


@program
def inner_loops_with_the_same_counter(i: int, n: int, x: float):
    r = 0
    for j in range(i):
        for j in range(2):
            r += 1
        r += j * 10
    return float(r)


@program
def break_and_continue_in_nested_loops(i: int, n: int, x: float):
    r = 0
    for a in range(i):
        if a % 3 == 1:
            continue
        for b in range(i):
            if b > a:
                break
            if b == 1:
                continue
            r += a * 10 + b
        if r > 500:
            break
    return float(r)


@program
def break_in_a_loop_of_few_known_numbers(i: int, n: int, x: float):
    r = 0
    for j in range(5):
        if j == i:
            break
        if j == 2:
            continue
        r = r * 10 + j
    return float(r)


@program
def while_with_break_and_continue(i: int, n: int, x: float):
    r = 0
    while True:
        r += 1
        if r > i:
            break
        if r % 2 == 0:
            continue
        r += 1
    return float(r)


@program
def the_condition_of_while_calls_a_function(i: int, n: int, x: float):
    c = i
    r = 0
    while sign_of(c) > 0 and r < 3:
        c = c // 2
        r += 1
    return float(c * 10 + r)


@program
def a_flag_ends_a_loop(i: int, n: int, x: float):
    done = False
    r = 0
    while not done:
        r += 1
        done = r > i
    return float(r)


@program
def a_variable_of_the_iteration_before(i: int, n: int, x: float):
    last = -1
    r = 0
    for j in range(i):
        if last >= 0:
            r += last * j
        last = j
    return float(r)


@program
def a_search_by_a_loop(i: int, n: int, x: float):
    found = -1
    for j in range(20):
        if j * j > i * 5:
            found = j
            break
    return float(found)


@program
def branches_that_assign(i: int, n: int, x: float):
    q = 1
    if i > 3:
        q = 2
        w = q + 1
    elif i > 1:
        w = 10
    else:
        w = 20
        q = w
    return float(q * 100 + w)


@program
def names_of_python_are_hidden(i: int, n: int, x: float):
    max = n + i
    FACTOR = i  # noqa: N806
    len = 3
    return float(max * 100 + FACTOR * 10 + len)


@program
def constants_of_the_module(i: int, n: int, x: float):
    r = float(FACTOR * 10 + int(FLAG)) + TABLE[2] + TABLE[-1]
    for c in TABLE:
        r = r * 2.0 + c
    return r


@program
def a_loop_over_a_tuple(i: int, n: int, x: float):
    r = 0
    for c in (i, n, 7):
        r = r * 10 + c
    for j in reversed(range(i)):
        r = (r * 2 + j) % 1009
    return float(r)


@program
def numbers_are_cut_and_rounded(i: int, n: int, x: float):
    y = (float(i) - 6.0) * 0.7
    return float(int(y)) + 10.0 * float(abs(i - 6)) + 100.0 * float(min(i, 5)) + 1000.0 * float(max(i, 7))


@program
def folded_literals(i: int, n: int, x: float):
    return 2**3 + -7 // 2 + (7 - 9) * 3 + (1 << 4) + (-8 >> 1) + 3 / 2.0 + 2**-1 + (5 & 3) + (1 if 2 < 3 <= 3 else 9)


@program
def wide_literals(i: int, n: int, x: float):
    return float(i + (4294967296 * 4 - 17179869180) + (2147483647 - 2147483640))


@program
def declared_variables(i: int, n: int, x: float):
    a: float = 3
    b: int = i
    a += x
    b *= 2
    return a + float(b)


def expected(function):
    """What Python gives."""
    return np.array([function(i, 5, 1.5) for i in range(COUNT)], dtype=np.float32)


@pytest.mark.parametrize("function", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_functions_do_what_python_does(function, device):
    called = wp.Function(function)

    @wp.kernel(module="unique")
    def k(out: wp.array(dtype=float), n: int, x: float):
        i = wp.tid()
        out[i] = called(i, n, x)

    out = wp.zeros(COUNT, dtype=float)
    wp.launch(k, dim=COUNT, inputs=[out, 5, 1.5])
    assert np.allclose(out.numpy(), expected(function), rtol=1e-5)


class Stores(ast.NodeTransformer):
    """Makes the body of a function one of a kernel: what it returns is stored."""

    def visit_Return(self, node):
        target = ast.parse("out[i]").body[0].value
        target.ctx = ast.Store()
        return ast.Assign([target], node.value)

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.body.insert(0, ast.parse("i = wp.tid()").body[0])
        node.args = ast.parse("def body(out, n, x): pass").body[0].args
        return node


@pytest.mark.parametrize("function", PROGRAMS, ids=[f.__name__ for f in PROGRAMS])
def test_kernels_do_what_python_does(function, cpu):
    def body(out: wp.array(dtype=float), n: int, x: float):
        pass

    kernel = wp.Kernel(body, key=function.__name__, source=inspect.getsource(function), code_transformers=[Stores()])
    out = wp.zeros(COUNT, dtype=float)
    wp.launch(kernel, dim=COUNT, inputs=[out, 5, 1.5])
    assert np.allclose(out.numpy(), expected(function), rtol=1e-5)
