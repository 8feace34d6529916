"""Random kernels give what plain Python computes of the same source, bit by bit.

WEFT_RANDOM_PYTHON_KERNELS is their number. `python test_random_kernels.py FIRST COUNT [DEVICE]` runs more by hand.
"""

import linecache
import os
import sys
import time

import numpy as np
import pytest

import plain_library
import random_kernels
import weft as wp
from plain_numbers import Number
from plain_values import Array

COUNT = int(os.environ.get("WEFT_RANDOM_PYTHON_KERNELS", "32"))
ROWS = 4
K = 3


def inputs(seed):
    """The arrays and numbers of a launch, as NumPy has them."""
    chance = np.random.default_rng(seed)

    def whole(*shape):
        small = chance.integers(-20, 20, shape, dtype=np.int32)
        wide = chance.integers(-(2**31), 2**31 - 1, shape, dtype=np.int32)
        return np.where(chance.random(shape) < 0.8, small, wide).astype(np.int32)

    def real(*shape):
        return chance.uniform(-4.0, 4.0, shape).astype(np.float32)

    width = random_kernels.WIDTH
    arrays = [whole(7), whole(4, 5), real(7), real(4, 5), real(5, 3)]
    arrays += [whole(ROWS, width), real(ROWS, width), real(ROWS, width, 3), real(ROWS, width), whole(5)]
    return arrays, int(chance.integers(-5, 12)), float(np.float32(chance.uniform(-2, 2)))


def defined(text, name):
    """The names of a source."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names = {"wp": wp, "K": K, "__name__": name}  # a module of its own: functions of one name in one are overloads
    exec(compile(text, name, "exec"), names)
    return names


def computed(text, seed, two):
    """What the package computes: the arrays after the launch."""
    arrays, n, s = inputs(seed)
    kernel = wp.Kernel(defined(text, f"<random {seed}>")["k"], options={"fuse_fp": False})
    vectors = (4, 7)
    held = [wp.array(a, dtype=wp.vec3 if k in vectors else None) for k, a in enumerate(arrays)]
    wp.launch(kernel, dim=(ROWS // 2, 2) if two else ROWS, inputs=[*held, n, s])
    return [a.numpy() for a in held]


def meant(text, seed, two):
    """What plain Python computes."""
    arrays, n, s = inputs(seed)
    held = [Array(a, 3 if k in (4, 7) else 0) for k, a in enumerate(arrays)]
    numbers = [Number("int32", n), Number("float32", s)]
    plain_library.run(text, [*held, *numbers], ROWS, 2 if two else None, {"K": K})
    return arrays


def difference(seed):
    """What is wrong with a kernel, with its source; None if nothing is."""
    writer = random_kernels.Writer(seed)
    text = writer.source()
    try:
        right = meant(text, seed, writer.two)
        made = computed(text, seed, writer.two)
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}\n{text}"
    names = "a b x y p oi of ov near total".split()
    for name, one, other in zip(names, made, right):
        if name == "near":
            same = np.isclose(one, other, rtol=1e-5, atol=1e-6, equal_nan=True)
        else:
            same = (one == other) | (one != one) & (other != other)
        if not same.all():
            where = np.argwhere(~same)[0]
            place = tuple(where)
            return f"seed {seed}: {name}{list(map(int, where))} is {one[place]}, not {other[place]}\n{text}"
    return None


@pytest.mark.parametrize("part", range(4))
def test_random_kernels_compute_what_plain_python_does(device, part):
    for seed in range(part * COUNT // 4, (part + 1) * COUNT // 4):
        assert difference(seed) is None, difference(seed)


def main():
    """Runs COUNT kernels from seed FIRST on, and shows those that are wrong. Exits 1 if there are any."""
    first, count = int(sys.argv[1]), int(sys.argv[2])
    wrong, begun = 0, time.time()
    with wp.ScopedDevice(sys.argv[3] if len(sys.argv) > 3 else "cpu"):
        for seed in range(first, first + count):
            found = difference(seed)
            if found is not None:
                wrong += 1
                print(found, flush=True)
    print(f"{count} kernels, {wrong} wrong, {time.time() - begun:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
