// Mesh files: a mesh is read as it was written; polygons; damage of every kind; and random bytes.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <weft/runtime/geometry/mesh_file.h>
#include <weft/runtime/geometry/mesh_shapes.h>
#include <weft/weft.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "../../../frontend/support/platform.h"

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif
#ifndef _WIN32
#include <sys/stat.h>
#endif

using namespace weft;

namespace {

/// A test with a folder of its own.
class MeshFile : public testing::Test {
 protected:
  MeshFile() {
    folder_ = std::filesystem::temp_directory_path() / ("weft-mesh-file-" + std::to_string(platform::process_id()));
    std::filesystem::create_directories(folder_);
  }
  ~MeshFile() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ostringstream content;
    content << std::ifstream(path(name), std::ios::binary).rdbuf();
    return content.str();
  }
  /// Loads a file with this content. \return  the message of the error, which must name the file
  std::string refusal(const std::string& name, const std::string& content, ErrorKind kind = ErrorKind::io) const {
    const std::string file = write(name, content);
    try {
      load_mesh(file);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind);
      EXPECT_NE(std::string(e.what()).find(file), std::string::npos) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "accepted:\n" << content;
    return {};
  }
  void expect_refused(const std::string& name, const std::string& content, const std::string& part) const {
    const std::string message = refusal(name, content);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  /// Expects an error for a file, whether it exists or not.
  void expect_unreadable(const std::string& name, const std::string& part) const {
    try {
      load_mesh(path(name));
      ADD_FAILURE() << name << " was read";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::io);
      EXPECT_NE(std::string(e.what()).find(path(name) + ": " + part), std::string::npos) << e.what();
    }
  }

 private:
  std::filesystem::path folder_;
};

std::vector<vec3> corners(const MeshData& m) {
  std::vector<vec3> all;
  for (int i : m.indices) all.push_back(m.points.at(std::size_t(i)));
  return all;
}

/// A cube of quads, its corners numbered x + 2 y + 4 z.
constexpr int kQuads[6][4] = {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};

double volume(const MeshData& m) {
  double sum = 0;
  for (std::size_t t = 0; t < m.indices.size(); t += 3) {
    auto p = [&](std::size_t k) { return m.points.at(std::size_t(m.indices[t + k])); };
    sum += double(dot(p(0), cross(p(1), p(2)))) / 6;
  }
  return sum;
}
void expect_cube(const MeshData& m) {
  EXPECT_EQ(m.points.size(), 8u);
  EXPECT_EQ(m.indices.size(), 36u);
  EXPECT_NEAR(volume(m), 1, 1e-6);
}

TEST_F(MeshFile, gives_back_what_was_saved) {
  for (const MeshData& mesh : {shapes::torus(1, 0.3f, 12, 7), shapes::icosphere(1e-20f, 1), shapes::random_soup(50)}) {
    for (const char* name : {"mesh.obj", "mesh.ply", "mesh.PLY"}) {
      save_mesh(path(name), mesh);
      const MeshData back = load_mesh(path(name));
      EXPECT_EQ(back.points, mesh.points) << name;
      EXPECT_EQ(back.indices, mesh.indices) << name;
    }
    save_mesh(path("mesh.stl"), mesh);
    const MeshData back = load_mesh(path("mesh.stl"));
    EXPECT_EQ(back.points.size(), mesh.points.size());
    EXPECT_EQ(corners(back), corners(mesh));
  }
  // A longer file of the same name is replaced.
  save_mesh(path("mesh.obj"), shapes::box());
  expect_cube(load_mesh(path("mesh.obj")));
}

TEST_F(MeshFile, of_obj_takes_polygons_and_all_forms_of_indices) {
  std::string text = "# a cube\nmtllib missing.mtl\no cube\n";
  for (int i = 0; i < 8; ++i) text += fmt::format("v {} {} {}\n", i & 1, i >> 1 & 1, i >> 2);
  text += "vt 0 0\nvn 0 0 1\ng sides\nusemtl none\ns off\n";
  const std::string points = text;
  for (const auto& q : kQuads) text += fmt::format("f {}/1/1 {}//1 {}/1 {}\n", q[0] + 1, q[1] + 1, q[2] + 1, q[3] + 1);
  expect_cube(load_mesh(write("cube.obj", text)));
  text = points;
  for (const auto& q : kQuads) text += fmt::format("f {} {} {} {}\r\n", q[0] - 8, q[1] - 8, q[2] - 8, q[3] - 8);
  expect_cube(load_mesh(write("relative.obj", text)));
  // This polygon is not convex.
  const MeshData arrow = load_mesh(write("arrow.obj", "v 0 0 0\nv 2 1 0\nv 0 2 0\nv 1 1 0\nf 1 2 3 4\n"));
  double area = 0;
  const std::vector<vec3> c = corners(arrow);
  for (std::size_t t = 0; t < c.size(); t += 3) area += double(cross(c[t + 1] - c[t], c[t + 2] - c[t]).z) / 2;
  EXPECT_NEAR(area, 1, 1e-6);
}

