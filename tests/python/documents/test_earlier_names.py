"""Names of earlier versions of Warp that programs still say: no program of the documents, but theirs."""

import numpy as np

import weft as wp


def test_vec_and_mat_are_the_types_and_the_constructors(device):
    weights = wp.constant(wp.vec(3, dtype=wp.float32)([1.0, 2.0, 3.0]))
    places = wp.constant(wp.mat((2, 3), dtype=wp.int32)([[1, 2, 3], [4, 5, 6]]))

    @wp.func
    def single(x: float):
        return wp.vec(x, length=1)

    @wp.kernel
    def k(out: wp.array(dtype=wp.vec(4, dtype=float)), m: wp.array(dtype=wp.mat((2, 2), dtype=wp.float64))):
        i = wp.tid()
        v = wp.vec(1.0, 2.0, float(places[1, 2]), weights[2])
        out[i] = v + single(float(i))[0] * wp.vec(1.0, length=4)
        m[i] = wp.mat(wp.float64(3.0), shape=(2, 2))

    out, m = wp.zeros(2, dtype=wp.vec(4, dtype=float)), wp.zeros(2, dtype=wp.mat((2, 2), dtype=wp.float64))
    wp.launch(k, dim=2, inputs=[out, m])
    assert out.numpy().tolist() == [[1.0, 2.0, 6.0, 3.0], [2.0, 3.0, 7.0, 4.0]]
    assert np.array_equal(m.numpy(), np.full((2, 2, 2), 3.0))
