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
struct IndexHolder {
  Array<int> values;
};
WEFT_STRUCT(IndexHolder, values);

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

auto turn_held = kernel("turn_held", [](Arr<IndexHolder> held) {
  Int i = tid();
  const Int first = held[0].values[3 * i];
  held[0].values[3 * i] = Int(held[0].values[3 * i + 1]);
  held[0].values[3 * i + 1] = first;
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

/// A recording that replaces all elements.
struct Assigning : Submitted {
  Assigning(Embedded& e, Array<Holder>& to, const Array<float>& values)
      : Submitted(e, [&] { to.fill(Holder{values}); }) {}
};

TEST_P(RecordedReach, ReadingWaitsForASubmissionWhoseElementsHoldTheArray) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> a = full<float>(e.device, kSize, 1), b = full<float>(e.device, kSize, 10);
  Array<Holder> items(e.device, {Holder{a}});
  Doubling work(e, items);
  EXPECT_EQ(a.at(3), 2);
  items.assign(std::vector<Holder>{Holder{b}});
  work.submit_again();
  std::atomic<bool> read = false;
  float seen = 0;
  std::thread reader([&] {
    seen = b.at(3);
    read = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(read) << "the second submission has not ended";
  work.end();
  reader.join();
  EXPECT_EQ(seen, 20);
  EXPECT_EQ(a.at(3), 2);
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

/// Frames that a renderer draws, or does not: what is replaced in each is let go of.
TEST_P(RecordedReach, WhatIsReplacedIsLetGoOf) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  constexpr int kFrames = 8;
  enum Step { fill, prepare, submit };
  for (const std::vector<Step>& frame : std::vector<std::vector<Step>>{
           {fill, prepare, submit}, {prepare, fill, submit}, {fill, prepare}, {prepare, fill}}) {
    SCOPED_TRACE(testing::PrintToString(frame));
    Array<Holder> to(e.device, {Holder{}});
    Assigning work(e, to, full<float>(e.device, kSize, -1));
    const auto run = [&] {
      work.submit();
      work.end();
    };
    run();
    std::vector<std::weak_ptr<weft::detail::Storage>> held;
    for (int k = 0; k < kFrames; ++k)
      for (const Step step : frame) {
        if (step == prepare) work.prepare();
        if (step == submit) run();
        if (step != fill) continue;
        const Holder next{full<float>(e.device, kSize, float(k))};
        held.push_back(next.values.storage());
        to.fill(next);
      }
    // What is held now, and what was held in the frame before.
    EXPECT_LE(std::ranges::count_if(held, [](const auto& storage) { return !storage.expired(); }), 2);
    const float last = to.at(0).values.at(3);
    if (frame.back() != submit)
      EXPECT_EQ(last, kFrames - 1);
    else  // what is filled behind prepare() may come before the submission or after it
      EXPECT_TRUE(last == -1 || (last == kFrames - 1 && frame.front() == prepare)) << last;
    if (frame.back() == submit) continue;
    work.prepare();
    run();
    EXPECT_EQ(to.at(0).values.at(3), -1);
  }
}

/// Whatever order they are prepared and submitted in: no one keeps for good what another replaces.
TEST_P(RecordedReach, OfTwoRecordingsThatWriteOneArrayNoneKeepsWhatTheOtherReplaces) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  constexpr int kFrames = 24;
  enum Step { prepare_one, prepare_two, submit_one, submit_two };
  for (const std::vector<Step>& frame :
       std::vector<std::vector<Step>>{{prepare_one, submit_one, prepare_two, submit_two},
                                      {prepare_one, prepare_two, submit_one, submit_two},
                                      {prepare_one, prepare_two, submit_two, submit_one},
                                      {submit_one, prepare_one, submit_two, prepare_two},
                                      {prepare_one, prepare_two}}) {
    SCOPED_TRACE(testing::PrintToString(frame));
    Array<Holder> to(e.device, {Holder{}});
    Assigning one(e, to, full<float>(e.device, kSize, -1)), two(e, to, full<float>(e.device, kSize, -2));
    for (Assigning* work : {&one, &two}) {
      work->submit();
      work->end();
    }
    // Where a frame begins with what was prepared in the one before, what is filled may come before it or after it.
    const bool early = frame.front() == submit_one;
    if (early) one.prepare(), two.prepare();
    std::vector<std::weak_ptr<weft::detail::Storage>> held;
    for (int k = 0; k < kFrames; ++k) {
      const Holder next{full<float>(e.device, kSize, float(k))};
      held.push_back(next.values.storage());
      to.fill(next);
      for (const Step step : frame) {
        if (step == prepare_one) one.prepare();
        if (step == prepare_two) two.prepare();
        if (step == submit_one) one.submit();
        if (step == submit_two) two.submit();
      }
      one.end(), two.end();
    }
    EXPECT_LE(std::ranges::count_if(held, [](const auto& storage) { return !storage.expired(); }), 2);
    if (frame.size() == 2) {
      one.prepare(), two.prepare();
      one.submit(), two.submit();
      one.end(), two.end();
    }
    const float last = to.at(0).values.at(3), expected = frame.back() == submit_one ? -1 : -2;
    EXPECT_TRUE(last == expected || (early && last == kFrames - 1)) << last;
  }
}

TEST_P(RecordedReach, ASubmissionThatDoesNotComeLeavesNothing) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<Holder> to(e.device, {Holder{full<float>(e.device, kSize, 1)}});
  std::weak_ptr<weft::detail::Storage> held;
  {
    const Array<float> next = full<float>(e.device, kSize, 2);
    held = next.storage();
    Assigning work(e, to, next);
    work.submit();
    work.end();
    to.fill(Holder{full<float>(e.device, kSize, 3)});
    work.prepare();
    EXPECT_FALSE(held.expired());
  }
  e.device.synchronize();
  EXPECT_TRUE(held.expired());
  EXPECT_EQ(to.at(0).values.at(3), 3);
}

TEST_P(RecordedReach, WorkOnWhatElementsHoldByThenComesBeforeTheSubmission) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> a = full<float>(e.device, kSize, 1), b = full<float>(e.device, kSize, 10);
  Array<Holder> items(e.device, {Holder{a}});
  Doubling work(e, items);
  items.assign(std::vector<Holder>{Holder{b}});
  const Stream stream = e.device.create_stream();
  launch(stream, add_one, kSize, b);
  launch(stream, add_one, kSize, b);
  work.submit_again();
  work.end();
  EXPECT_EQ(b.at(3), 24);
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

TEST_P(RecordedReach, ElementsThatHeldNothingMayComeToHoldArrays) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> b = full<float>(e.device, kSize, 10);
  Array<Holder> items = zeros<Holder>(e.device, 1);
  Doubling work(e, items);
  items.assign(std::vector<Holder>{Holder{b}});
  const Stream stream = e.device.create_stream();
  launch(stream, add_one, kSize, b);
  work.submit_again();
  work.end();
  EXPECT_EQ(b.at(3), 22);
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

TEST_P(RecordedReach, MeshesAreStaleBehindASubmissionThatWritesTheirIndices) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  const MeshData data = shapes::icosphere(1, 1);
  const Array<vec3> points(e.device, data.points);
  const Array<int> from(e.device, data.indices);
  Array<int> anew = from.clone(), later = from.clone(), held_at_first = from.clone(), held_then = from.clone();
  Array<IndexHolder> held(e.device, {IndexHolder{from.clone()}});
  Mesh made_anew(points, anew);
  Submitted work(e, [&] {
    later.copy_from(from);
    anew.copy_from(from);
    made_anew.rebuild();
    launch(turn_held, data.indices.size() / 3, held);
  });
  std::vector<Mesh> meshes;
  const auto expect_stale = [&] {
    for (std::size_t k = 0; k < meshes.size(); ++k) {
      SCOPED_TRACE(k);
      expect_contains(error_of([&] { meshes[k].refit(); }), "rebuild()");
    }
    made_anew.refit();
  };
  work.submit();
  expect_stale();
  work.end();
  held.assign(std::vector<IndexHolder>{IndexHolder{held_at_first}});
  for (const Array<int>& indices : {later, held_at_first, held_then}) meshes.emplace_back(points, indices);
  work.prepare();
  // All would be in order, had the submission come before this.
  for (Mesh& mesh : meshes) mesh.rebuild();
  meshes.emplace_back(points, later);
  held.assign(std::vector<IndexHolder>{IndexHolder{held_then}});
  work.submit();
  expect_stale();
  work.end();
  for (Mesh& mesh : meshes) {
    mesh.rebuild();
    mesh.refit();
  }
}