std::string swapped(std::string bytes) { return {bytes.rbegin(), bytes.rend()}; }
template <class T>
std::string bytes_of(T x, bool big_endian) {
  std::string bytes(sizeof x, 0);
  std::memcpy(bytes.data(), &x, sizeof x);
  return big_endian ? swapped(bytes) : bytes;
}

TEST_F(MeshFile, of_obj_takes_comments_behind_faces_and_lines_that_go_on) {
  const std::string triangle = "v 0 0 0\nv 1 0 0\nv 0 1 0\n";
  const std::vector<int> indices{0, 1, 2};
  for (const char* face : {"f 1 2 3 # c\n", "f 1 2 3# 4", "f 1 2 \\\n 3\n", "f 1 \\\r\n2 \\\r\n3\r\n", "f 1 2 3 \\",
                           "# not a line that goes on \\\nf 1 2 3\n", "f 1 2 3 # \\\nv 1 1 1\n"})
    EXPECT_EQ(load_mesh(write("a.obj", triangle + face)).indices, indices) << face;
  const MeshData mesh = load_mesh(write("a.obj", "v 0 \\\n0 1 # first\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"));
  EXPECT_EQ(mesh.points.size(), 3u);
  EXPECT_EQ(mesh.points[0], (vec3{0, 0, 1}));
  expect_refused("a.obj", triangle + "f 1 \\\n 2 \\\n 3\nf 1 2 9\n", "line 7: a face refers to vertex 9 of 3");
  expect_refused("a.obj", triangle + "f 1 \\\n 2 \\\n 9\n", "line 4: a face refers to vertex 9 of 3");
}

TEST_F(MeshFile, of_text_may_begin_with_a_byte_order_mark) {
  const std::string mark = "\xef\xbb\xbf";
  const std::string header =
      "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
      "element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0 1 0 0 0 1 0 3 0 1 2\n";
  const std::string files[][2] = {
      {"a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"},
      {"a.ply", header},
      {"a.stl", "solid\nfacet\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid\n"}};
  for (const auto& [name, content] : files) {
    const MeshData mesh = load_mesh(write(name, mark + content));
    EXPECT_EQ(mesh.points, (std::vector<vec3>{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}})) << name;
    EXPECT_EQ(mesh.indices, (std::vector<int>{0, 1, 2})) << name;
  }
}

TEST_F(MeshFile, of_ply_takes_every_encoding_and_passes_over_what_else_there_is) {
  const std::string properties =
      "comment made by hand\nobj_info nothing\nelement vertex 8\nproperty uchar red\nproperty double x\nproperty float "
      "y\n"
      "property list uchar short tags\nproperty short z\nelement edge 1\nproperty int a\n"
      "element face 6\nproperty list uint16 uint vertex_index\nproperty uchar flags\nelement rest 1\nproperty char "
      "c\nend_header\n";
  std::string text = "ply\r\nformat ascii 1.0\r\n" + properties;
  for (int i = 0; i < 8; ++i) text += fmt::format("255 {} {}.0 2 7 -7 {}e0\n", i & 1, i >> 1 & 1, i >> 2);
  text += "9\n";
  for (const auto& q : kQuads) text += fmt::format("4 {} {} {} {} 1\n", q[0], q[1], q[2], q[3]);
  expect_cube(load_mesh(write("cube.ply", text + "1")));
  for (bool big : {false, true}) {
    std::string binary = std::string("ply\nformat binary_") + (big ? "big" : "little") + "_endian 1.0\n" + properties;
    for (int i = 0; i < 8; ++i)
      binary += char(255) + bytes_of(double(i & 1), big) + bytes_of(float(i >> 1 & 1), big) + char(2) +
                bytes_of(std::int16_t(7), big) + bytes_of(std::int16_t(-7), big) + bytes_of(std::int16_t(i >> 2), big);
    binary += bytes_of(9, big);
    for (const auto& q : kQuads) {
      binary += bytes_of(std::uint16_t(4), big);
      for (int i : q) binary += bytes_of(i, big);
      binary += char(1);
    }
    expect_cube(load_mesh(write("cube.ply", binary + "c")));
    expect_refused("cut.ply", binary, "it ends early, at rest 0 of 1");
  }
}

