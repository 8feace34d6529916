// One device, or several, used by several host threads at the same time. The preset tsan runs these tests.
#include <weft/algorithms.h>
#include <weft/geometry.h>
#include <weft/runtime/graph.h>
#include <weft/runtime/profile.h>
#include <weft/weft.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

#include "../watched_test.h"

using namespace weft;

namespace {

WATCHED_TEST(Threads);

constexpr int kThreads = 4, kRounds = 6, n = 300;

/// Runs work(0), work(1), ... each in a thread of its own; all begin together.
void together(const std::function<void(int)>& work, int threads = kThreads) {
  std::atomic<int> ready = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      ++ready;
      while (ready < threads) std::this_thread::yield();
      try {
        work(t);
      } catch (const std::exception& e) {
        ADD_FAILURE() << "thread " << t << ": " << e.what();
      }
    });
  for (std::thread& t : all) t.join();
}

const auto add = kernel("add", [](Arr<float> x, Float a) { x[tid()] += a; });
const auto square = kernel("square", [](Arr<const float> x, Arr<float> y) { y[tid()] = x[tid()] * x[tid()]; });
const auto count_up = kernel("count up", [](Arr<int> sum) { atomic_add(sum[0], 1); });

TEST_P(Threads, trace_and_compile_one_kernel_at_the_same_time) {
  for (int round = 0; round < kRounds; ++round) {
    const auto fresh = kernel("fresh", [=](Arr<float> x, Arr<const float> y) { x[tid()] = y[tid()] + float(round); });
    together([&](int t) {
      Array<float> x = zeros<float>(device(), n), y = full<float>(device(), n, float(t));
      // The kernel has two variants: contiguous and strided.
      launch(fresh, n, x, y);
      EXPECT_EQ(x.at(n - 1), t + round);
      launch(fresh, n / 2, x.slice(0, n, 2), y);
      EXPECT_EQ(x.at(2), t + round);
    });
  }
}

TEST_P(Threads, make_and_drop_kernels_of_their_own) {
  together([&](int t) {
    Array<float> x = zeros<float>(device(), n);
    for (int k = 0; k < kRounds; ++k) {
      const auto own = kernel("own", [=](Arr<float> x) { x[tid()] += float(10 * t + k % 3); });
      launch(own, n, x);
    }
    EXPECT_EQ(x.at(3), 10 * t * kRounds + kRounds);
  });
}

TEST_P(Threads, allocate_copy_and_read) {
  together([&](int t) {
    for (int k = 1; k <= 3 * kRounds; ++k) {
      const int size = n * k + t;
      const std::vector<float> values(static_cast<std::size_t>(size), float(k));
      Array<float> x(device(), values), y = x.clone(), z = zeros<float>(device(), size);
      z.copy_from(y);
      z.slice(0, size / 2).fill(float(t));
      std::vector<float> out(static_cast<std::size_t>(size));
      HostCopy copy = z.copy_to_async(out);
      launch(add, size, y, 1.f);
      EXPECT_EQ(y.at(size - 1), k + 1);
      copy.wait();
      EXPECT_EQ(out.front(), t);
      EXPECT_EQ(out.back(), k);
      EXPECT_EQ(x.to_vector(), values);
    }
  });
}

TEST_P(Threads, share_arrays_streams_and_events) {
  Array<int> sum = zeros<int>(device(), 1);
  const Stream shared = device().create_stream();
  std::vector<Event> events(kThreads);
  together([&](int t) {
    const Stream own = device().create_stream();
    for (int k = 0; k < 5 * kRounds; ++k) {
      launch(own, count_up, 10, sum);
      launch(shared, count_up, 10, sum);
      launch(count_up, 10, sum);
      if (k % 4 == t) {
        const Event event = own.record();
        shared.wait(event);
        event.wait();
        EXPECT_TRUE(event.done());
      }
      if (k % 7 == t) {
        EXPECT_GE(sum.at(0), 10);
      }
    }
    events[std::size_t(t)] = own.record();
  });
  for (const Event& event : events) event.wait();
  EXPECT_EQ(sum.at(0), kThreads * 5 * kRounds * 30);
}

TEST_P(Threads, capture_and_launch_graphs) {
  Array<int> sum = zeros<int>(device(), 1);
  GraphNode node;
  const Graph common = capture(device(), [&] {
    launch(count_up, 10, sum);
    node = captured_launch();
  });
  together([&](int t) {
    const Stream own = device().create_stream();
    Array<float> x = zeros<float>(device(), n), y = zeros<float>(device(), n);
    for (int k = 0; k < kRounds; ++k) {
      Graph graph = capture(device(), [&] {
        launch(add, n, x, 1.f);
        launch(square, n, x, y);
      });
      graph.launch(own);
      common.launch(own);
      graph.launch();
      if (t == 0) common.set(node, count_up, sum);
    }
    EXPECT_EQ(y.at(0), 4 * kRounds * kRounds);
  });
  EXPECT_EQ(sum.at(0), kThreads * kRounds * 10);
}

TEST_P(Threads, record_a_tape_each) {
  Array<float> shared = full<float>(device(), n, 2);
  together([&](int t) {
    Array<float> x = full<float>(device(), n, float(t)).requires_grad(), y = zeros<float>(device(), n);
    Array<float> z = zeros<float>(device(), n);
    for (int k = 0; k < kRounds; ++k) {
      Tape tape;
      tape.record([&] {
        launch(square, n, x, y);
        launch(square, n, shared, z);
      });
      x.zero_grad();
      tape.backward({{y, ones<float>(device(), n)}});
      EXPECT_EQ(x.grad().at(n - 1), 2 * t);
      EXPECT_EQ(z.at(0), 4);
    }
  });
}

