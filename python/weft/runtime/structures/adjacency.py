"""Which triangles of a mesh share an edge."""

import sys


class MeshEdge:
    """An edge from vertex v0 to v1 with the triangles beside it: f0, whose third vertex is o0, and f1 with o1, on whose other
    side it runs from v1 to v0. -1 stands for no triangle.
    """

    def __init__(self, v0, v1, o0, o1, f0, f1):
        self.v0 = v0
        self.v1 = v1
        self.o0 = o0
        self.o1 = o1
        self.f0 = f0
        self.f1 = f1


class MeshAdjacency:
    """The edges of a mesh: `edges` is a dict of the vertices of each, the lesser first, to a MeshEdge. `indices` are the three
    vertices of each triangle. A third triangle at an edge is left out, and a line is printed.
    """

    def __init__(self, indices, num_tris):
        self.edges = {}
        self.indices = indices
        for face, (a, b, c) in enumerate(indices):
            self.add_edge(a, b, c, face)
            self.add_edge(b, c, a, face)
            self.add_edge(c, a, b, face)

    def add_edge(self, i0, i1, o, f):
        """Adds a triangle's edge from vertex i0 to i1, whose third vertex is o."""
        key = (min(i0, i1), max(i0, i1))
        edge = self.edges.get(key)
        if edge is None:
            self.edges[key] = MeshEdge(i0, i1, o, -1, f, -1)
        elif edge.f1 == -1:
            edge.o1, edge.f1 = o, f
        else:
            sys.stdout.write("Detected non-manifold edge\n")
