// Structures that work in a renderer's command buffers builds and queries.
#include <weft/geometry.h>
#include <weft/weft.h>

#include <optional>

#include "../watched_test.h"
#include "embedded.h"

using namespace weft;
using namespace weft::test;

namespace {

class RecordedStructures : public WatchedTest {
  void SetUp() override {
    WatchedTest::SetUp();
    if (!IsSkipped() && on_host()) GTEST_SKIP() << "no command buffers there";
  }
};
ON_EVERY_DEVICE(RecordedStructures);

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

TEST_P(RecordedStructures, AreBuiltInTheSizeAndMemoryThatTheyHave) {
  Scene s(on_gpu());
  HashGrid fresh(s.e.device, 4, 4, 4);
  const Recording frame = s.record([&] {
    expect_contains(error_of([&] { s.grid.build(s.few, 0.5f); }),
                    "while work is recorded into a command buffer: what is captured builds it as it is");
    s.grid.build(s.many, 0.5f);
    launch(count_points, 1, s.grid, s.found);
  });
  const VkCommandBuffer commands = s.commands;
  expect_contains(error_of([&] { (void)s.record([&] { fresh.build(s.few, 0.5f); }); }),
                  "a hash grid of 20 points is built for the first time by a recording: build it before");
  frame.prepare();
  s.e.renderer.submit(commands);
  frame.submitted();
  EXPECT_EQ(s.found.at(0), 100);
  EXPECT_EQ(s.count(), 100);
}

TEST_P(RecordedStructures, AreRefusedOnceTheyWereBuiltOtherwise) {
  Scene s(on_gpu());
  const Recording frame = s.record([&] { launch(count_points, 1, s.grid, s.found); });
  const VkCommandBuffer commands = s.commands;
  s.e.renderer.submit(commands);
  frame.submitted();
  frame.wait();
  s.grid.build(s.few, 0.5f);
  expect_contains(error_of([&] { frame.prepare(); }), "a recording works on a hash grid of 100 points");
  s.grid.build(s.many, 0.5f);
  frame.prepare();
}

TEST_P(RecordedStructures, OfARecordingThatWasNeverSubmittedAreAsTheyWere) {
  Scene s(on_gpu());
  {
    const Recording dropped = s.record([&] { s.grid.build(s.many, 0.5f); });
  }
  EXPECT_EQ(s.count(), 100);
}

TEST_P(RecordedStructures, AreKeptByABuildThatIsRefused) {
  Scene s(on_gpu());
  const Recording asks = s.record([&] { launch(count_points, 1, s.grid, s.found); });
  expect_contains(error_of([&] { s.grid.build(s.few, 0.5f); }), "is not submitted");
  EXPECT_EQ(s.grid.size(), 100);
  s.e.renderer.submit(s.commands);
  asks.submitted();
  EXPECT_EQ(s.found.at(0), 100);
  EXPECT_EQ(s.count(), 100);
  // The same holds for a hierarchy.
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
  // The same holds for a mesh.
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

TEST_P(RecordedStructures, AreKeptWhicheverArrayTheRecordedWorkIsGiven) {
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
      // A refit only reads these arrays, or leaves them alone.
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

}  // namespace
