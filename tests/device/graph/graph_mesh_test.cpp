// Graphs that use, change and rebuild meshes: a mesh whose indices have changed is refused until its rebuild().
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "../device_test.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

DEVICE_TEST(GraphMeshes);

struct Holder {
  Array<int> values;
};
WEFT_STRUCT(Holder, values);

const auto count_around = kernel("count around", [](Var<MeshArrays> mesh, Arr<int> faces) {
  Int found = 0;
  for ([[maybe_unused]] auto f : mesh_query_sphere(mesh, mesh_get_point(mesh, 0), 1e-3f)) found += 1;
  faces[0] = found;
});
const auto count_by_handle = kernel("count by handle", [](Arr<const std::uint64_t> id, Arr<int> faces) {
  Int found = 0;
  for ([[maybe_unused]] auto f : mesh_query_sphere(id[0], Vec3(0, 0, 0), 9.f)) found += 1;
  faces[0] = found;
});

const auto take = kernel("take", [](Arr<int> to, Arr<const int> from) { to[tid()] = from[tid()]; });
const auto take_held = kernel("take held", [](Arr<Holder> held, Arr<const int> from) {
  Int i = tid();
  held[0].values[i] = from[i];
});

/// A sphere, and other triangles of the same points: one half of them twice, so that some points have more around them.
/// A tree of the former does not find all of the latter.
struct Sphere {
  explicit Sphere(const Device& device)
      : data(shapes::icosphere(1, 1)), points(device, data.points), whole(device, data.indices) {
    std::vector<int> half(data.indices.begin(), data.indices.begin() + std::ptrdiff_t(data.indices.size() / 2));
    around_of_others = 2 * int(std::ranges::count(half, data.indices[0]));
    half.insert(half.end(), half.begin(), half.end());
    others = Array<int>(device, half);
    indices = whole.clone();
    mesh = Mesh(points, indices);
    faces = zeros<int>(device, 1);
    around = count();
    EXPECT_EQ(around, std::ranges::count(data.indices, data.indices[0]));
    EXPECT_NE(around, around_of_others);
  }
  void change(const Array<int>& to) { indices.copy_from(to); }
  /// Counts the triangles around point 0, outside of any graph.
  int count() {
    launch(count_around, 1, mesh, faces);
    return faces.at(0);
  }
  /// Expects one number in each launch of a graph that counts, and another outside after each launch.
  void expect_counts(const Graph& graph, int launches, int in_graph, int behind) {
    for (int k = 0; k < launches; ++k) {
      faces.fill(-1);
      graph.launch();
      EXPECT_EQ(faces.at(0), in_graph) << "in launch " << k;
      EXPECT_EQ(count(), behind) << "behind launch " << k;
    }
  }
  Graph asks() {
    return capture(points.device(), [&] { launch(count_around, 1, mesh, faces); });
  }
  std::string capture_error(const std::function<void()>& work) {
    return error_of([&] { capture(points.device(), work); });
  }

  const MeshData data;
  Array<vec3> points;
  Array<int> whole, others, indices;
  Mesh mesh;
  Array<int> faces;
  int around = 0, around_of_others = 0;
};

const std::string kRebuild = "a graph works on a mesh of 80 triangles, of which the device holds nothing";

TEST_P(GraphMeshes, are_refused_when_their_indices_have_changed_outside) {
  Sphere s(device());
  EXPECT_GE(s.around, 5);
  const Graph asks = s.asks();
  const Graph refits = capture(device(), [&] { s.mesh.refit(); });
  const Graph rebuilds = capture(device(), [&] { s.mesh.rebuild(); });
  asks.launch();
  std::vector<int> bad = s.data.indices;
  bad[4] = 1 << 20;
  s.indices.assign(bad);
  for (const Graph* graph : {&asks, &refits, &rebuilds}) {
    expect_contains(error_of([&] { graph->launch(); }), kRebuild);
    expect_contains(error_of([&] { s.count(); }), "rebuild()");
  }
  expect_contains(error_of([&] { s.mesh.rebuild(); }), "names none of its");
  expect_contains(s.capture_error([&] { s.mesh.rebuild(); }), "call its rebuild() before a graph is captured");
  s.indices.assign(s.data.indices);
  s.mesh.rebuild();
  for (const Graph* graph : {&refits, &rebuilds, &asks}) graph->launch();
  EXPECT_EQ(s.faces.at(0), s.around);
}

