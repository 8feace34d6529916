// Memory that runs out: wherever that happens, no later result is wrong, and work continues when there is enough.
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/weft.h>

#include <climits>
#include <functional>
#include <optional>

#include "../../../runtime/core/state.h"
#include "../device_test.h"
#include "../forwarding_device.h"

using namespace weft;
using weft::test::error_of;
using weft::test::expect_contains;

namespace {

// The reference device, which refuses some requests for memory.
class Scarce final : public test::ForwardingDevice {
 public:
  /// Refuses `refusals` requests in a row, after `granted` others.
  void refuse_after(int granted, int refusals = INT_MAX) { granted_ = granted, refusals_ = refusals; }
  void refuse_none() { refusals_ = 0; }

  backend::Allocation allocate(std::size_t bytes, backend::MemoryKind kind) override {
    if (refusals_ > 0 && granted_-- <= 0) {
      --refusals_;
      throw Error(ErrorKind::out_of_memory, "refused by the test");
    }
    return ForwardingDevice::allocate(bytes, kind);
  }

 private:
  int granted_ = 0, refusals_ = 0;
};

class ScarceMemory : public testing::Test {
 protected:
  ScarceMemory() : state_(std::make_shared<detail::DeviceState>()) {
    static std::uint64_t last_id = ~0ull - 1;
    state_->id = last_id--;  // kernels know devices by it
    auto scarce = std::make_unique<Scarce>();
    memory_ = scarce.get();
    state_->device = std::move(scarce);
    state_->streams.push_back(std::make_unique<detail::StreamState>(*state_, state_->device->create_stream()));
    state_->default_stream = state_->streams[0].get();
  }
  Device device() const { return Device(state_); }
  Scarce& memory() const { return *memory_; }

  /// Calls f() once for each of its requests for memory, and refuses that request and all later ones; calls
  /// `afterwards` each time. Then calls f() with enough memory. \return  the number of requests
  int refuse_each(const std::function<void()>& f, const std::function<void()>& afterwards) {
    for (int granted = 0;; ++granted) {
      std::string error;
      memory().refuse_after(granted);
      try {
        f();
      } catch (const Error& e) {
        error = e.what();
      }
      memory().refuse_none();
      if (error.empty() || granted == 1000) return granted;
      SCOPED_TRACE(granted);
      expect_contains(error, "refused by the test");
      afterwards();
    }
  }