TEST_F(MeshFile, of_stl_takes_text_and_merges_points) {
  std::string text = "solid a vertex of no loop\n";
  const MeshData box = shapes::box();
  for (std::size_t t = 0; t < box.indices.size(); t += 3) {
    text += " facet normal 0 0 0\n  outer loop\n";
    for (std::size_t k = 0; k < 3; ++k) {
      const vec3& p = box.points[std::size_t(box.indices[t + k])];
      text += fmt::format("   vertex {:e} {} {}\n", p.x, p.y, p.z);
    }
    text += "  endloop\n endfacet\n";
  }
  expect_cube(load_mesh(write("cube.stl", text + "endsolid a vertex of no loop\n")));
  expect_refused("cut.stl", text, "it ends early, after 12 triangles");
  // This binary file has a header that looks like text.
  save_mesh(path("binary.stl"), box);
  std::string binary = read("binary.stl");
  binary.replace(0, 6, "solid ");
  expect_cube(load_mesh(write("solid.stl", binary)));
  // Zeros of both signs are one place.
  const MeshData zero =
      load_mesh(write("zero.stl",
                      "solid\nloop\nvertex 0 0 0\nvertex 1 -0.0 0\nvertex -0 1 0\nendloop\nloop\nvertex -0 0 -0\n"
                      "vertex 1 0 0\nvertex 0 0 1\nendloop\nendsolid"));
  EXPECT_EQ(zero.points.size(), 4u);
}