TEST_P(GraphMeshes, are_refused_by_their_handles_too) {
  Sphere s(device());
  const Array<std::uint64_t> id(device(), {s.mesh.id()});
  const Graph graph = capture(device(), [&] { launch(count_by_handle, 1, id, s.faces); });
  graph.launch();
  s.indices.assign(s.data.indices);
  expect_contains(error_of([&] { graph.launch(); }), "rebuild()");
  s.mesh.rebuild();
  graph.launch();
  EXPECT_EQ(s.faces.at(0), s.mesh.size());
}

TEST_P(GraphMeshes, are_not_changed_in_a_capture) {
  Sphere s(device());
  const Array<int> flag = full<int>(device(), 1, 1);
  const Array<Holder> held(device(), {Holder{s.indices}});
  const std::function<void()> changes[] = {[&] { s.change(s.others); },
                                           [&] {
                                             launch(count_around, 1, s.mesh, s.faces);
                                             launch(take, s.whole.size(), s.indices, s.others);
                                             s.mesh.rebuild();
                                           },
                                           [&] { graph_if(flag, [&] { s.change(s.others); }); },
                                           [&] { launch(take_held, s.whole.size(), held, s.others); }};
  for (const auto& change : changes) {
    const std::string error = s.capture_error(change);
    expect_contains(error, "changes the indices of a mesh while a graph is captured");
    expect_contains(error, "call its rebuild() before as well");
    EXPECT_EQ(s.count(), s.around) << "no capture has come to anything";
  }
  expect_contains(s.capture_error(changes[3]), "take held changes");
}

TEST_P(GraphMeshes, that_are_gone_leave_graphs_that_use_them_on_their_guard) {
  Sphere s(device());
  const Array<std::uint64_t> id(device(), {s.mesh.id()});
  const Graph asks = s.asks();
  const Graph by_handle = capture(device(), [&] { launch(count_by_handle, 1, id, s.faces); });
  s.mesh = Mesh();
  asks.launch();
  EXPECT_EQ(s.faces.at(0), s.around) << "the graph keeps what it works on";
  std::vector<int> bad = s.data.indices;
  bad[4] = 1 << 20;
  s.indices.assign(bad);
  expect_contains(error_of([&] { asks.launch(); }), "if it is gone, capture again");
  by_handle.launch();
  EXPECT_EQ(s.faces.at(0), 0) << "there is nothing behind the handle";
}

TEST_P(GraphMeshes, of_strided_indices_are_the_same_mesh_for_graphs_and_for_others) {
  Sphere s(device());
  const std::int64_t n = s.whole.size();
  s.indices = zeros<int>(device(), 2 * n).slice(0, 2 * n, 2);
  s.change(s.whole);
  s.mesh = Mesh(s.points, s.indices);
  const Graph asks = s.asks();
  const auto turn = [&](const Array<int>& to) {
    s.change(to);
    s.mesh.rebuild();
  };
  const Graph rebuilds = capture(device(), [&] { s.mesh.rebuild(); });
  const auto first_face = kernel("first face", [](Var<MeshArrays> mesh, Arr<vec3> normal) {
    normal[0] = mesh_eval_face_normal(mesh, mesh.tree.count / 2);
  });
  Array<vec3> normal = zeros<vec3>(device(), 1);
  const auto expect_others = [&](bool others) {
    asks.launch();
    EXPECT_EQ(s.faces.at(0) != s.around, others) << "in a graph";
    EXPECT_EQ(s.count() != s.around, others) << "outside";
    // In the other triangles the second half is the first one again.
    launch(first_face, 1, s.mesh, normal);
    const std::size_t face = others ? 0 : std::size_t(n / 6);
    const auto point = [&](std::size_t k) { return s.data.points[std::size_t(s.data.indices[3 * face + k])]; };
    const vec3 expected = normalize(cross(point(1) - point(0), point(2) - point(0)));
    EXPECT_NEAR(length(vec3(normal.at(0)) - expected), 0, 1e-5f);
  };
  expect_others(false);
  turn(s.others);  // after a graph that knows the mesh
  expect_others(true);
  rebuilds.launch();
  expect_others(true);
  turn(s.whole);
  expect_others(false);
}

TEST_P(GraphMeshes, share_memory_with_what_a_graph_writes) {
  Sphere s(device());
  const std::int64_t n = s.whole.size();
  Array<int> pool = zeros<int>(device(), n + 1);
  s.indices = pool.slice(0, n);
  s.faces = pool.slice(n, n + 1);
  s.change(s.whole);
  s.mesh = Mesh(s.points, s.indices);
  const Graph asks = s.asks();
  for (int k = 0; k < 3; ++k) {
    asks.launch();
    EXPECT_EQ(s.faces.at(0), s.around);
    EXPECT_EQ(s.count(), s.around);
  }
}

