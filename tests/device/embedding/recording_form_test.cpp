// Structures that are built in a renderer's command buffers, for another number of points than outside.
#include <weft/geometry.h>
#include <weft/weft.h>

#include <optional>

#include "../watched_test.h"
#include "embedded.h"

using namespace weft;
using namespace weft::test;

namespace {

class RecordedForms : public WatchedTest {
  void SetUp() override {
    WatchedTest::SetUp();
    if (!IsSkipped() && on_reference()) GTEST_SKIP() << "no command buffers there";
  }
};
ON_EVERY_DEVICE(RecordedForms);

const auto count_points = kernel("count points", [](Var<HashGridArrays> grid, Arr<int> found) {
  Int count = 0;
  for ([[maybe_unused]] auto i : hash_grid_query(grid, Vec3(0, 0, 0), 0.25f)) count += 1;
  found[0] = count;
});

struct Scene {
  explicit Scene(bool gpu)
      : e(gpu),
        many(zeros<vec3>(e.device, 100)),
        few(zeros<vec3>(e.device, 20)),
        found(zeros<int>(e.device, 1)),
        grid(e.device, 4, 4, 4) {
    grid.build(many, 0.5f);
  }
  int count() {
    launch(count_points, 1, grid, found);
    return found.at(0);
  }
  Recording record(const std::function<void()>& work) {
    commands = e.renderer.begin();
    return e.device.stream().record_into(commands, work);
  }
  Embedded e;
  const Array<vec3> many, few;
  Array<int> found;
  HashGrid grid;
  VkCommandBuffer commands = VK_NULL_HANDLE;
};

TEST_P(RecordedForms, AreThoseOfTheSubmissionsInTheirOrder) {
  Scene s(on_gpu());
  const Recording frame = s.record([&] {
    launch(count_points, 1, s.grid, s.found);
    s.grid.build(s.few, 0.5f);
  });
  frame.prepare();  // asked for before each submission: nothing of it has run yet
  s.e.renderer.submit(s.commands);
  frame.submitted();
  EXPECT_EQ(s.found.at(0), 100);
  EXPECT_EQ(s.count(), 20);
  expect_contains(error_of([&] { frame.prepare(); }), "a recording works on a hash grid of 100 points");
  s.grid.build(s.many, 0.5f);
  frame.prepare();
  frame.wait();
}

TEST_P(RecordedForms, PassFromOneRecordingToTheNext) {
  Scene s(on_gpu());
  const Recording builds = s.record([&] { s.grid.build(s.few, 0.5f); });
  const VkCommandBuffer first = s.commands;
  const Recording asks = s.record([&] { launch(count_points, 1, s.grid, s.found); });
  s.e.renderer.submit(first);
  builds.submitted();
  s.e.renderer.submit(s.commands);
  asks.submitted();
  EXPECT_EQ(s.found.at(0), 20);
}

TEST_P(RecordedForms, AreThoseOfBeforeWhereARecordingWasNeverSubmitted) {
  Scene s(on_gpu());
  {
    const Recording dropped = s.record([&] { s.grid.build(s.few, 0.5f); });
  }
  expect_contains(error_of([&] { s.count(); }), "is not what the device holds");
  s.grid.build(s.few, 0.5f);
  EXPECT_EQ(s.count(), 20);
}

TEST_P(RecordedForms, OfWhatIsBuiltAsItWasAreKnownWhereNothingWasSubmitted) {
  Scene s(on_gpu());
  {
    const Recording dropped = s.record([&] { s.grid.build(s.many, 0.5f); });
  }
  EXPECT_EQ(s.count(), 100);
}

TEST_P(RecordedForms, OfEachStructureAreForgottenByThemselves) {
  Scene s(on_gpu());
  HashGrid other(s.e.device, 4, 4, 4);
  other.build(s.many, 0.5f);
  std::optional<Recording> dropped = s.record([&] {
    s.grid.build(s.few, 0.5f);
    other.build(s.few, 0.5f);
  });
  const Recording last = s.record([&] { other.build(s.many, 0.5f); });
  const auto ask = [&](const HashGrid& grid) { return s.record([&] { launch(count_points, 1, grid, s.found); }); };
  { const Recording finds_both = ask(s.grid); }
  dropped.reset();
  expect_contains(error_of([&] { (void)ask(s.grid); }), "a recording works on a hash grid of 20 points");
  const Recording finds_last = ask(other);
}

TEST_P(RecordedForms, PassFromOneRecordingToTheNextInOneCommandBuffer) {
  Scene s(on_gpu());
  const Recording builds = s.record([&] { s.grid.build(s.few, 0.5f); });
  const Recording asks = s.e.device.stream().record_into(s.commands, [&] { launch(count_points, 1, s.grid, s.found); });
  s.e.renderer.submit(s.commands);
  builds.submitted();
  asks.submitted();
  EXPECT_EQ(s.found.at(0), 20);
}

// Of a frame that is not submitted the recording ends before the next one.
TEST_P(RecordedForms, OfAFrameThatIsSkippedAreForgotten) {
  Scene s(on_gpu());
  const auto step = [&] {
    launch(count_points, 1, s.grid, s.found);
    s.grid.build(s.few, 0.5f);
  };
  Recording frame = s.record(step);
  frame = {};
  expect_contains(error_of([&] { (void)s.record(step); }), "a recording works on a hash grid of 20 points");
  s.grid.build(s.many, 0.5f);
  frame = s.record(step);
  s.e.renderer.submit(s.commands);
  frame.submitted();
  EXPECT_EQ(s.found.at(0), 100);
  EXPECT_EQ(s.count(), 20);
}

TEST_P(RecordedForms, AreKeptByABuildThatIsRefused) {
  Scene s(on_gpu());
  const Recording asks = s.record([&] { launch(count_points, 1, s.grid, s.found); });
  expect_contains(error_of([&] { s.grid.build(s.few, 0.5f); }), "is not submitted");
  EXPECT_EQ(s.grid.size(), 100);
  s.e.renderer.submit(s.commands);
  asks.submitted();
  EXPECT_EQ(s.found.at(0), 100);
  EXPECT_EQ(s.count(), 100);
  // The same of a hierarchy.
  Bvh bvh(s.e.device, s.many, s.many);
  const auto count_boxes = kernel("count boxes", [](Var<BvhData> tree, Arr<int> found) {
    for ([[maybe_unused]] auto i : bvh_query_aabb(tree, Vec3(-9, -9, -9), Vec3(9, 9, 9))) found[0] += 1;
  });
  const Recording boxes = s.record([&] {
    s.found.fill(0);
    launch(count_boxes, 1, bvh, s.found);
  });
  expect_contains(error_of([&] { bvh.rebuild(s.few, s.few); }), "is not submitted");
  expect_contains(error_of([&] { bvh.refit(s.many, s.many); }), "is not submitted");
  EXPECT_EQ(bvh.size(), 100);
  s.e.renderer.submit(s.commands);
  boxes.submitted();
  EXPECT_EQ(s.found.at(0), 100);
  launch(count_boxes, 1, bvh, s.found);
  EXPECT_EQ(s.found.at(0), 200);
  // And of a mesh.
  const Array<vec3> points(s.e.device, {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}});
  Mesh mesh(points, Array<int>(s.e.device, {0, 1, 2}));
  const auto ray = kernel("ray", [](Var<MeshArrays> mesh, Arr<int> found) {
    found[0] = select(mesh_query_ray(mesh, Vec3(0.25f, 0.25f, 1), Vec3(0, 0, -1)).hit, 7, 0);
  });
  const Recording hits = s.record([&] { launch(ray, 1, mesh, s.found); });
  expect_contains(error_of([&] { mesh.refit(); }), "is not submitted");
  expect_contains(error_of([&] { mesh.rebuild(); }), "is not submitted");
  s.e.renderer.submit(s.commands);
  hits.submitted();
  EXPECT_EQ(s.found.at(0), 7);
  s.found.fill(0);
  launch(ray, 1, mesh, s.found);
  EXPECT_EQ(s.found.at(0), 7);
  mesh.refit();
}

