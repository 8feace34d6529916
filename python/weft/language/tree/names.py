"""Which names of a function are variables that the trace must store, and which are merely names for values.

A name is *plain* if one stretch of straight code gives it its values and everything that reads it stands inside that
stretch: then reading it is the value itself, as in straight-line C++. All other names become locals of the IR.
"""

import ast

from ..errors import CodegenError

LOOPS = (ast.For, ast.While)


class NameUse:
    """Where a name is stored and read: pairs of a block (a path from the function's body) and a position."""

    __slots__ = ("loads", "plain_", "stores")

    def __init__(self):
        self.stores = []
        self.loads = []
        self.plain_ = None

    @property
    def is_plain(self):
        """See above. Asked once the function was walked."""
        if self.plain_ is None:
            self.plain_ = self.find_plain()
        return self.plain_

    def find_plain(self):
        """Decides is_plain."""
        path = self.stores[0][0]
        if any(p != path for p, _ in self.stores):
            return False
        if any(p[: len(path)] != path for p, _ in self.loads):
            return False
        if not any(is_loop for _, is_loop in path):
            return True
        first = min(k for _, k in self.stores)
        return all(k >= first for _, k in self.loads)  # an earlier read sees the iteration before


class NameScan(ast.NodeVisitor):
    """Walks a function in the order in which it runs."""

    def __init__(self, arguments, body, find=None):
        self.find = find  # the object of a name of Python
        self.uses = {}
        self.path = ()
        self.position = 0
        self.blocks = 0
        for name in arguments:
            self.store(name)
        for statement in body:
            self.visit(statement)

    def at(self):
        self.position += 1
        return self.path, self.position

    def store(self, name):
        self.uses.setdefault(name, NameUse()).stores.append(self.at())

    def load(self, name):
        self.uses.setdefault(name, NameUse()).loads.append(self.at())

    def inside(self, statements, is_loop=False):
        """Visits a block of its own."""
        before = self.path
        self.blocks += 1
        self.path = (*before, (self.blocks, is_loop))
        for statement in statements:
            self.visit(statement)
        self.path = before

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load):
            self.load(node.id)
        else:
            self.store(node.id)

    def part(self, node):
        """An assignment to a part of what a name holds reads and stores the name."""
        base = node
        while isinstance(base, (ast.Subscript, ast.Attribute)):
            if isinstance(base, ast.Subscript):
                self.visit(base.slice)
            base = base.value
        if isinstance(base, ast.Name):
            self.load(base.id)
            self.store(base.id)
        else:
            self.visit(base)

    def target(self, node):
        if isinstance(node, (ast.Tuple, ast.List)):
            for element in node.elts:
                self.target(element)
        elif isinstance(node, (ast.Subscript, ast.Attribute)):
            self.part(node)
        else:
            self.visit(node)

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self.target(target)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)
            self.target(node.target)

    def visit_AugAssign(self, node):
        if isinstance(node.target, ast.Name):
            self.load(node.target.id)
        self.visit(node.value)
        self.target(node.target)

    def visit_Call(self, node):
        self.generic_visit(node)
        # Functions of the library may write to variables that they are given, and states of random numbers advance.
        for argument in node.args:
            if isinstance(argument, ast.Name) and writes_arguments(node.func):
                self.store(argument.id)
        if self.find is not None:
            nodes = [*node.args, *(keyword.value for keyword in node.keywords)]
            for name in names_written(node.func, nodes, self.find):
                if name in self.uses:
                    self.store(name)

    def visit_For(self, node):
        self.visit(node.iter)
        self.inside([node.target, *node.body], True)
        self.inside(node.orelse)

    def visit_While(self, node):
        self.inside([node.test, *node.body], True)
        self.inside(node.orelse)

    def visit_If(self, node):
        self.visit(node.test)
        self.inside(node.body)
        self.inside(node.orelse)


# The functions of the library that assign to variables of their caller.
WRITERS = {
    "randi", "randf", "randn", "randu", "poisson", "sample_cdf", "sample_triangle", "sample_unit_ring",
    "sample_unit_disk", "sample_unit_sphere_surface", "sample_unit_sphere", "sample_unit_hemisphere_surface",
    "sample_unit_hemisphere", "sample_unit_square", "sample_unit_cube", "sample_unit_hypercube", "svd3", "svd2", "qr3",
    "eig3", "quat_to_axis_angle", "mesh_query_point", "mesh_query_ray", "mesh_query_point_no_sign",
    "mesh_query_point_sign_normal", "mesh_query_point_sign_parity", "mesh_query_point_sign_winding_number",
    "mesh_query_furthest_point_no_sign", "mesh_query_next", "mesh_query_aabb_next", "bvh_query_next",
    "hash_grid_query_next", "volume_sample_grad", "volume_sample_grad_f", "volume_sample_grad_index",
    "volume_segments_next", "transform_set_translation", "transform_set_rotation",
}  # fmt: skip