TEST_F(MeshFile, names_the_file_and_what_is_wrong) {
  const std::string tetrahedron = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n";
  expect_refused("a.obj", tetrahedron, "the file has no triangles");
  expect_refused("a.obj", "", "empty");
  expect_refused("a.obj", tetrahedron + "f 1 2 3\nf 1 2 9\n", "line 6: a face refers to vertex 9 of 4");
  expect_refused("a.obj", tetrahedron + "f 1 2 3 9\n", "line 5: a face refers to vertex 9 of 4");
  expect_refused("a.obj", tetrahedron + "f 1 2 0\n", "damaged: line 5: a face refers to vertex 0; they count from 1");
  expect_refused("a.obj", tetrahedron + "f 1/1 2/1 0/1\n", "line 5: a face refers to vertex 0");
  expect_refused("a.obj", tetrahedron + "f -1 -4 -5\n",
                 "line 5: a face refers to vertex -5, and there are 4 before it");
  expect_refused("a.obj", tetrahedron + "f 1 2 x\n", "line 5: \"x\" in a face is no number of a vertex");
  expect_refused("a.obj", "v 0 0\nf 1 1 1\n", "line 1 is not a vertex with three numbers");
  expect_refused("a.obj", tetrahedron + "v 0 zero 0\nf 1 2 3\n", "line 5 is not a vertex");
  expect_refused("a.obj", "v nan 0 0\n" + tetrahedron + "f 1 2 3\n", "the coordinates of point 0 are not finite");
  for (const char* huge : {"1e39", "1e400", "-1e400"})
    expect_refused("a.obj", tetrahedron + "v 0 0 " + huge + "\nf 1 2 3\n", "the coordinates of point 4 are not finite");
  const std::string zeros(400, '0');
  for (const std::string& tiny : {std::string("1e-400"), std::string("-1e-400"), "0." + zeros + "1"})
    EXPECT_EQ(load_mesh(write("a.obj", tetrahedron + "v 0 0 " + tiny + "\nf 1 2 5\n")).points.back()[2], 0) << tiny;

  const std::string header =
      "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
      "element face 1\nproperty list uchar int vertex_indices\nend_header\n";
  const std::string points = "0 0 0 1 0 0 0 1 0\n";
  EXPECT_EQ(load_mesh(write("a.ply", header + points + "3 0 1 2")).indices, (std::vector<int>{0, 1, 2}));
  expect_refused("a.ply", "hello\n", "it is no PLY file");
  expect_refused("a.ply", "ply", "it is no PLY file");
  expect_refused("a.ply", "ply\nformat ascii 1.0\n", "its header does not end");
  expect_refused("a.ply", "ply\nformat binary_middle_endian 1.0\nend_header\n", "no format \"binary_middle_endian\"");
  expect_refused("a.ply", "ply\nend_header\n", "its header names no format");
  expect_refused("a.ply", "ply\nformat ascii 1.0\nproperty int x\nend_header\n", "a property of nothing");
  expect_refused("a.ply", "ply\nformat ascii 1.0\nelement vertex many\nend_header\n", "how many of \"vertex\"");
  expect_refused("a.ply", "ply\nformat ascii 1.0\nelement vertex -1\nend_header\n", "how many of \"vertex\"");
  expect_refused("a.ply", "ply\nformat ascii 1.0\nelement vertex 1\nproperty quad x\nend_header\n", "no type \"quad\"");
  expect_refused("a.ply", "ply\nformat ascii 1.0\nfurther\nend_header\n", "a line of \"further\"");
  expect_refused("a.ply", "ply\nformat ascii 1.0\nelement vertex 1\nproperty int x\nend_header\n1", "no x, y and z");
  expect_refused("a.ply", header + "0 0 0 1 0 0 0 1", "it ends early, at vertex 2 of 3");
  expect_refused("a.ply", header + points + "3 0 1", "it ends early, at face 0 of 1");
  expect_refused("a.ply", header + points + "3 0 1 3", "a face refers to vertex 3 of 3");
  expect_refused("a.ply", header + points + "3 0 1 -1", "face 0 refers to vertex -1");
  expect_refused("a.ply", header + points + "3 0 1 0.5", "face 0 refers to vertex 0.5");
  expect_refused("a.ply", header + points + "-3 0 1 2", "a list of face 0 has a length of -3");
  expect_refused("a.ply", header + points + "2 0 1", "the file has no triangles");
  expect_refused("a.ply", header + "0 0 0 1 0 x 0 1 0\n3 0 1 2", "\"x\" in vertex 1 is no number");
  expect_refused("a.ply", header + "0 0 0 1 0 inf 0 1 0\n3 0 1 2", "the coordinates of point 1 are not finite");
  expect_refused("a.ply", "ply\nformat ascii 1.0\nelement vertex 99999999999999\nproperty int x\nend_header\n",
                 "it ends early, at vertex 0");
  expect_refused("a.ply", "ply\nformat ascii 1.0\nelement vertex 99999999999999999\nend_header\n", "no triangles");

  expect_refused("a.stl", "soli", "fewer than the header");
  expect_refused("a.stl", std::string(84, '\1'), "it has 84");
  expect_refused("a.stl", std::string(84, '\0'), "the file has no triangles");
  expect_refused("a.stl", "solid\nloop\nvertex 0 0 0\nvertex 1 0\nendloop\nendsolid", "a vertex without three numbers");
  expect_refused("a.stl", "solid\nloop\nvertex 0 0 0\nvertex 1 0 0\nendloop\nendsolid", "triangle 0 has 2 vertices");
  expect_refused("a.stl", "solid\nloop\nvertex 0 0 0 vertex 1 0 0 vertex 2 2 2 vertex 3 3 3",
                 "more than three vertices");
  expect_refused("a.stl", "solid\nendsolid\n", "the file has no triangles");
  expect_refused("a.stl", "solid\nloop\nvertex 0 0 0 vertex 1 0 0 vertex 2 nan 2 endloop\nendsolid", "not finite");

  EXPECT_NE(refusal("a.off", "OFF", ErrorKind::invalid_argument).find(".obj, .ply or .stl"), std::string::npos);
  EXPECT_NE(refusal("mesh", "v", ErrorKind::invalid_argument).find(".obj, .ply or .stl"), std::string::npos);
  expect_unreadable("nowhere.obj", "the file cannot be read: ");
  std::filesystem::create_directory(path("folder.ply"));
  expect_unreadable("folder.ply", "the file cannot be read: it is a folder");
}

TEST_F(MeshFile, refuses_to_save_what_is_no_mesh) {
  auto refused = [&](const MeshData& mesh, const std::string& name, const std::string& part) {
    try {
      save_mesh(path(name), mesh);
      ADD_FAILURE() << "saved, though " << part;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
      EXPECT_FALSE(std::filesystem::exists(path(name)));
    }
  };
  const std::vector<vec3> points = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}};
  refused({points, {}}, "a.obj", "a mesh has no triangles");
  refused({points, {0, 1, 2, 0}}, "a.obj", "4 indices are not three for each triangle");
  refused({points, {0, 1, 3}}, "a.ply", "triangle 0 refers to point 3 of 3");
  refused({points, {0, -1, 2}}, "a.stl", "triangle 0 refers to point -1 of 3");
  refused({{{0, 0, 0}, {0, 0, std::numeric_limits<float>::infinity()}}, {0, 1, 1}}, "a.obj", "point 1 are not finite");
  refused({points, {0, 1, 2}}, "a.vtk", ".obj, .ply or .stl");
  write("file", "");
  refused({points, {0, 1, 2}}, "file/a.obj", "cannot be written");
  std::filesystem::create_directory(path("folder.stl"));
  EXPECT_THROW(save_mesh(path("folder.stl"), shapes::box()), Error);
}