TEST_P(RecordedForms, AreKeptWhicheverArrayTheRecordedWorkIsGiven) {
  Scene s(on_gpu());
  Bvh bvh(s.e.device, s.many, s.many);
  const Array<vec3> points(s.e.device, {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}});
  Mesh mesh(points, Array<int>(s.e.device, {0, 1, 2, 1, 2, 3}));
  (void)mesh.id();
  const auto sum = kernel("sum", [](Arr<const int> numbers, Arr<int> found) { found[0] += numbers[tid()]; });
  const auto sum_unsigned =
      kernel("sum of unsigned", [](Arr<const unsigned> numbers, Arr<int> found) { found[0] += Int(numbers[tid()]); });
  const auto count_boxes = kernel("count boxes", [](Var<BvhData> tree, Arr<int> found) {
    for ([[maybe_unused]] auto i : bvh_query_aabb(tree, Vec3(-9, -9, -9), Vec3(9, 9, 9))) found[0] += 1;
  });
  const auto count_faces = kernel("count faces", [](Var<MeshArrays> mesh, Arr<int> found) {
    for ([[maybe_unused]] auto f : mesh_query_aabb(mesh, Vec3(-9, -9, -9), Vec3(9, 9, 9))) found[0] += 1;
  });
  for (const BvhData& tree : {bvh.data(), mesh.tree().data()})
    for (const int which : {0, 1, 2, 3, 4}) {
      const Recording reads = s.record([&] {
        if (which == 4) return launch(sum_unsigned, 1, tree.info, s.found);
        const Array<int>* const arrays[] = {&tree.primitives, &tree.parents, &tree.groups, &tree.group_roots};
        launch(sum, 1, *arrays[which], s.found);
      });
      const bool of_mesh = tree.count == 2;
      // A refit reads them, or leaves them alone.
      of_mesh ? mesh.refit() : bvh.refit();
      expect_contains(error_of([&] { of_mesh ? mesh.rebuild() : bvh.rebuild(); }), "is not submitted");
      if (!of_mesh) expect_contains(error_of([&] { bvh.rebuild(s.few, s.few); }), "is not submitted");
      s.e.renderer.submit(s.commands);
      reads.submitted();
      s.found.fill(0);
      launch(count_boxes, 1, bvh, s.found);
      launch(count_faces, 1, mesh, s.found);
      EXPECT_EQ(s.found.at(0), 102) << which;
    }
}

TEST_P(RecordedForms, ARecordingIsRefusedWithoutTheOneThatBuildsForIt) {
  Scene s(on_gpu());
  std::optional<Recording> builds = s.record([&] { s.grid.build(s.few, 0.5f); });
  const Recording asks = s.record([&] {
    launch(count_points, 1, s.grid, s.found);
    s.grid.build(s.few, 0.5f);  // tells what it leaves, too
  });
  asks.prepare();  // what was recorded before is submitted before
  builds.reset();
  expect_contains(error_of([&] { asks.prepare(); }), "a recording works on a hash grid of 20 points");
  // Who does not ask is told when it is too late.
  s.e.renderer.submit(s.commands);
  const std::string told = error_of([&] { asks.submitted(); });
  expect_contains(told, "a recording that was submitted just now works on a hash grid of 20 points");
  expect_contains(told, "count points");
  EXPECT_EQ(s.count(), 20);  // as the recording has left it
}

}  // namespace
