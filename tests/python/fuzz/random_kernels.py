"""Random kernels as Python source: every name has one type, every index is in range, and every loop ends.

What they compute is exact: functions of which only the neighbourhood of the result is said (sin, exp, ...) go into an
array of their own that nothing reads.
"""

import re

from random_expressions import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    HEAD,
    INT,
    LONG,
    MATRIX,
    REAL,
    STRUCT,
    TRIPLE,
    TYPES,
    VEC,
    WHOLE,
    WIDTH,
    WORD,
    Expressions,
)

SIGNATURE = """a: wp.array(dtype=int), b: wp.array2d(dtype=int), x: wp.array(dtype=float), y: wp.array2d(dtype=float),
      p: wp.array(dtype=wp.vec3), oi: wp.array2d(dtype=int), of: wp.array2d(dtype=float), ov: wp.array2d(dtype=wp.vec3),
      near: wp.array2d(dtype=float), total: wp.array(dtype=int), n: int, s: float"""


class Function:
    """A function of the program that was written so far."""

    def __init__(self, name, parameters, results):
        self.name = name
        self.parameters = parameters
        self.results = results


class Writer(Expressions):
    """Writes one source: some functions, and the kernel `k`."""

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
        many += [self.store] * (5 * self.in_kernel) + [self.move]
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

    def move(self):
        """A call that assigns to variables of its caller, or to parts of them."""
        whole = [n for n in self.names(INT) if n[0] == INT] + [f"{n}.i" for n in self.names(STRUCT) if n[0] == STRUCT]
        real = [n for n in self.names(FLOAT) if n[0] == FLOAT] + [f"{n}.f" for n in self.names(STRUCT) if n[0] == STRUCT]
        real += [f"{n}[{self.chance.randint(-3, 2)}]" for n in self.names(VEC) if n[0] == VEC]
        if not whole or not real:
            return self.assign()
        name = self.new(INT)
        value = self.operand(INT, 1)
        self.line(f"{name} = moved({self.chance.choice(whole)}, {self.chance.choice(real)}, {value})")
        self.scope[name] = INT
        return None

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
        counter, most = self.new("q"), self.chance.randint(1, 6)
        self.line(f"{counter} = 0")
        self.scope[counter] = INT
        endless = self.chance.random() < 0.3
        self.line("while True:" if endless else f"while {counter} < {most} and {self.condition(2)}:")

        def begin():
            if endless:
                self.line(f"if {counter} >= {most} or {self.condition(1)}:")
                self.line("    break")
            self.line(f"{counter} += 1")

        before, self.loops = self.loops, 1
        self.block(self.chance.randint(1, 3), begin)
        self.loops = before

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
