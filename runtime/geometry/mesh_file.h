// Triangle meshes from files and to files: OBJ, PLY and STL.
#pragma once
#include <string>

#include "mesh_data.h"

namespace weft {

/// Reads a mesh; the ending of the path, in upper or lower case, says how: .obj, .ply or .stl.
///
/// The points are those of the file, in its order, of OBJ and PLY; an STL file repeats the points of each triangle, and
/// equal ones become one. Polygons are cut into triangles: of OBJ any that do not meet themselves, of PLY convex ones.
/// Everything else in a file (normals, colours, textures, groups) is passed over. PLY may be text or binary of either
/// byte order, STL text or binary. Triangles without area are kept, and so are points that none uses.
/// Errors: Error(invalid_argument) for another ending. Error(io), which names the file and the reason, when it cannot
/// be read, is damaged, has coordinates that are not finite numbers of float32, faces with points that are not there,
/// or no triangle at all. Cost: about the size of the file in memory, besides the mesh.
MeshData load_mesh(const std::string& path);

/// Writes a mesh so that load_mesh() reads the same points and indices (of STL: the same triangles). .obj is text, .ply
/// and .stl are binary. A file of that name is replaced, and folders are made that are not there.
/// Errors: Error(invalid_argument) for another ending, for indices that are not three for each triangle or that lie out
/// of range, and for coordinates that are not finite; Error(io) when the file cannot be written.
void save_mesh(const std::string& path, const MeshData& mesh);

}  // namespace weft
