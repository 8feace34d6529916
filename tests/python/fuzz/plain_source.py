"""The source of a kernel changed so that plain Python computes what the kernel means.

Python itself decides about names, branches, loops and returns, so that nothing of the package's own reading of a kernel
is used: only literals, copies and references are said as the kernel language has them.
"""

import ast


class Changed(ast.NodeTransformer):
    """The source with literals that are numbers of kernels, and with assignments that copy."""

    PLACE = {"lineno": 1, "col_offset": 0}

    def called(self, function, *arguments):
        function = ast.Name(function, ast.Load(), **self.PLACE) if isinstance(function, str) else function
        return ast.Call(function, list(arguments), [], **self.PLACE)

    def visit_Constant(self, node):
        if type(node.value) in (int, float):
            kind = "int32" if type(node.value) is int else "float32"
            return self.called("literal_", ast.Constant(kind, **self.PLACE), node)
        return node

    def visit_Assign(self, node):
        """A copy; a call of `moved` gives its variables' new values too, as Python has no references."""
        called = node.value
        self.generic_visit(node)
        if isinstance(called, ast.Call) and getattr(called.func, "id", None) == "moved":
            parts = [ast.parse(ast.unparse(n), mode="eval").body for n in called.args[:2]]
            for part in parts:
                part.ctx = ast.Store()
            names = self.visit(ast.Tuple(parts, ast.Store(), **self.PLACE))
            names.elts.append(node.targets[0])
            node.targets = [names]
        node.value = self.called("fixed_", node.value)
        return node

    def visit_Return(self, node):
        self.generic_visit(node)
        if node.value is not None:
            node.value = self.called("fixed_", node.value)
        return node

    def visit_IfExp(self, node):
        self.generic_visit(node)
        return self.called("fixed_", node)

    def visit_AnnAssign(self, node):
        if node.value is not None:  # no field of a struct
            node.value = self.called(node.annotation, self.visit(node.value))
        return node
