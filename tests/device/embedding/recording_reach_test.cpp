// Recordings and the memory that kernels reach through elements and handles: that of each submission.
#include <gtest/gtest.h>
#include <weft/geometry.h>
#include <weft/runtime/indexed_array.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "../../../runtime/core/state.h"
#include "../watched_test.h"
#include "embedded.h"

using namespace weft;
using namespace weft::test;

namespace {

struct Holder {
  Array<float> values;
};
WEFT_STRUCT(Holder, values);

constexpr int kSize = 64;

auto add_one = kernel("add_one", [](Arr<float> x) { x[tid()] += 1; });
auto push = kernel("push", [](Arr<vec3> p) { p[tid()].x += 1; });
auto twice = kernel("twice", [](Arr<Holder> items) {
  Int i = tid();
  If (i < items[0].values.shape(0)) {
    items[0].values[i] *= 2.f;
  }
});
auto ask = kernel("ask", [](Arr<const std::uint64_t> mesh, Arr<float> distance) {
  const MeshPointHit hit = mesh_query_point(mesh[0], Vec3(100, 0, 0));
  distance[0] = select(hit.hit, hit.distance, -1.f);
});

WATCHED_TEST(RecordedReach);

/// A recording of work. Its submissions end by hand.
struct Submitted {
  template <class Work>
  Submitted(Embedded& e, Work work)
      : e(e), commands(e.renderer.begin()), recording(e.device.stream().record_into(commands, work)) {}
  void prepare() { recording.prepare(); }
  void submit() {
    submissions == 0 ? e.renderer.submit(commands) : e.renderer.submit_again(commands);
    recording.submitted(ends.vk(), ++submissions);
  }
  void end() {
    e.renderer.wait_idle();
    if (ended < submissions) ends.signal(ended = submissions);
  }
  Embedded& e;
  std::uint64_t submissions = 0, ended = 0;
  const TimelineSemaphore ends{e.device};
  const VkCommandBuffer commands;
  Recording recording;
};

/// A recording that doubles what an element holds, submitted once and run.
struct Doubling : Submitted {
  Doubling(Embedded& e, const Array<Holder>& items) : Submitted(e, [&] { launch(twice, kSize, items); }) {
    submit();
    end();
  }
  void submit_again() {
    prepare();
    submit();
  }
};

TEST_P(RecordedReach, ElementsThatComeToHoldOtherArraysAreRefused) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> a = full<float>(e.device, kSize, 1), b = full<float>(e.device, kSize, 10);
  Array<Holder> items(e.device, {Holder{a}});
  Doubling work(e, items);
  EXPECT_EQ(a.at(3), 2);
  items.assign(std::vector<Holder>{Holder{b}});
  const std::string message = "elements of an array that a recording works on hold other arrays than when it was made";
  expect_contains(error_of([&] { work.prepare(); }), message);
  e.device.synchronize();
  expect_contains(error_of([&] { work.submit(); }), message);  // the queue has the work
  work.end();
  EXPECT_EQ(b.at(3), 20);
  items.assign(std::vector<Holder>{Holder{a}});
  work.submit_again();
  work.end();
  EXPECT_EQ(a.at(3), 4);
}

// By the submission, which weft does not see, other elements may stand there than when it was prepared.
TEST_P(RecordedReach, CopiesOfElementsThatMayHoldArraysAreRefused) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> a = full<float>(e.device, kSize, 1), b = full<float>(e.device, kSize, 10);
  Array<Holder> from(e.device, std::vector<Holder>(4, Holder{a})), to(e.device, std::vector<Holder>(4, Holder{b}));
  const Array<Holder> empty(e.device, std::vector<Holder>(4));
  const Array<int> lists(e.device, {0, 1, 2, 3});
  const auto recorded = [&](const std::function<void()>& copy) {
    return error_of([&] { Submitted(e, [&] { copy(), launch(add_one, kSize, b); }); });
  };
  for (const std::function<void()>& copy : std::vector<std::function<void()>>{
           [&] { to.copy_from(from); }, [&] { to.copy_from(empty); }, [&] { (void)from.clone(); },
           [&] { to.slice(0, 2).copy_from(to.slice(1, 3)); }, [&] { to.slice(0, 4, 2).copy_from(from.slice(0, 4, 2)); },
           [&] { indexed(to, lists).copy_from(from); }, [&] { (void)indexed(from, lists).clone(); }})
    expect_contains(recorded(copy),
                    "elements that may hold arrays are copied while work is recorded into a command "
                    "buffer: copy them before or after that, or let a graph do it");
  // Caught, it leaves nothing of it.
  Submitted work(e, [&] {
    EXPECT_THROW(to.copy_from(from), Error);
    launch(twice, kSize, to);
  });
  work.submit();
  work.end();
  EXPECT_EQ(to.at(0).values.at(3), 20);
  a.free();
  EXPECT_EQ(to.at(3).values.at(3), 20) << "nothing of what was freed is in it";
}

