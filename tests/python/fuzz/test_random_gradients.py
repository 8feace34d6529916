"""Gradients of random kernels agree with derivatives that plain Python computes of the same source.

WEFT_RANDOM_PYTHON_GRADIENTS is their number. `python test_random_gradients.py FIRST COUNT [DEVICE]` runs more by hand.
"""

import os
import re
import sys
import time

import numpy as np
import pytest

import plain_duals
import random_gradients
import weft as wp
from plain_numbers import Number
from plain_values import Array
from test_random_kernels import K, ROWS, defined, inputs

COUNT = int(os.environ.get("WEFT_RANDOM_PYTHON_GRADIENTS", "16"))
REAL = (2, 3, 4, 6, 7, 8)
"""The places of the arrays of real numbers."""
VECTORS = (4, 7)
OUTPUTS = (6, 7, 8)


class Case:
    """One kernel with its inputs, a direction of these, and the weights of its outputs in the loss."""

    def __init__(self, seed):
        writer = random_gradients.SmoothWriter(seed)
        self.text = writer.source()
        self.columns = 2 if writer.two else None
        self.name = f"<random gradient {seed}>"
        arrays, self.n, self.s = inputs(seed)
        chance = np.random.default_rng(seed + 1)
        self.arrays = [a.astype(np.float64) * 0.5 if k in REAL else a for k, a in enumerate(arrays)]
        self.direction = {k: chance.uniform(-1, 1, self.arrays[k].shape) for k in REAL}
        self.weights = {k: chance.uniform(-1, 1, self.arrays[k].shape) for k in OUTPUTS}

    def meant(self):
        """The derivative of the loss along the direction, by plain Python, and the outputs."""
        held = []
        for k, a in enumerate(self.arrays):
            if k in REAL:
                made = plain_duals.DualArray(plain_duals.paired(a, self.direction[k]), 3 if k in VECTORS else 0)
            else:
                made = Array(a.copy())
            held.append(made)
        numbers = [Number("int32", self.n), Number("float64", self.s)]
        with plain_duals.duals():
            numbers[1] = Number("float64", self.s)
        plain_duals.run(self.text, [*held, *numbers], ROWS, self.columns, {"K": K})
        value = {k: np.vectorize(lambda d: d.value, otypes=[float])(held[k].data) for k in OUTPUTS}
        slope = {k: np.vectorize(lambda d: d.tangent, otypes=[float])(held[k].data) for k in OUTPUTS}
        terms = [self.weights[k] * slope[k] for k in OUTPUTS]
        return sum(t.sum() for t in terms), sum(np.abs(t).sum() for t in terms), value

    def computed(self):
        """The same by a tape: the gradient times the direction, and the outputs."""
        kernel = wp.Kernel(defined(self.text, self.name)["k"], options={"fuse_fp": False})
        held = []
        for k, a in enumerate(self.arrays):
            held.append(wp.array(a, dtype=wp.vec3d if k in VECTORS else None, requires_grad=k in REAL))
        with wp.Tape() as tape:
            dim = (ROWS // 2, 2) if self.columns else ROWS
            wp.launch(kernel, dim=dim, inputs=[*held, self.n, self.s])
        value = {k: held[k].numpy().copy() for k in OUTPUTS}
        seeds = {held[k]: wp.array(self.weights[k], dtype=held[k].dtype) for k in OUTPUTS}
        tape.backward(grads=seeds)
        terms = [held[k].grad.numpy() * self.direction[k] for k in REAL]
        return sum(t.sum() for t in terms), sum(np.abs(t).sum() for t in terms), value


def difference(seed):
    """What is wrong with a kernel's gradient, with its source; None if nothing is, "" if its numbers grow too large or all
    threads return at once, so that there is no gradient.
    """
    case = Case(seed)
    try:
        right, size, outputs = case.meant()
        if not np.isfinite(right) or size > 1e12:
            return ""
        made, parts, values = case.computed()
    except Exception as error:
        if re.search("nothing on the tape computes|recorded nothing", str(error)):
            return ""
        return f"seed {seed}: {type(error).__name__}: {error}\n{case.text}"
    for k in OUTPUTS:
        if not np.allclose(values[k], outputs[k], rtol=1e-9, atol=1e-9):
            return f"seed {seed}: output {k} differs\n{case.text}"
    if not abs(made - right) <= 1e-9 * (1.0 + size + parts):
        return f"seed {seed}: the derivative is {made}, not {right}\n{case.text}"
    return None


@pytest.mark.parametrize("part", range(2))
def test_gradients_of_random_kernels_are_what_plain_python_derives(device, part):
    found = [difference(seed) for seed in range(part * COUNT // 2, (part + 1) * COUNT // 2)]
    assert not any(found), next(f for f in found if f)
    assert found.count("") < len(found) / 2, "most kernels give infinite numbers"


def main():
    """Runs COUNT kernels from seed FIRST on, and shows those that are wrong. Exits 1 if there are any."""
    first, count = int(sys.argv[1]), int(sys.argv[2])
    wrong, large, begun = 0, 0, time.time()
    with wp.ScopedDevice(sys.argv[3] if len(sys.argv) > 3 else "cpu"):
        for seed in range(first, first + count):
            found = difference(seed)
            large += found == ""
            if found:
                wrong += 1
                print(found, flush=True)
    print(f"{count} kernels, {wrong} wrong, {large} too large, {time.time() - begun:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
