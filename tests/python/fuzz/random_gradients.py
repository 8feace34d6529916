"""Random kernels that can be derived: real numbers of float64, in ranges where the functions of them are smooth and tame."""

import re

from random_expressions import DOUBLE, FLOAT, HEAD, INT, REAL, VEC, WHOLE, WIDTH
from random_kernels import Writer


class SmoothWriter(Writer):
    """Writes kernels whose outputs follow from their real inputs by way of conditions, loops, functions and overwriting."""

    def leaf(self, kind, literal=True):
        return super().leaf(kind, literal and kind != FLOAT)

    def expression(self, kind, depth=None):
        kind = FLOAT if kind == DOUBLE else kind
        return super().expression(kind, depth)

    def real(self, kind, depth):
        """A real number: sums, products, and functions of what is in their domain."""
        c = self.chance
        form = c.random()
        if form < 0.45:
            a, b = self.pair(FLOAT, depth)
            return f"({a} {self.pick('+', '-', '*')} {b})"
        a = self.operand(FLOAT, depth)
        if form < 0.52:
            return f"({a} / (1.5 + abs({self.operand(FLOAT, depth)})))"
        if form < 0.6:
            return f"(-{a})"
        if form < 0.7:
            name = self.pick("min", "wp.max", "wp.atan2")
            return f"{name}({a}, {self.operand(FLOAT, depth)} + 0.37)"
        if form < 0.85:
            return self.pick(
                f"wp.sin({a})", f"wp.cos({a})", f"wp.tanh({a})", f"wp.exp(-abs({a}))", f"wp.sqrt(0.5 + abs({a}))",
                f"wp.clamp({a}, -1.1, 1.7)", f"abs({a})",
            )  # fmt: skip
        if form < 0.95:
            v = self.operand(VEC, depth)
            return self.pick(f"{v}[{self.index('3')}]", f"wp.dot({v}, {self.operand(VEC, depth)})", f"wp.length({v})")
        return f"float({self.operand(c.choice([k for k in WHOLE if k not in REAL]), 1)} % 7)"

    def vector(self, kind, depth):
        if kind == VEC and self.chance.random() < 0.15:
            return f"({self.operand(VEC, depth)} / (2.3 + abs({self.operand(FLOAT, depth)})))"
        made = super().vector(kind, depth)
        return made if kind != VEC or " / " not in made else self.operand(VEC, 1)

    def augment(self):
        known = [n for n in self.names(FLOAT) if n[0] == FLOAT]
        if not known or self.chance.random() < 0.3:
            return self.assign()
        name, op = self.chance.choice(known), self.pick("+", "-", "*")
        return self.line(f"{name} {op}= wp.sin({self.operand(FLOAT, 2)})")

    def store(self):
        """An output: new, changed where it lies, or a sum over threads."""
        c = self.chance
        form = c.random()
        key = self.index(str(WIDTH))
        value = self.operand(FLOAT, 3)
        if form < 0.5:
            before = self.pick("", "", f"of[row, {key}] + ", f"of[row, {key}] - ")
            self.line(f"of[row, {key}] {self.pick('', '', '*')}= {before}{value}")
        elif form < 0.65:
            self.line(f"ov[row, {key}] = {self.pick('', f'ov[row, {key}] + ')}{self.operand(VEC, 3)}")
        elif form < 0.75:
            self.line(f"ov[row, {key}][{self.index('3')}] = {value}")
        elif form < 0.85:
            self.line(f"near[row, {key}] += {value}")
        else:
            self.line(f"oi[row, {key}] {self.pick('', '*')}= {self.expression(INT)}")

    def source(self):
        """The text, with real numbers of float64."""
        super().source()
        self.line(f"near[row, 0] += {self.expression(FLOAT)}")
        text = re.sub(r"\bfloat\b", "wp.float64", HEAD + "\n".join(self.lines) + "\n")
        text = text.replace("wp.mat33", "wp.mat33d")
        return re.sub(r"\bwp\.vec3\b", "wp.vec3d", text).replace("1e10", "1.25")

