"""Random kernels as Python source: every name has one type, every index is in range, and every loop ends.

What they compute is exact: functions of which only the neighbourhood of the result is said (sin, exp, ...) go into an
array of their own that nothing reads.
"""

import random
import re

WIDTH = 6
"""The elements of each thread's own row of the outputs."""

SIGNATURE = """a: wp.array(dtype=int), b: wp.array2d(dtype=int), x: wp.array(dtype=float), y: wp.array2d(dtype=float),
      p: wp.array(dtype=wp.vec3), oi: wp.array2d(dtype=int), of: wp.array2d(dtype=float), ov: wp.array2d(dtype=wp.vec3),
      near: wp.array2d(dtype=float), total: wp.array(dtype=int), n: int, s: float"""

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
"""


class Function:
    """A function of the program that was written so far."""

    def __init__(self, name, parameters, results):
        self.name = name
        self.parameters = parameters
        self.results = results


class Writer:
    """Writes one source: some functions, and the kernel `k`."""

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
        self.two = self.chance.random() < 0.3

    # Expressions

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

    # Statements

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def new(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    def block(self, size, body=None):
        """A block of its own, whose names end with it."""
        before = dict(self.scope)
        self.depth += 1
        start = len(self.lines)
        if body is not None:
            body()
        self.statements(size)
        if len(self.lines) == start:
            self.line("pass")
        self.depth -= 1
        self.scope = before

    def statements(self, size):
        for _ in range(size):
            self.chance.choice(self.forms())()

    def forms(self):
        """The kinds of statements, by how often they come."""
        many = [self.assign] * 5 + [self.augment] * 3 + [self.part] * 2 + [self.unpack]
        many += [self.store] * (5 * self.in_kernel)
        if self.depth < 4:
            many += [self.branch] * 3 + [self.leave]
            many += [self.count_loop, self.count_loop, self.while_loop, self.tuple_loop]
        return many

    def assign(self):
        c = self.chance
        kind = c.choice((INT, INT, INT, FLOAT, FLOAT, FLOAT, BOOL, VEC, LONG, WORD, BYTE, DOUBLE, TRIPLE, MATRIX, STRUCT))
        value = self.expression(kind)
        known = [n for n in self.names(kind) if n[0] == kind]
        name = c.choice(known) if known and c.random() < 0.5 else self.new(kind)
        if kind in (INT, FLOAT) and c.random() < 0.1 and name not in self.scope:
            name, value = f"{name}: {TYPES[kind]}", value
        names = [name]
        if c.random() < 0.1 and ":" not in name and kind in (*WHOLE, *REAL, BOOL):
            names.append(self.new(kind))
        self.line(f"{' = '.join(names)} = {value}")
        self.scope.update((n.partition(":")[0], kind) for n in names)

    def augment(self):
        kind = self.pick(INT, INT, FLOAT, LONG, WORD, DOUBLE)
        known = [n for n in self.names(kind) if n[0] == kind]
        if not known:
            return self.assign()
        ops = ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>") if kind in WHOLE else ("+", "-", "*", "/")
        return self.line(f"{self.chance.choice(known)} {self.chance.choice(ops)}= {self.expression(kind, 2)}")

    def part(self):
        """An assignment to a component."""
        kind = self.pick(VEC, VEC, TRIPLE, MATRIX, STRUCT)
        known = [n for n in self.names(kind) if n[0] == kind]
        if not known:
            return self.assign()
        if kind in (MATRIX, STRUCT):
            return self.field(self.chance.choice(known), kind)
        name, number = self.chance.choice(known), FLOAT if kind == VEC else INT
        return self.line(f"{name}[{self.index('3')}] {self.pick('', '+', '-', '*')}= {self.operand(number, 2)}")

    def field(self, name, kind):
        """An assignment to a field of a struct, or to an element or row of a matrix."""
        one = self.index("3")
        if kind == MATRIX:
            place, part = self.pick((f"[{one}, {self.index('3')}]", FLOAT), (f"[{one}]", VEC))
        else:
            place, part = self.pick((".i", INT), (".f", FLOAT), (".v", VEC), (f".v[{one}]", FLOAT))
        op = self.pick("", "", "+", "-")
        return self.line(f"{name}{place} {op}= {self.operand(part, 2)}")

    def unpack(self):
        """Several names at once."""
        c = self.chance
        several = [f for f in self.functions if len(f.results) > 1]
        if several and c.random() < 0.5:
            f = c.choice(several)
            names = [self.new(kind) for kind in f.results]
            self.line(f"{', '.join(names)} = {self.call(f, 3)}")
            self.scope.update(zip(names, f.results))
            return
        kind = c.choice((INT, FLOAT, VEC, STRUCT, MATRIX))
        known = [n for n in self.names(kind) if n[0] == kind]
        if len(known) > 1:
            one, other = c.sample(known, 2)
            self.line(f"{one}, {other} = {other}, {self.pick(one, self.expression(kind, 2))}")
        elif self.names(VEC):
            names = [self.new(FLOAT) for _ in range(3)]
            self.line(f"{', '.join(names)} = {c.choice(self.names(VEC))}")
            self.scope.update((n, FLOAT) for n in names)

    def store(self):
        """An output."""
        c = self.chance
        form = c.random()
        key = self.index(str(WIDTH))
        if form < 0.35:
            self.line(f"oi[row, {key}] {self.pick('', '', '+', '-', '*', '^')}= {self.expression(INT)}")
        elif form < 0.65:
            self.line(f"of[row, {key}] {self.pick('', '', '+', '-', '*')}= {self.expression(FLOAT)}")
        elif form < 0.75:
            self.line(f"ov[row, {key}] = {self.expression(VEC)}")
        elif form < 0.8:
            self.line(f"ov[row, {key}][{self.index('3')}] = {self.expression(FLOAT)}")
        elif form < 0.88:
            name = self.pick("sin", "cos", "exp", "tanh", "log", "length", "atan2")
            given = f"wp.clamp({self.operand(FLOAT, 2)}, -20.0, 20.0)"
            given = self.operand(VEC, 2) if name == "length" else given
            given += f", wp.clamp({self.operand(FLOAT, 2)}, 0.5, 20.0)" if name == "atan2" else ""
            self.line(f"near[row, {key}] = wp.{name}({given})")
        elif form < 0.91:
            self.line(f"{self.new('z')} = swapped(oi, row, {key}, {self.index(str(WIDTH))})")
        elif form < 0.95:
            self.line(f"total[{self.index('5')}] += {self.expression(INT)}")
        else:
            low, high = sorted(c.sample(range(8), 2))
            part = self.new("z")
            self.line(f"{part} = a[{low}:{high}:{c.choice((1, 1, 2))}]")
            self.line(f"oi[row, {key}] = {part}[-1] + {part}[0] + len({part})")

    def branch(self):
        c = self.chance
        self.line(f"if {self.test()}:")
        self.block(c.randint(1, 3))
        while c.random() < 0.25:
            self.line(f"elif {self.test()}:")
            self.block(c.randint(1, 2))
        if c.random() < 0.6:
            self.line("else:")
            self.block(c.randint(1, 3))

    def test(self):
        """The condition of an if; at times one that is known while tracing, or a number."""
        form = self.chance.random()
        if form < 0.06:
            return self.pick("K > 2", "wp.static(K < 2)", "True", "not K")
        if form < 0.16:
            return self.operand(self.pick(INT, FLOAT), 2)
        return self.condition(2)

    def both_branches(self):
        """A name that each branch of an if assigns, and that is read after it."""
        kind = self.pick(INT, FLOAT, VEC)
        name = self.new(kind)
        self.line(f"if {self.test()}:")
        self.block(self.pick(0, 1), lambda: self.line(f"{name} = {self.operand(kind, 2)}"))
        self.line("else:")
        self.block(self.pick(0, 1), lambda: self.line(f"{name} = {self.operand(kind, 2)}"))
        self.scope[name] = kind

    def leave(self):
        """A way out: a return, or break and continue in a loop."""
        form = self.chance.random()
        if form < 0.35:
            return self.both_branches()
        self.line(f"if {self.condition(2)}:")
        self.depth += 1
        if self.loops and form < 0.75:
            self.line(self.pick("break", "continue"))
        else:
            self.give()
        self.depth -= 1
        return None

    def give(self):
        """A return."""
        if self.in_kernel:
            self.line("return")
        else:
            self.line("return " + ", ".join(self.operand(kind, 2) for kind in self.results))

    def looped(self, breaks=True):
        """The body of a loop."""
        before, self.loops = self.loops, 1 if breaks else 0
        self.block(self.chance.randint(1, 3))
        self.loops = before

    def count_loop(self):
        """A loop over a range, known while tracing or not."""
        c = self.chance
        name = self.new(INT if c.random() < 0.15 else "q")  # one that the body may change, or only reads
        known = [n for n in self.names(INT) if n[0] == INT]
        before = bool(known) and c.random() < 0.2
        name = c.choice(known) if before else name
        small = f"{self.operand(INT, 1)} % {c.randint(2, 6)}"
        bounds = c.choice((
            str(c.randint(0, 4)), f"{c.randint(-2, 2)}, {c.randint(0, 5)}", f"{c.randint(2, 6)}, -2, -{c.randint(1, 3)}",
            small, f"{small}, {c.randint(1, 8)}", f"{c.randint(3, 7)}, {small}, -2", f"{small}, 9, {c.randint(1, 3)}",
        ))  # fmt: skip
        over = f"reversed(range({bounds}))" if c.random() < 0.15 else f"range({bounds})"
        self.line(f"for {name} in {over}:")
        self.scope[name] = INT
        self.looped()
        if not before and not re.search(r"range\([1-4]\)", over):
            del self.scope[name]  # it may have had no value

    def tuple_loop(self):
        """A loop over a tuple, which is unrolled."""
        name = self.new("z")
        kind = self.pick(INT, FLOAT)
        items = ", ".join(self.operand(kind, 1) for _ in range(self.chance.randint(2, 3)))
        self.line(f"for {name} in ({items}):")
        self.scope[name] = kind
        self.looped(breaks=False)
        del self.scope[name]

    def while_loop(self):
        """A loop with a condition, whose rounds are counted."""
        counter = self.new("q")
        self.line(f"{counter} = 0")
        self.scope[counter] = INT
        self.line(f"while {counter} < {self.chance.randint(1, 6)} and {self.condition(2)}:")
        before, self.loops = self.loops, 1
        self.block(self.chance.randint(1, 3), lambda: self.line(f"{counter} += 1"))
        self.loops = before

    # Sources

    def function(self):
        """A function with one or more results, which it returns from several places."""
        c = self.chance
        kinds = [c.choice((INT, FLOAT, FLOAT, VEC, BOOL, LONG, DOUBLE, STRUCT, MATRIX)) for _ in range(c.randint(1, 3))]
        parameters = {f"{kind}{k}": kind for k, kind in enumerate(kinds)}
        self.results = [c.choice((INT, FLOAT, VEC, BOOL, LONG, STRUCT, MATRIX)) for _ in range(self.pick(1, 1, 2))]
        name = f"g{len(self.functions)}"
        self.scope, self.count = dict(parameters), 10
        self.line("@wp.func")
        self.line(f"def {name}({', '.join(f'{n}: {TYPES[k]}' for n, k in parameters.items())}):")
        self.depth = 1
        self.statements(c.randint(1, 3))
        self.give()
        self.depth = 0
        self.functions.append(Function(name, parameters, self.results))

    def source(self):
        """The text of the kernel and its functions."""
        for _ in range(self.chance.choice((0, 1, 1, 2, 3))):
            self.function()
        self.in_kernel, self.count = True, 100
        self.line(f"def k({SIGNATURE}):")
        self.depth = 1
        if self.two:
            self.line("r, c = wp.tid()")
            self.line("row = r * 2 + c")
        else:
            self.line("row = wp.tid()")
        self.scope = {"row": INT, "n": INT, "s": FLOAT}
        self.statements(self.chance.randint(2, 7))
        for kind, array in ((INT, "oi"), (FLOAT, "of"), (VEC, "ov")):
            self.line(f"{array}[row, 0] = {self.expression(kind)}")
        return HEAD + "\n".join(self.lines) + "\n"


def is_literal(text):
    """Whether an expression is a bare literal, or K."""
    bare = text.strip("()-~+")
    return text in ("K", "True", "False", "(not K)") or bare.replace(".", "", 1).replace("e", "", 1).isdigit()