TEST_P(RecordedReach, MemoryBehindElementsIsKeptUntilTheSubmissionHasRun) {
  if (on_host()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> a = full<float>(e.device, kSize, 1), b = full<float>(e.device, kSize, 10);
  Array<Holder> items(e.device, {Holder{a}});
  Doubling work(e, items);
  items.assign(std::vector<Holder>{Holder{b}});
  const std::weak_ptr<detail::Storage> held = b.storage();
  work.submit_again();
  b = {};
  items.assign(std::vector<Holder>{Holder{a}});
  EXPECT_FALSE(held.expired()) << "the second submission has not ended";
  work.end();
  work.submit_again();
  EXPECT_TRUE(held.expired());
  work.end();
  EXPECT_EQ(a.at(3), 4);
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
  Array<float> a = full<float>(e.device, kSize, 1);
  Array<Holder> items(e.device, {Holder{a}});
  Doubling work(e, items);
  {
    Array<float> around = wrap(e.device, memory);
    items.assign(std::vector<Holder>{Holder{around}});
    work.submit_again();
  }
  items.assign(std::vector<Holder>{Holder{a}});
  work.end();
  work.submit_again();
  work.end();
  EXPECT_EQ(memory[3], 20);
  EXPECT_EQ(a.at(3), 4);
}

}  // namespace
