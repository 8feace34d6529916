"""Random expressions of kernels: each has a type, and every index is in range."""

import random

WIDTH = 6
"""The elements of each thread's own row of the outputs."""

INT, FLOAT, BOOL, VEC = "i", "f", "b", "v"
LONG, WORD, BYTE, DOUBLE, TRIPLE, MATRIX, STRUCT = "l", "u", "c", "d", "w", "m", "t"
TYPES = {
    INT: "int", FLOAT: "float", BOOL: "bool", VEC: "wp.vec3", LONG: "wp.int64", WORD: "wp.uint32", BYTE: "wp.int8",
    DOUBLE: "wp.float64", TRIPLE: "wp.vec3i", MATRIX: "wp.mat33", STRUCT: "S",
}  # fmt: skip
WHOLE, REAL = (INT, LONG, WORD, BYTE), (FLOAT, DOUBLE)


HEAD = """@wp.struct
class S:
    i: int
    f: float
    v: wp.vec3
@wp.func
def element(z: wp.array(dtype=int), i: int):
    if i >= 0 and i < len(z):
        return z[i]
    return -1
@wp.func
def swapped(z: wp.array2d(dtype=int), r: int, i: int, j: int):
    z[r, i], z[r, j] = z[r, j], z[r, i]
    return z[r, i]
@wp.func
def made(i: int, f: float, v: wp.vec3):
    s = S()
    s.i = i
    if f > 0.0:
        s.f = f
        s.v = v
    return s
@wp.func
def moved(i: wp.ref[int], f: wp.ref[float], k: int):
    i += k
    if i % 2 == 0:
        f = f * 0.5
        return i - k
    i = i * 3
    return k
"""


