// Recordings and the memory that kernels reach through elements and handles: that of each submission.
#include <gtest/gtest.h>
#include <weft/geometry.h>

#include <atomic>
#include <chrono>
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

/// A recording that copies all elements.
struct CopyingAll : Submitted {
  CopyingAll(Embedded& e, Array<Holder>& to, const Array<Holder>& from) : Submitted(e, [&] { to.copy_from(from); }) {}
};

TEST_P(RecordedReach, ReadingWaitsForASubmissionWhoseElementsHoldTheArray) {
  if (on_reference()) GTEST_SKIP();
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

TEST_P(RecordedReach, WhatIsReplacedBeforeTheSubmissionIsKeptForIt) {
  if (on_reference()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<Holder> from(e.device, {Holder{full<float>(e.device, kSize, 1)}}), to(e.device, {Holder{}});
  CopyingAll work(e, to, from);
  work.submit();
  work.end();
  work.prepare();
  from.fill(Holder{full<float>(e.device, kSize, 5)});
  e.device.synchronize();                              // that is what the submission copies,
  from.fill(Holder{full<float>(e.device, kSize, 7)});  // unless this has begun by then
  work.submit();
  work.end();
  work.recording.wait();
  const Array<float> held = to.at(0).values;
  ASSERT_FALSE(held.is_null());
  EXPECT_TRUE(held.at(3) == 5 || held.at(3) == 7) << held.at(3);
}

/// Frames that a renderer draws, or does not: what is replaced in each lives no longer than what may copy it.
TEST_P(RecordedReach, WhatIsReplacedIsLetGoOf) {
  if (on_reference()) GTEST_SKIP();
  Embedded e(on_gpu());
  constexpr int kFrames = 8;
  enum Step { fill, prepare, submit };
  for (const std::vector<Step>& frame : std::vector<std::vector<Step>>{
           {fill, prepare, submit}, {prepare, fill, submit}, {fill, prepare}, {prepare, fill}}) {
    SCOPED_TRACE(testing::PrintToString(frame));
    Array<Holder> from(e.device, {Holder{full<float>(e.device, kSize, -1)}}), to(e.device, {Holder{}});
    CopyingAll work(e, to, from);
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
        from.fill(next);
      }
    // What is held now, and what was held in the frame before.
    EXPECT_LE(std::ranges::count_if(held, [](const auto& storage) { return !storage.expired(); }), 3);
    if (frame.back() != submit) {
      work.prepare();
      run();
    }
    // What is filled behind prepare() may come before the submission or after it.
    const float last = to.at(0).values.at(3);
    EXPECT_TRUE(last == kFrames - 1 || (last == kFrames - 2 && frame == (std::vector<Step>{prepare, fill, submit})))
        << last;
  }
}

/// Whatever order they are prepared and submitted in: no one keeps for good what another replaces.
TEST_P(RecordedReach, OfTwoRecordingsThatWriteOneArrayNoneKeepsWhatTheOtherReplaces) {
  if (on_reference()) GTEST_SKIP();
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
    Array<Holder> from[2], to(e.device, {Holder{}});
    for (auto& f : from) f = Array<Holder>(e.device, {Holder{full<float>(e.device, kSize, -1)}});
    CopyingAll one(e, to, from[0]), two(e, to, from[1]);
    for (CopyingAll* work : {&one, &two}) {
      work->submit();
      work->end();
    }
    // Where a frame begins with what was prepared in the one before, what is filled may come before it or after it.
    const bool early = frame.front() == submit_one;
    if (early) one.prepare(), two.prepare();
    std::vector<std::weak_ptr<weft::detail::Storage>> held;
    for (int k = 0; k < kFrames; ++k) {
      for (int j = 0; j < 2; ++j) {
        const Holder next{full<float>(e.device, kSize, float(2 * k + j))};
        held.push_back(next.values.storage());
        from[j].fill(next);
      }
      for (const Step step : frame) {
        if (step == prepare_one) one.prepare();
        if (step == prepare_two) two.prepare();
        if (step == submit_one) one.submit();
        if (step == submit_two) two.submit();
      }
      one.end(), two.end();
    }
    // Of two frames at most, and of what is prepared already.
    EXPECT_LE(std::ranges::count_if(held, [](const auto& storage) { return !storage.expired(); }), early ? 8 : 4);
    if (frame.size() == 2) {
      one.prepare(), two.prepare();
      one.submit(), two.submit();
      one.end(), two.end();
    }
    const float last = to.at(0).values.at(3), expected = 2 * (kFrames - 1) + (frame.back() == submit_one ? 0 : 1);
    EXPECT_TRUE(last == expected || (early && last == expected - 2)) << last;
  }
}

TEST_P(RecordedReach, ASubmissionThatDoesNotComeLeavesNothing) {
  if (on_reference()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<Holder> from(e.device, {Holder{full<float>(e.device, kSize, 1)}}), to(e.device, {Holder{}});
  std::weak_ptr<weft::detail::Storage> held;
  {
    CopyingAll work(e, to, from);
    work.submit();
    work.end();
    const Holder next{full<float>(e.device, kSize, 2)};
    held = next.values.storage();
    from.fill(next);
    work.prepare();
  }
  EXPECT_FALSE(held.expired());
  from.fill(Holder{full<float>(e.device, kSize, 3)});
  e.device.synchronize();
  EXPECT_TRUE(held.expired());
  EXPECT_EQ(to.at(0).values.at(3), 1);
}

TEST_P(RecordedReach, WorkOnWhatElementsHoldByThenComesBeforeTheSubmission) {
  if (on_reference()) GTEST_SKIP();
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
  if (on_reference()) GTEST_SKIP();
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

TEST_P(RecordedReach, ElementsThatHeldNothingAreRefusedAsByGraphs) {
  if (on_reference()) GTEST_SKIP();
  Embedded e(on_gpu());
  Array<float> b = full<float>(e.device, kSize, 10);
  Array<Holder> items = zeros<Holder>(e.device, 1);
  Doubling work(e, items);
  items.assign(std::vector<Holder>{Holder{b}});
  expect_contains(error_of([&] { work.recording.prepare(); }),
                  "elements of an array that a recording works on have come to hold arrays since it was made");
  items.assign(std::vector<Holder>{Holder{}});
  work.submit_again();
  work.end();
  EXPECT_EQ(b.at(3), 10);
}

TEST_P(RecordedReach, RefitsOfMeshesThatWereMadeLaterComeBeforeTheSubmission) {
  if (on_reference()) GTEST_SKIP();
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
  if (on_reference()) GTEST_SKIP();
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
  if (on_reference()) GTEST_SKIP();
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
  if (on_reference()) GTEST_SKIP();
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
  if (on_reference() || !device().wraps_host()) GTEST_SKIP();
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