 private:
  std::shared_ptr<detail::DeviceState> state_;
  Scarce* memory_ = nullptr;
};

constexpr const char* kRebuild = "call its rebuild()";

// n boxes of length 1/2 along x, from `begin` on.
struct Boxes {
  Boxes(const Device& device, int n, float begin) {
    std::vector<vec3> lo, hi;
    for (int k = 0; k < n; ++k) {
      lo.push_back({begin + float(k), 0, 0});
      hi.push_back({begin + float(k) + 0.5f, 1, 1});
    }
    lowers = Array<vec3>(device, lo);
    uppers = Array<vec3>(device, hi);
  }
  Array<vec3> lowers, uppers;
};

const auto count_boxes = kernel("count boxes", [](Var<BvhData> bvh, Arr<int> counts) {
  for ([[maybe_unused]] auto i : bvh_query_aabb(bvh, Vec3(0, 0, 0), Vec3(20, 1, 1))) counts[0] += 1;
});
const auto count_by_id = kernel("count by id", [](UInt64 id, Arr<int> counts) {
  for ([[maybe_unused]] auto i : bvh_query_aabb(id, Vec3(0, 0, 0), Vec3(20, 1, 1))) counts[0] += 1;
});

// ---- Hierarchies

TEST_F(ScarceMemory, a_hierarchy_that_could_not_be_rebuilt_is_refused_until_it_is) {
  const Boxes few(device(), 30, 0), many(device(), 70, 10), as_many(device(), 30, 10);
  const Array<int> groups = zeros<int>(device(), 30);
  for (const BvhBuilder builder : {BvhBuilder::hploc, BvhBuilder::lbvh})
    for (const Boxes* next : {&many, &as_many})
      for (const bool grouped : {false, true}) {
        if (grouped && next == &many) continue;
        Bvh bvh(device(), few.lowers, few.uppers, {.builder = builder, .leaf_size = 4});
        const std::uint64_t id = bvh.id();
        Array<int> counts = zeros<int>(device(), 1);
        const auto counted = [&] {
          counts.zero();
          launch(count_boxes, 1, bvh, counts);
          const int by_arrays = counts.at(0);
          launch(count_by_id, 1, id, counts);
          EXPECT_EQ(counts.at(0), 2 * by_arrays);
          return by_arrays;
        };
        EXPECT_EQ(counted(), 21);
        const int requests =
            refuse_each([&] { bvh.rebuild(next->lowers, next->uppers, grouped ? groups : Array<int>()); },
                        [&] {
                          expect_contains(error_of([&] { launch(count_boxes, 1, bvh, counts); }), kRebuild);
                          expect_contains(error_of([&] { launch(count_by_id, 1, id, counts); }), "needs its rebuild()");
                          expect_contains(error_of([&] { (void)bvh.depth(); }), kRebuild);
                          expect_contains(error_of([&] { (void)bvh.id(); }), kRebuild);
                          expect_contains(error_of([&] { bvh.refit(few.lowers, few.uppers); }), "rebuild()");
                          bvh.rebuild(few.lowers, few.uppers, Array<int>());
                          EXPECT_EQ(counted(), 21);
                        });
        EXPECT_GE(requests, 2);
        EXPECT_EQ(counted(), 11);
      }
}

TEST_F(ScarceMemory, a_capture_that_runs_out_of_memory_leaves_a_hierarchy_as_it_was) {
  const Boxes few(device(), 30, 0);
  Bvh bvh(device(), few.lowers, few.uppers);
  Array<int> counts = zeros<int>(device(), 1);
  const int requests = refuse_each(
      [&] {
        capture(device(), [&] {
          bvh.rebuild();
          launch(count_boxes, 1, bvh, counts);
        }).launch();
      },
      [&] {
        counts.zero();
        launch(count_boxes, 1, bvh, counts);
        EXPECT_EQ(counts.at(0), 21);
        bvh.refit(few.lowers, few.uppers);
      });
  EXPECT_GE(requests, 2);
}

TEST_F(ScarceMemory, a_hierarchy_that_failed_is_rebuilt_before_a_capture) {
  const Boxes few(device(), 30, 0), many(device(), 70, 10);
  Array<int> counts = zeros<int>(device(), 1);
  int failures = 0;
  for (int granted = 0; granted < 20; ++granted) {
    Bvh bvh(device(), few.lowers, few.uppers);
    const std::uint64_t id = bvh.id();
    memory().refuse_after(granted);
    try {
      bvh.rebuild(many.lowers, many.uppers);
    } catch (const Error&) {
      ++failures;
    }
    memory().refuse_none();
    const auto rebuild = [&] { return capture(device(), [&] { bvh.rebuild(many.lowers, many.uppers); }); };
    if (failures == granted + 1) {
      expect_contains(error_of(rebuild), kRebuild);
      bvh.rebuild(many.lowers, many.uppers);
    }
    const BvhData data = bvh.data();
    rebuild().launch();
    counts.zero();
    launch(count_boxes, 1, bvh, counts);
    launch(count_by_id, 1, id, counts);
    EXPECT_EQ(counts.at(0), 2 * 11) << granted;
    bvh.rebuild(few.lowers, few.uppers);
    expect_contains(error_of([&] { launch(count_boxes, 1, data, counts); }), "is not what the device holds");
  }
  EXPECT_GE(failures, 2);
  EXPECT_LT(failures, 20);
}

// A graph may keep the memory of a handle whose structure has ended.
TEST_F(ScarceMemory, structures_that_failed_and_are_gone_stand_in_nobodys_way) {
  const Boxes few(device(), 30, 0), many(device(), 70, 10);
  const Bvh other(device(), few.lowers, few.uppers);
  const std::uint64_t id = other.id();
  const Array<vec3> points(device(), {vec3{0, 0, 0}, vec3{1, 0, 0}, vec3{0, 1, 0}});
  Array<int> indices(device(), {0, 1, 2}), counts = zeros<int>(device(), 1);
  std::optional<Bvh> bvh(std::in_place, device(), few.lowers, few.uppers);
  std::optional<Mesh> mesh(std::in_place, points, indices);
  (void)bvh->id();
  (void)mesh->id();
  const Graph graph = capture(device(), [&] {
    bvh->rebuild();
    mesh->refit();
  });
  memory().refuse_after(0);
  EXPECT_THROW(bvh->rebuild(many.lowers, many.uppers), Error);
  memory().refuse_none();
  indices.assign(std::vector<int>{0, 2, 1});
  const auto refused = [&] {
    expect_contains(error_of([&] { launch(count_by_id, 1, id, counts); }), "needs its rebuild()");
  };
  refused();
  bvh.reset();
  refused();
  mesh.reset();
  launch(count_by_id, 1, id, counts);
  EXPECT_EQ(counts.at(0), 21);
}

// ---- Meshes

TEST_F(ScarceMemory, a_mesh_that_could_not_be_rebuilt_is_refused_until_it_is) {
  // There are two triangles, one above the other, and the indices choose their order.
  const Array<vec3> points(device(),
                           {vec3{0, 0, 0}, vec3{1, 0, 0}, vec3{0, 1, 0}, vec3{0, 0, 5}, vec3{1, 0, 5}, vec3{0, 1, 5}});
  const std::vector<int> lower_first{0, 1, 2, 3, 4, 5}, upper_first{3, 4, 5, 0, 1, 2};
  const auto ask = kernel("ask", [](Var<MeshArrays> mesh, Arr<int> faces) {
    faces[0] = mesh_query_ray(mesh, Vec3(0.2f, 0.2f, 9), Vec3(0, 0, -1)).face;
  });
  Array<int> faces = zeros<int>(device(), 1);
  for (const bool winding : {false, true}) {
    Array<int> indices(device(), lower_first);
    Mesh mesh(points, indices, {.winding_number = winding});
    const auto face = [&] {
      launch(ask, 1, mesh, faces);
      return faces.at(0);
    };
    EXPECT_EQ(face(), 1);
    const auto refused = [&] {
      expect_contains(error_of([&] { launch(ask, 1, mesh, faces); }), kRebuild);
      expect_contains(error_of([&] { mesh.refit(); }), kRebuild);
    };
    indices.assign(upper_first);
    EXPECT_GE(refuse_each([&] { mesh.rebuild(); }, refused), 2);
    EXPECT_EQ(face(), 0);
    // A refit needs no memory: the rows of a strided view are copied to where they were copied before.
    const Array<vec3> both = zeros<vec3>(device(), 12);
    Array<vec3> every_other = both.slice(0, 12, 2);
    every_other.copy_from(points);
    Mesh strided(every_other, indices, {.winding_number = winding});
    (void)strided.id();
    EXPECT_EQ(refuse_each([&] { strided.refit(); }, [] {}), 0);
    launch(ask, 1, strided, faces);
    EXPECT_EQ(faces.at(0), 0);
  }
}

// ---- Hash grids

TEST_F(ScarceMemory, a_hash_grid_that_could_not_be_built_finds_what_it_found) {
  const auto near = kernel("near", [](Var<HashGridArrays> grid, Arr<int> counts) {
    for ([[maybe_unused]] auto i : hash_grid_query(grid, Vec3(0, 0, 0), 1.f)) counts[0] += 1;
  });
  const auto points = [&](int n) { return full<vec3>(device(), n, vec3{0.25f, 0, 0}); };
  const Array<vec3> few = points(20), many = points(50);
  HashGrid grid(device(), 8, 8, 8);
  grid.build(few, 1.f);
  Array<int> counts = zeros<int>(device(), 1);
  const auto counted = [&] {
    counts.zero();
    launch(near, 1, grid, counts);
    return counts.at(0);
  };
  const int requests = refuse_each([&] { grid.build(many, 1.f); }, [&] { EXPECT_EQ(counted(), 20); });
  EXPECT_GE(requests, 1);
  EXPECT_EQ(counted(), 50);
}

// ---- Arrays

// Freed memory may wait for work that has not run: a new array waits for it, even in a capture.
TEST_F(ScarceMemory, an_array_is_made_at_the_second_attempt) {
  memory().refuse_after(0, 1);
  EXPECT_EQ(full<int>(device(), 10, 3).to_vector(), std::vector<int>(10, 3));
  Array<int> out = zeros<int>(device(), 10);
  const auto three = kernel("three", [](Arr<int> x, Arr<int> out) { out[tid()] = x[tid()] = 3; });
  memory().refuse_after(0, 1);
  const Graph graph = capture(device(), [&] { launch(three, 10, empty<int>(device(), 10), out); });
  graph.launch();
  EXPECT_EQ(out.to_vector(), std::vector<int>(10, 3));
}

TEST_F(ScarceMemory, what_other_kernels_report_is_not_thrown_by_an_allocation) {
  const auto fails = kernel("fails", [](Arr<int> x) { assert_(x[tid()] > 0, "not above zero"); });
  Array<int> x = zeros<int>(device(), 4);
  set_debug(true);
  launch(fails, 4, x);
  memory().refuse_after(0, 1);
  Array<int> y = empty<int>(device(), 10);
  expect_contains(error_of([&] { device().synchronize(); }), "not above zero");
  set_debug(false);
}

}  // namespace