def writes_arguments(function):
    """Whether a call names one of WRITERS."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    return name in WRITERS


def names_written(function, nodes, find):
    r"""The names of arguments that a call may assign to.

    \param function  the node of what is called
    \param nodes  the nodes of the arguments
    \param find  gives the object of a name of Python, or raises KeyError
    """
    if not takes_references(function, find):
        return []
    names = []
    for node in nodes:
        while isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        if isinstance(node, ast.Name):
            names.append(node.id)
    return names


def takes_references(function, find):
    """Whether a function that a call names has reference parameters; of one that only a run tells: True."""
    try:
        called = object_of(function, find)
        return any(overload.has_references for overload in getattr(called, "overloads", None) or ())
    except (KeyError, AttributeError):
        return isinstance(function, ast.Name)  # a name of the function itself, such as a parameter
    except (CodegenError, NameError):
        return False  # the call says what is wrong with its annotations


def object_of(node, find):
    """The object that a chain of names means. Errors: KeyError and AttributeError for none."""
    if isinstance(node, ast.Name):
        return find(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(object_of(node.value, find), node.attr)
    raise KeyError("not a name")


def private_arrays(arguments, body, uses):
    """The arrays of a kernel of which each thread uses only the element of its own coordinates.

    Sums with such elements need no atomic operations: every mention of the array is ``a[i, j]`` with all coordinates of
    one ``i, j = wp.tid()`` in one order, or a property such as ``a.shape``.
    """
    threads = set()
    for statement in body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and is_tid(statement.value):
            target = statement.targets[0]
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            if all(isinstance(n, ast.Name) and len(uses[n.id].stores) == 1 for n in names):
                threads.add(tuple(n.id for n in names))
    keys = {name: set() for name in arguments}
    seen = dict.fromkeys(arguments, 0)
    for node in (n for statement in body for n in ast.walk(statement)):
        if isinstance(node, ast.Name) and node.id in seen:
            seen[node.id] += 1
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.value, ast.Name):
            name = node.value.id
            if name in seen:
                seen[name] -= 1
                keys[name].add(index_names(node.slice) if isinstance(node, ast.Subscript) else None)
    private = set()
    for name in arguments:
        used = keys[name] - {None}
        if seen[name] == 0 and len(used) == 1 and tuple(sorted(next(iter(used)))) in {tuple(sorted(t)) for t in threads}:
            private.add(name)
    return private


def calls_static(node):
    """Whether a node is a call of static()."""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", None)) == "static"


def is_tid(node):
    """Whether an expression is a call of tid()."""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", None)) == "tid"


def index_names(node):
    """The names of an index that consists of names; else what no thread has."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return tuple(p.id for p in parts) if all(isinstance(p, ast.Name) for p in parts) else ("",)


def stored_in(loop):
    """The names that a loop's body stores, at any depth. Found once, although the body may be emitted many times."""
    found = getattr(loop, "stored_names", None)
    if found is None:
        scan = NameScan((), loop.body)
        found = loop.stored_names = {name for name, use in scan.uses.items() if use.stores}
    return found


def contains(statements, kinds, enter_loops=True):
    """Whether a statement of one of `kinds` stands among `statements`, at any depth; without loops' bodies if asked."""
    for statement in statements:
        if isinstance(statement, kinds):
            return True
        if not enter_loops and isinstance(statement, LOOPS):
            continue
        for block in ("body", "orelse"):
            if contains(getattr(statement, block, ()), kinds, enter_loops):
                return True
    return False


def ends(statements):
    """Whether every way through the statements ends in a return."""
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.Return):
        return True
    return isinstance(last, ast.If) and ends(last.body) and ends(last.orelse)


def is_structured(statements):
    """Whether each return of a function ends one of the branches of an if at the function's end, so that the branches
    can be made to exclude each other, without a flag that says that the function has returned.
    """
    for k, statement in enumerate(statements):
        if isinstance(statement, LOOPS) and contains([statement], (ast.Return,)):
            return False
        if isinstance(statement, ast.If) and contains([statement], (ast.Return,)):
            rest = statements[k + 1 :]
            if not rest:
                return is_structured(statement.body) and is_structured(statement.orelse)
            if ends(statement.body):
                return is_structured(statement.body) and is_structured(statement.orelse + rest)
            if ends(statement.orelse):
                return is_structured(statement.body + rest) and is_structured(statement.orelse)
            return False
    return True