TEST_P(RecordedReach, StructuresAreWhatTheyWereAfterARecordingThatFailed) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> gone = zeros<float>(e.device, kSize);
  const Array<vec3> few = zeros<vec3>(e.device, 40);
  Bvh bvh(e.device, few, few);
  const VkCommandBuffer commands = e.renderer.begin();
  expect_contains(error_of([&] {
                    (void)e.device.stream().record_into(commands, [&] {
                      bvh.rebuild();
                      launch(add_one, kSize, gone);
                      gone.free();  // before this may run
                    });
                  }),
                  "freed");
  EXPECT_EQ(bvh.size(), 40);
  const auto count = kernel("count boxes", [](Var<BvhData> bvh, Arr<int> found) {
    for ([[maybe_unused]] auto i : bvh_query_aabb(bvh, Vec3(-1, -1, -1), Vec3(1, 1, 1))) found[0] += 1;
  });
  Array<int> found = zeros<int>(e.device, 1);
  launch(count, 1, bvh, found);
  EXPECT_EQ(found.at(0), 40);
}

TEST_P(RecordedReach, RefitsOfMeshesThatWereMadeLaterComeBeforeTheSubmission) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<std::uint64_t> id = zeros<std::uint64_t>(e.device, 1);
  Array<float> distance = zeros<float>(e.device, 1);
  const VkCommandBuffer commands = e.renderer.begin();
  const Recording recording = e.device.stream().record_into(commands, [&] { launch(ask, 1, id, distance); });
  e.renderer.submit(commands);
  recording.submitted();
  EXPECT_EQ(distance.at(0), -1);
  const MeshData data = shapes::icosphere(1, 3);
  Array<vec3> points(e.device, data.points);
  Mesh mesh(points, Array<int>(e.device, data.indices));
  id.fill(mesh.id());
  e.device.synchronize();
  launch(push, points.size(), points);
  mesh.refit();
  recording.prepare();
  e.renderer.submit_again(commands);
  recording.submitted();
  EXPECT_NEAR(distance.at(0), 98, 1e-3);
}

TEST_P(RecordedReach, MeshesAreStaleAfterASubmissionThatWritesTheirIndices) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  const MeshData data = shapes::icosphere(1, 1);
  const Array<vec3> points(e.device, data.points);
  const Array<int> from(e.device, data.indices);
  Array<int> indices = from.clone();
  Submitted work(e, [&] { indices.copy_from(from); });
  work.submit();
  work.end();
  std::vector<Mesh> meshes;  // which the recording does not know
  meshes.emplace_back(points, indices);
  const auto expect_stale = [&] {
    for (std::size_t k = 0; k < meshes.size(); ++k) {
      SCOPED_TRACE(k);
      expect_contains(error_of([&] { meshes[k].refit(); }), "rebuild()");
    }
  };
  work.prepare();
  expect_stale();
  // All would be in order, had the submission come before this.
  meshes[0].rebuild();
  meshes.emplace_back(points, indices);
  work.submit();
  expect_stale();
  work.end();
  for (Mesh& mesh : meshes) {
    mesh.rebuild();
    mesh.refit();
  }
}

TEST_P(RecordedReach, MemoryBehindHandlesIsKeptUntilTheSubmissionHasRun) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  const TimelineSemaphore ends(e.device);
  Array<std::uint64_t> id = zeros<std::uint64_t>(e.device, 1);
  Array<float> distance = zeros<float>(e.device, 1);
  const VkCommandBuffer commands = e.renderer.begin();
  const Recording recording = e.device.stream().record_into(commands, [&] { launch(ask, 1, id, distance); });
  e.renderer.submit(commands);
  recording.submitted();
  recording.wait();
  const MeshData data = shapes::icosphere(1, 3);
  std::optional<Mesh> mesh(Mesh(Array<vec3>(e.device, data.points), Array<int>(e.device, data.indices)));
  const std::weak_ptr<detail::Storage> points = mesh->points().storage();
  id.fill(mesh->id());
  recording.prepare();
  e.renderer.submit_again(commands);
  recording.submitted(ends.vk(), 1);
  mesh.reset();
  EXPECT_FALSE(points.expired()) << "the second submission has not ended";
  e.renderer.wait_idle();
  ends.signal(1);
  EXPECT_NEAR(distance.at(0), 99, 1e-3);
  recording.prepare();
  EXPECT_TRUE(points.expired());
}

// At its end such memory asks all streams that worked on it, that of the recordings among them.
TEST_P(RecordedReach, MemoryOfOthersIsKeptAndGivenBack) {
  if (on_host() || !device().wraps_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  std::vector<float> memory(1024, 10.f);
  {
    Array<Holder> items(e.device, {Holder{wrap(e.device, memory)}});
    Doubling work(e, items);
    work.submit_again();
    items = {};
    EXPECT_THROW(wrap(e.device, memory), Error) << "the recording keeps it";
    work.end();
  }
  EXPECT_EQ(memory[3], 40);
  EXPECT_NO_THROW(wrap(e.device, memory));
}

}  // namespace
