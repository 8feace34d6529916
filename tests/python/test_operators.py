"""Operators promote nothing: literals adapt, variables do not; quotients, remainders and powers as documented."""

import numpy as np
import pytest

import weft as wp


def launch(kernel, count, dtype=float):
    out = wp.zeros(count, dtype=dtype)
    wp.launch(kernel, dim=1, inputs=[out])
    return out.numpy()


def test_literals_adapt_to_the_other_operand(device):
    @wp.kernel
    def k(out: wp.array(dtype=wp.float64)):
        x = wp.float64(3.0)
        out[0] = x * 2
        out[1] = 1 / x
        out[2] = x + 0.25
        out[3] = wp.max(x, 7)

    assert np.allclose(launch(k, 4, wp.float64), [6.0, 1.0 / 3.0, 3.25, 7.0], rtol=1e-15)


def test_variables_of_different_types_do_not_mix():
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        out[0] = float(0.0) + int(4)

    with pytest.raises(wp.WarpCodegenError, match=r"'add' that matched inputs with types: \[float32, int32\]"):
        wp.launch(k, dim=1, inputs=[wp.zeros(1, dtype=float)])


def test_quotients_and_remainders(device):
    @wp.kernel
    def k(a: wp.array(dtype=int), b: wp.array(dtype=int), out: wp.array2d(dtype=int)):
        i = wp.tid()
        out[i, 0] = a[i] / b[i]
        out[i, 1] = a[i] // b[i]
        out[i, 2] = a[i] % b[i]

    a = np.array([7, -7, 7, -7, 6, -6], dtype=np.int32)
    b = np.array([2, 2, -2, -2, 3, 3], dtype=np.int32)
    out = wp.zeros((6, 3), dtype=int)
    wp.launch(k, dim=6, inputs=[wp.array(a), wp.array(b), out])
    got = out.numpy()
    assert np.array_equal(got[:, 0], np.trunc(a / b).astype(int))
    assert np.array_equal(got[:, 1], a // b)
    assert np.array_equal(got[:, 2], np.fmod(a, b))


def test_shifts_and_bits(device):
    @wp.kernel
    def k(out: wp.array(dtype=wp.uint32)):
        x = wp.uint32(0xF0F0)
        out[0] = x >> wp.uint32(4)
        out[1] = x << 4
        out[2] = x & 0xFF
        out[3] = x | 0xF
        out[4] = x ^ wp.uint32(0xFFFF)
        out[5] = ~x

    want = [0xF0F, 0xF0F00, 0xF0, 0xF0FF, 0x0F0F, 0xFFFF0F0F]
    assert launch(k, 6, wp.uint32).tolist() == want


def test_powers_of_real_numbers(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        x = float(1.5)
        out[0] = x**2.0
        out[1] = x**3
        out[2] = 2.0**x

    assert np.allclose(launch(k, 3), [2.25, 3.375, 2.0**1.5], rtol=1e-6)


def test_a_name_keeps_its_type():
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        x = 1
        x = 2.0
        out[0] = x

    with pytest.raises(wp.WarpCodegenTypeError, match="assigning to existing symbol x"):
        wp.launch(k, dim=1, inputs=[wp.zeros(1, dtype=float)])


def test_annotated_variables(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        x: float = 3
        y: wp.float64 = 0.5
        out[0] = x + float(y)

    assert launch(k, 1)[0] == 3.5


def test_conversions(device):
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        out[0] = float(int(-2.7))
        out[1] = float(wp.uint8(300))
        out[2] = float(wp.int16(wp.float16(2.5)))
        out[3] = float(bool(3))

    assert launch(k, 4).tolist() == [-2.0, 44.0, 2.0, 1.0]


def test_products_of_linear_algebra(device):
    a = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
    b = np.array([[1, 2], [0, 1], [3, -1]], dtype=np.float32)
    v = np.array([1, -2, 3], dtype=np.float32)
    mat23, mat32 = wp.types.matrix((2, 3), float), wp.types.matrix((3, 2), float)

    @wp.kernel
    def k(a: mat23, b: mat32, v: wp.vec3, p: wp.array(dtype=wp.mat22), q: wp.array(dtype=wp.vec2), r: wp.array(dtype=wp.vec2)):
        p[0] = a * b
        p[1] = a @ b
        q[0] = a * v
        r[0] = v * b

    p, q, r = wp.zeros(2, dtype=wp.mat22), wp.zeros(1, dtype=wp.vec2), wp.zeros(1, dtype=wp.vec2)
    wp.launch(k, dim=1, inputs=[mat23(a), mat32(b), wp.vec3(v), p, q, r])
    assert np.array_equal(p.numpy()[0], a @ b)
    assert np.array_equal(p.numpy()[1], a @ b)
    assert np.array_equal(q.numpy()[0], a @ v)
    assert np.array_equal(r.numpy()[0], v @ b)


def test_comparisons_take_numbers_of_different_types(device):
    """As Warp does, whose sums and products refuse them."""

    @wp.kernel
    def k(i: int, u: wp.uint32, x: float, y: wp.float64, flag: bool, out: wp.array(dtype=int)):
        out[0] = int(x < i) + 2 * int(i <= x) + 4 * int(i > 2.5) + 8 * int(2.5 > i)
        out[1] = int(i < u) + 2 * int(wp.int64(i) == i) + 4 * int(wp.int8(i) >= u)
        out[2] = int(y == x) + 2 * int(y != i) + 4 * int(0.1 < x and x <= i)
        out[3] = int(flag == 1) + 2 * int(i != flag)

    def expected(i, u, x, y, flag):
        return [
            (x < i) + 2 * (i <= x) + 4 * (i > 2.5) + 8 * (2.5 > i),
            (i < u) + 2 + 4 * (i >= u),
            (y == x) + 2 * (y != i) + 4 * (0.1 < x <= i),
            (flag == 1) + 2 * (i != flag),
        ]

    for values in ((3, 3, 2.5, 2.5, True), (-1, 4000000000, -1.0, 0.1, False), (2, 1, 2.0, 2.0, True)):
        out = wp.zeros(4, dtype=int)
        wp.launch(k, dim=1, inputs=[*values, out])
        assert out.numpy().tolist() == expected(*values)


def test_chained_comparisons_are_of_one_type():
    @wp.kernel
    def k(i: int, x: float, out: wp.array(dtype=int)):
        out[0] = int(0 < x < i)

    with pytest.raises(wp.WarpCodegenTypeError, match="Cannot chain comparisons of unequal types: float32 and int32"):
        wp.launch(k, dim=1, inputs=[1, 2.0, wp.zeros(1, dtype=int)])


def test_numbers_of_two_types_are_compared_by_value(device):
    @wp.kernel
    def k(x: wp.array(dtype=float), i: wp.array(dtype=int), out: wp.array2d(dtype=bool)):
        t = wp.tid()
        out[t, 0] = x[t] < i[t]
        out[t, 1] = i[t] >= wp.float64(x[t])
        out[t, 2] = wp.uint32(3) > i[t]
        out[t, 3] = wp.int8(i[t]) == wp.uint8(200)
        out[t, 4] = wp.float16(x[t]) != i[t]
        out[t, 5] = (i[t] == 2) == i[t]

    x = np.array([-1.5, 0.5, 2.0, 1.0], dtype=np.float32)
    i = np.array([-1, 0, 2, 1], dtype=np.int32)
    out = wp.zeros((4, 6), dtype=bool)
    wp.launch(k, dim=4, inputs=[wp.array(x), wp.array(i), out])
    columns = [x < i, i >= x, 3 > i, np.zeros(4, bool), x != i, (i == 2).astype(int) == i]
    assert np.array_equal(out.numpy(), np.stack(columns, axis=1))


def test_what_no_type_compares_is_refused():
    @wp.kernel
    def numbers(i: wp.int64, out: wp.array(dtype=bool)):
        out[0] = i < wp.uint64(3)

    with pytest.raises(wp.WarpCodegenError, match="'lt' that matched inputs with types: .int64, uint64."):
        wp.launch(numbers, dim=1, inputs=[1, wp.zeros(1, dtype=bool)])

    @wp.kernel
    def vectors(out: wp.array(dtype=bool)):
        out[0] = wp.vec2(1.0, 2.0) == wp.vec2i(1, 2)

    with pytest.raises(wp.WarpCodegenError, match="'eq' that matched inputs"):
        wp.launch(vectors, dim=1, inputs=[wp.zeros(1, dtype=bool)])

    @wp.kernel
    def chain(i: int, j: int, x: float, out: wp.array(dtype=bool)):
        out[0] = i < j < x

    with pytest.raises(wp.WarpCodegenTypeError, match="chain comparisons of unequal types: int32 and float32"):
        wp.launch(chain, dim=1, inputs=[1, 2, 3.0, wp.zeros(1, dtype=bool)])


def test_checks_compare_values_of_one_type():
    @wp.kernel
    def k():
        wp.expect_neq(wp.mat33(0.0), wp.mat22(0.0))

    with pytest.raises(wp.WarpCodegenError, match="test equality for objects with different types$"):
        wp.launch(k, dim=1)


def test_approximate_quotients_and_inverses(device):
    @wp.kernel
    def k(a: float, b: float, m: wp.mat22, out: wp.array(dtype=float)):
        out[0] = wp.div_approx(a, b)
        inverse = wp.inverse_approx(m)
        for r in range(2):
            for c in range(2):
                out[1 + 2 * r + c] = inverse[r, c]

    m = np.array([[2.0, 1.0], [1.0, 3.0]])
    out = wp.zeros(5, dtype=float)
    wp.launch(k, dim=1, inputs=[3.0, 8.0, wp.mat22(m), out])
    assert np.allclose(out.numpy(), [0.375, *np.linalg.inv(m).reshape(-1)], rtol=1e-5)
    assert wp.div_approx(3.0, 8.0) == 0.375


@pytest.mark.parametrize(
    "pair",
    [(wp.quat, wp.mat33), (wp.mat33, wp.quat), (wp.transform, wp.mat44), (wp.vec3, wp.quat), (wp.mat33, wp.vec4)],
    ids=lambda pair: f"{pair[0].__name__} {pair[1].__name__}",
)
def test_products_that_there_are_not_are_refused(pair):
    a, b = pair
    with pytest.raises(RuntimeError, match="Couldn't find a function 'mul' compatible"):
        wp.mul(a(), b())