TEST_P(GraphMeshes, whose_indices_elements_come_to_hold_are_refused) {
  Sphere s(device());
  Array<int> free = s.whole.clone();
  Array<Holder> held(device(), {Holder{free}});
  const Graph graph = capture(device(), [&] {
    launch(take_held, s.whole.size(), held, s.others);
    launch(count_around, 1, s.mesh, s.faces);
  });
  s.expect_counts(graph, 1, s.around, s.around);
  held.assign(std::vector<Holder>{Holder{s.indices}});
  expect_contains(error_of([&] { graph.launch(); }), "hold other arrays than when it was made");
  EXPECT_EQ(s.count(), s.around) << "nothing has run";
  held.assign(std::vector<Holder>{Holder{free}});
  s.expect_counts(graph, 1, s.around, s.around);
}

TEST_P(GraphMeshes, whose_indices_are_held_by_elements_that_are_copied_stay_as_they_are) {
  Sphere s(device());
  const Array<Holder> from(device(), {Holder{s.indices}});
  Array<Holder> to(device(), {Holder{}});
  const Graph graph = capture(device(), [&] {
    to.copy_from(from);
    launch(count_around, 1, s.mesh, s.faces);
  });
  s.expect_counts(graph, 3, s.around, s.around);
}

TEST_P(GraphMeshes, whose_indices_are_held_by_elements_that_a_condition_or_a_strided_copy_moves_stay_as_they_are) {
  Sphere s(device());
  Array<int> flag(device(), {1});
  const Array<Holder> from(device(), {Holder{s.indices}});
  Array<Holder> to(device(), {Holder{}, Holder{}, Holder{}});
  const Graph graph = capture(device(), [&] {
    graph_if(flag, [&] { to.slice(0, 1).copy_from(from); });
    launch(count_around, 1, s.mesh, s.faces);
  });
  s.expect_counts(graph, 3, s.around, s.around);
  Array<Holder>(to.slice(0, 3, 2)).copy_from(Array<Holder>(device(), {Holder{s.indices}, Holder{s.indices}}));
  Array<Holder>(to.slice(0, 3, 2)).copy_from(Array<Holder>(device(), {Holder{s.indices}, Holder{s.indices}}));
  EXPECT_EQ(s.count(), s.around);
}

TEST_P(GraphMeshes, are_refused_where_a_node_comes_to_change_them_behind_their_rebuild) {
  Sphere s(device());
  const std::int64_t n = s.whole.size();
  Array<int> both = zeros<int>(device(), 2 * n);
  s.indices = both.slice(0, n);
  const Array<int> spare = both.slice(n, 2 * n);
  s.change(s.whole);
  s.mesh = Mesh(s.points, s.indices);
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    s.mesh.rebuild();
    launch(take, n, spare, s.others);
    node = captured_launch();
    launch(count_around, 1, s.mesh, s.faces);
  });
  graph.launch();
  graph.set(node, take, spare, s.whole);  // the mesh is in the memory beside it
  graph.launch();
  EXPECT_EQ(s.count(), s.around);
  graph.set(node, take, s.indices, s.others);
  expect_contains(error_of([&] { graph.launch(); }), "changes indices of a mesh, which it did not there");
  EXPECT_EQ(s.count(), s.around);
  graph.set(node, take, spare, s.others);
  graph.launch();
}

TEST_P(GraphMeshes, that_a_node_is_given_later_are_refused_as_those_of_the_capture) {
  Sphere first(device()), second(device());
  GraphNode node;
  const Graph graph = capture(device(), [&] {
    launch(count_around, 1, first.mesh, first.faces);
    node = captured_launch();
  });
  graph.set(node, count_around, second.mesh, second.faces);
  graph.launch();
  EXPECT_EQ(second.faces.at(0), second.around);
  second.change(second.others);
  expect_contains(error_of([&] { graph.launch(); }), kRebuild);
  second.mesh.rebuild();
  graph.launch();
  EXPECT_NE(second.faces.at(0), second.around);
}

TEST_P(GraphMeshes, are_not_changed_by_a_launch_that_is_refused_for_another_one) {
  Sphere s(device()), stale(device());
  const Array<std::uint64_t> id(device(), {stale.mesh.id()});
  stale.change(stale.whole);
  const auto change = kernel("change and ask", [](Arr<int> indices, Arr<const std::uint64_t> id) {
    indices[0] = Int(indices[0]) + mesh_query_point(id[0], Vec3(0, 0, 0)).face * 0;
  });
  const std::string refusal = error_of([&] { launch(change, 1, s.indices, id); });
  expect_contains(refusal, "rebuild()");
  expect_contains(refusal, "change and ask");
  EXPECT_EQ(s.count(), s.around);
}