TEST_P(Threads, sort_and_scan) {
  together([&](int t) {
    std::vector<int> values(static_cast<std::size_t>(n + t));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = int((i * 7919 + std::size_t(t)) % 1000);
    Array<int> keys(device(), values), sums = zeros<int>(device(), n + t);
    radix_sort(keys);
    inclusive_scan(keys, sums);
    std::ranges::sort(values);
    EXPECT_EQ(keys.to_vector(), values);
    EXPECT_EQ(sums.at(n + t - 1), std::accumulate(values.begin(), values.end(), 0));
  });
}

TEST_P(Threads, hear_their_own_kernels_faults) {
  const auto check =
      kernel("check", [](Arr<const float> x, Int most) { assert_(x[tid()] <= Float(most), "too large"); });
  together([&](int t) {
    const Stream own = device().create_stream();
    Array<float> x = full<float>(device(), n, float(t));
    for (int k = 0; k < kRounds; ++k) {
      launch(own, check, n, x, k % kThreads);
      const std::string what = k % kThreads < t ? "too large" : "";
      try {
        own.record().wait();
        EXPECT_EQ(what, "");
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kernel_fault);
        EXPECT_EQ(what, "too large") << e.what();
      }
    }
  });
}

TEST_P(Threads, use_several_devices) {
  const Device reference = Device::open("reference"), other = Device::open(device().name());
  const Device devices[] = {device(), other, reference};
  together([&](int t) {
    for (int k = 0; k < kRounds; ++k) {
      const Device &from = devices[(t + k) % 3], &to = devices[(t + k + 1 + k % 2) % 3];
      Array<float> x = full<float>(from, n, float(t)), y = zeros<float>(to, n);
      launch(add, n, x, float(k));
      y.copy_from(x);
      launch(square, n, y, y);
      Array<float> back = y.to(from);
      launch(add, n, back, 1.f);
      EXPECT_EQ(back.at(n - 1), (t + k) * (t + k) + 1);
      // Views are packed on their own devices.
      y.slice(0, n, 3).copy_from(back.slice(0, n, 3));
      EXPECT_EQ(y.at(3), (t + k) * (t + k) + 1);
      EXPECT_EQ(y.at(1), (t + k) * (t + k));
    }
  });
}

TEST_P(Threads, open_and_close_devices) {
  together([&](int t) {
    for (int k = 0; k < 2; ++k) {
      const Device own = Device::open(t % 2 ? "reference" : device().name());
      Array<float> x = zeros<float>(own, n);
      launch(add, n, x, float(t));
      EXPECT_EQ(x.at(0), t);
      const Device again(device().name());
      EXPECT_EQ(again, device());
    }
  });
}

TEST_P(Threads, are_profiled_while_they_work) {
  std::atomic<bool> stop = false;
  std::thread profiling([&] {
    while (!stop) {
      Profiler profiler(device());
      std::this_thread::yield();
      const Profile p = profiler.stop();
      for (const Profile::Operation& o : p.operations) EXPECT_LE(o.begin, o.end);
    }
  });
  const double before = device().dispatch_budget();
  device().set_dispatch_budget(1e-3);
  together([&](int t) {
    const Stream own = device().create_stream();
    Array<float> x = zeros<float>(device(), n);
    for (int k = 0; k < 5 * kRounds; ++k) {
      const Timer timer("round");
      launch(own, add, n, x, float(t));
      if (k % 5 == 0) launch(add, n, x, 1.f);
    }
    EXPECT_EQ(x.at(0), 5 * kRounds * t + kRounds);
  });
  device().set_dispatch_budget(before);
  stop = true;
  profiling.join();
}

// A launch by handle holds the structure for a moment, so a mesh that its maker has dropped may end there, even in a
// launch that is refused because the mesh's indices have changed.
TEST_P(Threads, meshes_may_end_in_launches_that_they_refuse) {
  const auto ray = kernel("ray by id", [](UInt64 id, Arr<int> hits) {
    hits[0] = select(mesh_query_ray(id, Vec3(0.25f, 0.25f, 1), Vec3(0, 0, -1)).hit, 1, 0);
  });
  const Array<vec3> points(device(), {vec3{0, 0, 0}, vec3{1, 0, 0}, vec3{0, 1, 0}});
  std::atomic<int> makers = 1, refused = 0;
  together(
      [&](int t) {
        if (t == 0) {
          const int meshes = on_reference() ? 1500 : 300;
          for (int k = 0; k < meshes; ++k) {
            Array<int> indices(device(), {0, 1, 2});
            Mesh mesh(points, indices);
            (void)mesh.id();
            const int before = refused;
            indices.assign(std::vector<int>{0, 1, 2});
            // Most meshes end at once, others while launches are being refused.
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
            while (k % 16 == 0 && refused == before && std::chrono::steady_clock::now() < end)
              std::this_thread::yield();
          }
          --makers;
        } else {
          Array<int> hits = zeros<int>(device(), 1);
          while (makers > 0) try {
              launch(ray, 1, std::uint64_t(0), hits);
              hits.wait();  // otherwise it is long before a mesh can be made
            } catch (const Error& e) {
              ++refused;
              test::expect_contains(e.what(), "needs its rebuild()");
            }
        }
      },
      3);
  EXPECT_GT(refused, 0);
  Array<int> hits = zeros<int>(device(), 1);
  const Mesh mesh(points, Array<int>(device(), {0, 1, 2}));
  launch(ray, 1, mesh.id(), hits);
  EXPECT_EQ(hits.at(0), 1);
}

}  // namespace
