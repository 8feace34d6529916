// Triangle meshes: read from files or generated, ready to become a body.
#pragma once
#include <weft/weft.h>

#include <string>
#include <vector>

/// Triangles over shared vertices: no two vertices are equal, each belongs to a triangle, and no triangle repeats one.
struct BodyMesh {
  std::vector<weft::vec3> positions;
  std::vector<weft::vec3i> triangles;  ///< counter-clockwise seen from outside
};

/// Several items for each of n owners, in one list: those of owner i are item[first[i]] up to item[first[i + 1]].
struct Adjacency {
  std::vector<int> first;
  std::vector<int> item;
};

/// Reads an OBJ, PLY or STL file (weft::load_mesh) and merges equal vertices.
/// Errors: std::runtime_error naming the file and the reason: unreadable, damaged, without triangles, too large.
BodyMesh read_mesh(const std::string& path);

/// A tube along the knot that winds 2 times around the vertical axis and 3 times around a ring of radius 1:
/// `rings` rings, of 2 vertices for each 25 of them but at least 5.
BodyMesh torus_knot(int rings = 500);

/// Scales a mesh so that its longest side is `size` and moves it: its lowest point to height `lowest`, its centre
/// above (x, z).
void place(BodyMesh& mesh, float size, float lowest, float x, float z);

/// The triangles to which each vertex belongs.
Adjacency triangles_of_vertices(const BodyMesh& mesh);