TEST_F(MeshFile, is_saved_in_folders_that_are_made_for_it) {
  for (const char* name : {"no/such/folder/a.obj", "b/a.ply", "b/c/a.stl"}) {
    save_mesh(path(name), shapes::box());
    expect_cube(load_mesh(path(name)));
  }
}

TEST_F(MeshFile, is_not_read_in_part_where_reading_fails) {
#ifdef __linux__
  // /proc/self/mem has nothing at its beginning: a regular file that opens, and fails when it is read.
  for (const char* name : {"a.obj", "a.ply", "a.stl"}) {
    std::filesystem::create_symlink("/proc/self/mem", path(name));
    expect_unreadable(name, "the file cannot be read: Input/output error");
  }
#else
  GTEST_SKIP() << "no file that cannot be read";
#endif
}

TEST_F(MeshFile, is_not_waited_for_where_it_is_a_pipe) {
#ifndef _WIN32
  for (const char* name : {"a.obj", "a.ply", "a.stl"}) {
    ASSERT_EQ(mkfifo(path(name).c_str(), 0600), 0);
    expect_unreadable(name, "the file cannot be read: it is no regular file");
  }
#else
  GTEST_SKIP() << "no pipes among files";
#endif
}

#ifdef __linux__
/// Loads a file with at most 64 MiB more addresses than the process has, and exits.
[[noreturn]] void load_without_memory(const std::string& file) {
  std::ifstream sizes("/proc/self/statm");
  rlim_t pages = 0;
  sizes >> pages;
  const rlim_t most = pages * rlim_t(sysconf(_SC_PAGESIZE)) + (64 << 20);
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
  try {
    std::cerr << load_mesh(file).indices.size() << " indices were read\n";
  } catch (const Error& e) {
    std::cerr << e.what() << '\n';
    std::_Exit(e.kind() == ErrorKind::out_of_memory ? 7 : 1);
  }
  std::_Exit(2);
}
#endif

TEST_F(MeshFile, is_not_read_in_part_where_memory_runs_out) {
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)  // otherwise the sanitizer's own memory would run out first
  GTEST_FLAG_SET(death_test_style, "fast");               // leaves no files of the child
  const std::string texts[][2] = {
      {"a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"},
      {"a.ply",
       "ply\nformat ascii 1.0\nelement vertex 3\nproperty int x\nproperty int y\nproperty int z\nelement face 1\n"
       "property list uchar int vertex_indices\nend_header\n0 0 0 1 0 0 0 1 0 3 0 1 2\n"},
      {"a.stl", "solid\nfacet\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid\n"}};
  for (const auto& [name, text] : texts) {
    const std::string file = write(name, text);
    std::filesystem::resize_file(file, 256 << 20);
    EXPECT_EXIT(load_without_memory(file), testing::ExitedWithCode(7), "out of memory: .*not enough memory");
  }
#else
  GTEST_SKIP() << "memory has no limit here";
#endif
}

TEST_F(MeshFile, survives_bytes_at_random) {
  const MeshData mesh = shapes::icosphere(1, 0);
  std::mt19937 bits(4);
  for (const char* name : {"mesh.obj", "mesh.ply", "mesh.stl"}) {
    save_mesh(path(name), mesh);
    const std::string whole = read(name);
    int read_well = 0;
    for (int i = 0; i < 1000; ++i) {
      std::string content = whole;
      for (unsigned k = 1 + bits() % 4; k > 0; --k)
        content[bits() % content.size()] = bits() % 2 ? char(bits()) : "0123456789 -.e\n/"[bits() % 16];
      if (bits() % 4 == 0) content.resize(bits() % content.size());
      try {
        const MeshData m = load_mesh(write(name, content));
        for (int index : m.indices) ASSERT_LT(std::size_t(index), m.points.size());
        ++read_well;
      } catch (const Error&) {
      }
    }
    EXPECT_GT(read_well, 10) << name;
  }
}

TEST_F(MeshFile, reads_the_meshes_of_others_where_they_are) {
  const std::filesystem::path folder = std::filesystem::path(WEFT_SOURCE_DIR).parent_path() / "shared" / "data";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no " << folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".obj") continue;
    const MeshData mesh = load_mesh(entry.path().string());
    EXPECT_GT(mesh.indices.size(), 900u) << entry.path();
    save_mesh(path("copy.ply"), mesh);
    EXPECT_EQ(load_mesh(path("copy.ply")).indices, mesh.indices);
    save_mesh(path("copy.stl"), mesh);
    EXPECT_EQ(corners(load_mesh(path("copy.stl"))), corners(mesh));
  }
}

}  // namespace
