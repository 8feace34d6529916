"""Kernels changed at random: each is traced, or refused with an error that names its place; none ends the process."""

import linecache
import random
import re
import subprocess
import sys

import pytest

import weft as wp

BODY = """
i = wp.tid()
v = wp.vec3(a[i], 1.0, 2.0)
s = 0.0
for j in range(n):
    if j == 3 and a[j] > 0.5:
        continue
    if j > 10:
        break
    s += a[j] * v[j % 3]
while s > 100.0:
    s = s / 2.0
q = P()
q.x = v
q.k = i
m = wp.mat33(1.0)
m[1, 2] = s
m[i] = v
w = m * v
if s < 1.0:
    r = w[0]
else:
    r = f(s, 2.0)
b[i, 0] += r
b[i, -1] = wp.where(r > 0.0, r, -r)
st = wp.rand_init(42, i)
a[i] = wp.randf(st) + q.x[1] + float(q.k)
wp.atomic_add(a, 0, r)
if i > n:
    return
a[i] = g(v, w)[0]
""".strip().splitlines()

WORDS = """
i j s v a b m q n r w f g wp 0 1.0 -1 2 None True 'x' () P() q.x m[0] a[i] b[i] a[1:] len(a) range(3) wp.tid() wp.vec3()
wp.float64(1.0) wp.vec2(1.0,2.0) wp.quat_identity() wp.static(i) wp.static(3) lambda:0 [1,2] f.x wp.nothing a.shape[0] ~i
""".split()

EXPECTED = (
    wp.WarpCodegenError,
    wp.WarpCodegenTypeError,
    wp.WarpCodegenAttributeError,
    wp.WarpCodegenIndexError,
    wp.WarpCodegenKeyError,
    wp.WarpCodegenValueError,
    wp.Error,
)


@wp.struct
class P:
    x: wp.vec3
    k: int


@wp.func
def f(x: float, y: float = 1.0):
    if x > y:
        return x
    for k in range(5):
        if float(k) > x:
            return y
    return x + y


@wp.func
def g(x: wp.vec3, y: wp.vec3):
    return x + y


def mutated(chance):
    """The text of a kernel with one or two changes: lines gone, doubled or moved, words replaced."""
    lines = list(BODY)
    for _ in range(chance.randint(1, 2)):
        k = chance.randrange(len(lines))
        kind = chance.random()
        if kind < 0.2:
            del lines[k]
        elif kind < 0.3:
            lines.insert(k, lines[chance.randrange(len(lines))])
        else:
            words = list(re.finditer(r"[A-Za-z_][\w.]*(?:\(\))?|\d+\.?\d*", lines[k]))
            if words:
                word = chance.choice(words)
                lines[k] = lines[k][: word.start()] + chance.choice(WORDS) + lines[k][word.end() :]
    head = "def k(a: wp.array(dtype=float), b: wp.array2d(dtype=float), n: int):\n"
    return head + "".join(f"    {line}\n" for line in lines)


def outcome(text, name):
    """What becomes of a kernel: "traced", "refused", "no Python", or the error that is none of the expected."""
    try:
        code = compile(text, name, "exec")
    except (SyntaxError, ValueError):
        return "no Python"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names = {"wp": wp, "P": P, "f": f, "g": g}
    exec(code, names)
    try:
        wp.Kernel(names["k"]).native_kernel().ir_hash()
    except EXPECTED as error:
        return "refused" if name in str(error) or isinstance(error, wp.Error) else f"without a place: {error}"
    except Exception as error:  # what is looked for
        return f"{type(error).__name__}: {error}"
    return "traced"


def run(seed, count):
    """Traces `count` changed kernels. Returns how many were traced and refused, and the texts of the wrong outcomes."""
    chance = random.Random(seed)
    counts = {"traced": 0, "refused": 0, "no Python": 0}
    wrong = []
    for k in range(count):
        text = mutated(chance)
        made = outcome(text, f"<mutation {seed}.{k}>")
        if made in counts:
            counts[made] += 1
        else:
            wrong.append(f"{made}\n{text}")
    return counts, wrong


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(2))
def test_changed_kernels_are_traced_or_refused(seed):
    """In a process of its own, whose end by a signal is a failure of this test alone."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, str(seed), "150"], capture_output=True, text=True, timeout=400
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    traced, refused = map(int, ran.stdout.split()[-2:])
    assert traced > 20 and refused > 40, ran.stdout


def main():
    """Usage: test_mutations.py SEED COUNT. Exits 1 if a kernel met an error that is none of the expected."""
    counts, wrong = run(int(sys.argv[1]), int(sys.argv[2]))
    for text in wrong:
        print(text)
    print(counts)
    print(counts["traced"], counts["refused"])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