class Expressions:
    """Writes expressions of a type out of the names that a place of the source knows."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.lines = []
        self.functions = []
        self.count = 0
        self.scope = {}
        self.depth = 0
        self.in_kernel = False
        self.results = None
        self.loops = 0
        self.two = self.chance.random() < 0.3  # coordinates of a thread

    def pick(self, *options):
        return self.chance.choice(options)

    def names(self, kind):
        return [name for name, of in self.scope.items() if of == kind]

    def integer(self):
        """A literal."""
        c = self.chance
        return str(c.choice((0, 1, 2, 3, 5, 7, 31, 100, 65537, 2147483647, "K", c.randint(0, 40), c.randint(-9, -1))))

    def leaf(self, kind, literal=True):
        """A variable, an element, or a literal where one is allowed."""
        c = self.chance
        known = self.names(kind)
        if known and c.random() < 0.65:
            return c.choice(known)
        if kind == INT:
            options = [self.integer()] * (2 * literal) + ["int(%s)" % self.integer()]
            options += self.elements(INT) if self.in_kernel else []
            return c.choice(options)
        if kind == FLOAT:
            number = c.choice(("0.0", "1.0", "0.5", "-2.0", "3.25", "0.1", "1e10", f"{c.uniform(-4, 4):.3f}"))
            return c.choice([number] * (2 * literal) + [f"float({number})"] + (self.elements(FLOAT) * self.in_kernel))
        if kind == BOOL:
            return self.pick("True", "False") if literal else f"bool({self.pick('0', '1')})"
        if kind == VEC:
            if self.in_kernel and c.random() < 0.6:
                return self.pick(f"p[{self.index('5')}]", f"ov[row, {self.index(str(WIDTH))}]")
            return f"wp.vec3({self.leaf(FLOAT)}, {self.leaf(FLOAT)}, {self.leaf(FLOAT)})"
        if kind == STRUCT:
            return f"made({self.leaf(INT)}, {self.leaf(FLOAT)}, {self.leaf(VEC)})"
        if kind == MATRIX:
            return f"wp.mat33({', '.join(self.leaf(FLOAT) for _ in range(9))})"
        if kind == TRIPLE:
            return f"wp.vec3i({self.leaf(INT)}, {self.leaf(INT)}, {self.leaf(INT)})"
        if kind == DOUBLE:
            return f"wp.float64({self.leaf(FLOAT)})"
        return f"{TYPES[kind]}({self.leaf(INT)})"

    def elements(self, kind):
        """Elements of the arrays."""
        if kind == INT:
            found = [f"a[{self.index('7')}]", f"b[{self.index('4')}, {self.index('5')}]", "n"]
            return [*found, f"oi[row, {self.index(str(WIDTH))}]", "len(a)", "b.shape[1]", "row"]
        return [f"x[{self.index('7')}]", f"y[{self.index('4')}, {self.index('5')}]", f"of[row, {self.index(str(WIDTH))}]", "s"]

    def index(self, extent):
        """An index of a dimension, negative ones included: a remainder has the sign of its dividend."""
        n = int(extent)
        if self.chance.random() < 0.4:
            return str(self.chance.randint(-n, n - 1))
        known = self.names(INT)
        if not known:
            return str(self.chance.randint(0, n - 1))
        name = self.chance.choice(known)
        inner = self.pick(name, f"({name} * {self.chance.randint(2, 10**9)})", f"({name} + {self.integer()})", f"abs({name})")
        return f"{inner} % {n}"

    def expression(self, kind, depth=None):
        """An expression of a type."""
        c = self.chance
        depth = self.pick(1, 2, 2, 3) if depth is None else depth
        if depth <= 0 or c.random() < 0.12:
            return self.leaf(kind)
        calls = [f for f in self.functions if kind in f.results and len(f.results) == 1]
        if calls and c.random() < 0.15:
            return self.call(c.choice(calls), depth)
        if c.random() < 0.15:
            part = self.of_parts(kind, depth)
            if part is not None:
                return part
        if c.random() < 0.08:
            return f"({self.operand(kind, depth)} if {self.condition(depth)} else {self.operand(kind, depth)})"
        if c.random() < 0.05 and kind != BOOL:
            return f"wp.where({self.condition(depth)}, {self.operand(kind, depth)}, {self.operand(kind, depth)})"
        if kind == BOOL:
            return self.condition(depth)
        if kind in (VEC, TRIPLE):
            return self.vector(kind, depth)
        if kind in (MATRIX, STRUCT):
            return self.matrix(depth) if kind == MATRIX else self.leaf(STRUCT)
        return self.whole(kind, depth) if kind in WHOLE else self.real(kind, depth)

    def operand(self, kind, depth):
        """An expression that is no bare literal."""
        made = self.expression(kind, depth - 1)
        if is_literal(made):
            return self.leaf(kind, literal=False)
        return made

    def pair(self, kind, depth):
        """Two operands, one of which may be a bare literal."""
        a, b = self.operand(kind, depth), self.operand(kind, depth)
        if self.chance.random() < 0.3:
            number = self.integer() if kind in WHOLE else self.pick("2.0", "0.5", "3", "-1.5", "0.1")
            if kind == BYTE or kind == WORD:
                number = str(self.chance.randint(0, 100))
            return (number, b) if self.chance.random() < 0.4 else (a, number)
        return a, b

    def whole(self, kind, depth):
        """An integer."""
        c = self.chance
        form = c.random()
        if form < 0.6:
            a, b = self.pair(kind, depth)
            op = c.choice(("+", "-", "*", "+", "-", "*", "//", "/", "%", "&", "|", "^", "<<", ">>"))
            return f"({a} {op} {b})"
        if form < 0.72:
            return f"({self.pick('-', '~')}{self.operand(kind, depth)})"
        if form < 0.84:
            a, b = self.pair(kind, depth)
            return self.pick(f"min({a}, {b})", f"wp.max({a}, {b})", f"abs({self.operand(kind, depth)})")
        if form < 0.88:
            return f"wp.clamp({self.operand(kind, depth)}, {self.operand(kind, depth)}, {self.operand(kind, depth)})"
        if form < 0.92 and kind == INT:
            return f"{self.operand(TRIPLE, depth)}[{self.index('3')}]"
        return f"{TYPES[kind]}({self.operand(c.choice([k for k in (*WHOLE, *REAL, BOOL) if k != kind]), depth)})"

    def real(self, kind, depth):
        """A real number."""
        c = self.chance
        form = c.random()
        if form < 0.55:
            a, b = self.pair(kind, depth)
            return f"({a} {c.choice(('+', '-', '*', '+', '-', '*', '/', '%', '//'))} {b})"
        if form < 0.62:
            return f"(-{self.operand(kind, depth)})"
        if form < 0.72:
            a, b = self.pair(kind, depth)  # which zero min() gives is open
            return f"({self.pick('min', 'wp.max')}({a}, {b}) + 0.0)"
        if form < 0.84:
            name = self.pick("abs", "wp.floor", "wp.ceil", "wp.trunc", "wp.rint", "wp.round", "wp.sqrt")
            return f"{name}({self.operand(kind, depth)})"
        if form < 0.92 and kind == FLOAT:
            v = self.operand(VEC, depth)
            return self.pick(f"{v}[{self.index('3')}]", f"wp.dot({v}, {self.operand(VEC, depth)})")
        return f"{TYPES[kind]}({self.operand(c.choice([k for k in (*WHOLE, *REAL, BOOL) if k != kind]), depth)})"

    def vector(self, kind, depth):
        """A vector."""
        c = self.chance
        part = FLOAT if kind == VEC else INT
        form = c.random()
        a = self.operand(kind, depth)
        if form < 0.4:
            return f"({a} {self.pick('+', '-')} {self.operand(kind, depth)})"
        if form < 0.6:
            number = self.operand(part, depth)
            return self.pick(f"({a} * {number})", f"({number} * {a})", f"({a} / {number})")
        if form < 0.7:
            return f"(-{a})"
        if form < 0.8 and kind == VEC:
            return f"wp.cross({a}, {self.operand(kind, depth)})"
        three = ", ".join(self.expression(part, depth - 1) for _ in range(3))
        return f"{TYPES[kind]}({three})"

    def matrix(self, depth):
        """A matrix."""
        a, b = self.operand(MATRIX, depth), self.operand(MATRIX, depth)
        return self.pick(f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"wp.transpose({a})", f"({a} * {self.leaf(FLOAT)})")

    def of_parts(self, kind, depth):
        """A part of a struct or matrix, or what a function makes of an array; None where there is none."""
        structs, matrices = self.names(STRUCT), self.names(MATRIX)
        index = f"{self.index('3')}, {self.index('3')}"
        options = [f"{s}.{kind}" for s in structs] if kind in (INT, FLOAT, VEC) else []
        if kind == FLOAT:
            options += [f"{m}[{index}]" for m in matrices] + [f"{s}.v[{self.index('3')}]" for s in structs]
        if kind == VEC:
            options += [f"{m}[{self.index('3')}]" for m in matrices]
            options += [f"({m} * {self.operand(VEC, depth)})" for m in matrices]
        known = self.names(INT)
        if kind == INT and self.in_kernel and known:
            i = self.chance.choice(known)
            options += [f"element(a, {i})", f"(a[{i}] if {i} >= 0 and {i} < 7 else {i})"]
        return self.chance.choice(options) if options else None

    def condition(self, depth):
        """A boolean."""
        c = self.chance
        form = c.random()
        if form < 0.06:  # numbers of different types
            a, b = self.operand(c.choice((*WHOLE, *REAL)), depth - 1), self.operand(c.choice((*WHOLE, *REAL)), depth - 1)
            return f"({a} {c.choice(('<', '<=', '>', '>=', '==', '!='))} {b})"
        if form < 0.45 or depth <= 0:
            kind = c.choice((INT, INT, FLOAT, FLOAT, LONG, WORD, DOUBLE))
            a, b = self.pair(kind, depth - 1)
            return f"({a} {c.choice(('<', '<=', '>', '>=', '==', '!='))} {b})"
        if form < 0.6:
            kind = c.choice((INT, FLOAT))
            a, b = self.pair(kind, depth - 1)
            middle = self.operand(kind, depth)
            return f"({a} {self.pick('<', '<=', '>')} {middle} {self.pick('<', '>=', '!=')} {b})"
        if form < 0.8:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return f"({a} {self.pick('and', 'or')} {b})"
        if form < 0.88:
            return f"(not {self.condition(depth - 1)})"
        if form < 0.94 and self.names(BOOL):
            return c.choice(self.names(BOOL))
        kind = c.choice((VEC, TRIPLE))
        return f"({self.operand(kind, depth - 1)} {self.pick('==', '!=')} {self.operand(kind, depth - 1)})"

    def call(self, function, depth):
        """A call of a function of the program, the last arguments by name at times."""
        given = [self.expression(kind, depth - 2) for kind in function.parameters.values()]
        names = list(function.parameters)
        if self.chance.random() < 0.2:
            given[-1] = f"{names[-1]}={given[-1]}"
        return f"{function.name}({', '.join(given)})"


def is_literal(text):
    """Whether an expression is a bare literal, or K."""
    bare = text.strip("()-~+")
    return text in ("K", "True", "False", "(not K)") or bare.replace(".", "", 1).replace("e", "", 1).isdigit()