TEST_P(GraphMeshes, that_are_made_later_hear_of_what_a_graph_writes) {
  Sphere s(device());
  Array<int> later = s.whole.clone();
  const Graph graph = capture(device(), [&] { later.copy_from(s.others); });
  const Mesh mesh(s.points, later);
  launch(count_around, 1, mesh, s.faces);
  graph.launch();
  expect_contains(error_of([&] { launch(count_around, 1, mesh, s.faces); }), "rebuild()");
}

TEST_P(GraphMeshes, of_strided_points_are_found_as_a_graph_left_them_by_an_id_of_later) {
  const MeshData data = shapes::icosphere(1, 1);
  const std::int64_t n = std::int64_t(data.points.size());
  Array<vec3> both = zeros<vec3>(device(), 2 * n), points = both.slice(0, 2 * n, 2);
  const Array<vec3> given(device(), data.points);
  points.copy_from(given);
  Mesh mesh(points, Array<int>(device(), data.indices));
  const Graph refits = capture(device(), [&] { mesh.refit(); });
  const Array<std::uint64_t> id(device(), {mesh.id()});
  Array<vec3> first = zeros<vec3>(device(), 1);
  const auto get_point =
      kernel("get a point", [](Arr<const std::uint64_t> id, Arr<vec3> point) { point[0] = mesh_get_point(id[0], 0); });
  const auto double_points = kernel("double points", [](Arr<vec3> p) { p[tid()] *= 2.f; });
  launch(double_points, n, points);
  refits.launch();
  launch(get_point, 1, id, first);
  EXPECT_EQ(vec3(first.at(0)), data.points[std::size_t(data.indices[0])] * 2.f);
}

/// Indices in memory of the host, which other code changes: weft does not hear of that.
struct HostIndices {
  std::vector<int> written;
};
struct SphereOnHost : HostIndices, Sphere {
  explicit SphereOnHost(const Device& device) : Sphere(device) {
    written = data.indices;
    indices = wrap(device, written);
    mesh = Mesh(points, indices);
  }
  void write(const std::vector<int>& to) {
    points.device().synchronize();
    std::ranges::copy(to, written.begin());
  }
};

TEST_P(GraphMeshes, triangles_of_points_that_are_none_are_found_by_nobody) {
  if (!device().wraps_host()) GTEST_SKIP() << "arrays of this device do not stand on memory of the host";
  SphereOnHost s(device());
  const Graph graph = capture(device(), [&] {
    s.mesh.rebuild();
    launch(count_around, 1, s.mesh, s.faces);
  });
  for (const int none : {1 << 30, -1, int(s.data.points.size())}) {
    // One of the triangles around point 0 gets an index without a point in one of its other corners.
    std::vector<int> bad = s.data.indices;
    const auto at = std::ranges::find(bad, bad[0]) - bad.begin();
    bad[std::size_t(at - at % 3 + (at + 1) % 3)] = none;
    s.write(bad);
    graph.launch();
    EXPECT_EQ(s.faces.at(0), s.around - 1) << none;
    s.mesh.refit();
    EXPECT_EQ(s.count(), s.around - 1) << none;
  }
  const Array<std::uint64_t> id(device(), {s.mesh.id()});
  s.write(std::vector<int>(s.data.indices.size(), 1 << 30));
  s.mesh.rebuild();
  launch(count_by_handle, 1, id, s.faces);
  EXPECT_EQ(s.faces.at(0), 0);
  s.write(s.data.indices);
  graph.launch();
  EXPECT_EQ(s.faces.at(0), s.around);
}

TEST_P(GraphMeshes, debug_mode_reports_points_that_are_none) {
  if (!device().wraps_host()) GTEST_SKIP() << "arrays of this device do not stand on memory of the host";
  const Debug before = debug_mode();
  struct Restore {
    Debug mode;
    ~Restore() { set_debug(mode); }
  } const restore{before};
  set_debug(true);
  SphereOnHost s(device());
  const Graph graph = capture(device(), [&] { s.mesh.rebuild(); });
  s.write(std::vector<int>(s.data.indices.size(), 1 << 30));
  graph.launch();
  expect_contains(error_of([&] { device().synchronize(); }), "triangle 0 of a mesh names point 1073741824 of 42");
  const Array<std::uint64_t> id(device(), {s.mesh.id()});
  launch(count_by_handle, 1, id, s.faces);
  EXPECT_EQ(s.faces.at(0), 0);
}

}  // namespace
