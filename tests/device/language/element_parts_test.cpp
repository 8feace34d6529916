// Accesses to parts of elements that lie one after another: neighbouring threads share vectors of memory, and what a
// thread does not write must stay as it is.
#include <numeric>
#include <span>
#include <vector>

#include "../device_test.h"
#include "../guarded_memory.h"

namespace weft {
namespace {

DEVICE_TEST(ElementParts);

template <template <class> class F = Host>
struct Grain {
  F<vec3> pos, vel;
  F<float> mass;
};

/// Numbers of threads that leave vectors of all sizes full, partly full and nearly empty.
constexpr int kSizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 49, 64, 100};

std::vector<Grain<>> grains(int n) {
  std::vector<Grain<>> made;
  for (int i = 0; i < n; ++i) {
    const float x = float(10 * i);
    made.push_back({{x, x + 1, x + 2}, {x + 3, x + 4, x + 5}, x + 6});
  }
  return made;
}

std::vector<float> numbers(const std::vector<Grain<>>& grains) {
  std::vector<float> flat;
  for (const Grain<>& g : grains)
    flat.insert(flat.end(), {g.pos.x, g.pos.y, g.pos.z, g.vel.x, g.vel.y, g.vel.z, g.mass});
  return flat;
}

TEST_P(ElementParts, whole_elements_are_read_and_written) {
  const auto k = kernel("whole", [](Arr<Grain<>> grains) {
    Int i = tid();
    Var<Grain<>> g = grains[i];
    g.pos += g.vel * g.mass;
    g.vel = Vec3(g.mass, g.vel.x, g.vel.y);
    grains[i] = g;
  });
  for (const int n : kSizes) {
    std::vector<Grain<>> expected = grains(n);
    Array<Grain<>> array(device(), expected);
    launch(k, n, array);
    for (Grain<>& g : expected) {
      g.pos += g.vel * g.mass;
      g.vel = vec3(g.mass, g.vel.x, g.vel.y);
    }
    EXPECT_EQ(numbers(array.to_vector()), numbers(expected)) << n;
  }
}

TEST_P(ElementParts, other_parts_stay) {
  const auto k = kernel("part", [](Arr<Grain<>> grains) {
    Int i = tid();
    Float m = grains[i].mass;
    grains[i].vel = grains[i].pos * m;
    grains[i].pos.y = m;
  });
  // Elements after the last thread's stay as well.
  for (const int n : kSizes) {
    std::vector<Grain<>> expected = grains(n + 3);
    Array<Grain<>> array(device(), expected);
    launch(k, n, array);
    for (int i = 0; i < n; ++i) {
      Grain<>& g = expected[std::size_t(i)];
      g.vel = g.pos * g.mass;
      g.pos.y = g.mass;
    }
    EXPECT_EQ(numbers(array.to_vector()), numbers(expected)) << n;
  }
}

TEST_P(ElementParts, threads_that_rest_write_nothing) {
  const auto k = kernel("some", [](Arr<Grain<>> grains, Arr<const int> chosen) {
    Int i = tid();
    If (chosen[i] != 0) {
      Var<Grain<>> g = grains[i];
      g.pos = g.vel;
      g.mass = -g.mass;
      grains[i] = g;
    }
  });
  for (const int n : kSizes) {
    std::vector<Grain<>> expected = grains(n);
    std::vector<int> chosen;
    for (int i = 0; i < n; ++i) chosen.push_back(i % 3 == 1 || i % 7 == 0);
    Array<Grain<>> array(device(), expected);
    launch(k, n, array, Array<int>(device(), chosen));
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (chosen[i]) {
        expected[i].pos = expected[i].vel;
        expected[i].mass = -expected[i].mass;
      }
    EXPECT_EQ(numbers(array.to_vector()), numbers(expected)) << n;
  }
}

TEST_P(ElementParts, the_first_and_the_last_scalar_of_an_array_are_its_ends) {
  // A thread reads scalars 3 i and 3 i + 1 of an array that ends with the last of them.
  const auto k = kernel("ends", [](Arr<const int> x, Arr<int> out) {
    Int i = tid();
    out[2 * i] = x[3 * i] + x[3 * i + 1];
  });
  for (const int n : kSizes) {
    std::vector<int> x(std::size_t(3 * n - 1)), expected(std::size_t(2 * n), -1);
    std::iota(x.begin(), x.end(), 5);
    Array<int> in(device(), x), out(device(), expected);
    launch(k, n, in, out);
    for (std::size_t i = 0; i < std::size_t(n); ++i) expected[2 * i] = x[3 * i] + x[3 * i + 1];
    EXPECT_EQ(out.to_vector(), expected) << n;
  }
}

#ifdef __linux__
TEST_P(ElementParts, nothing_is_read_or_written_beyond_the_end_of_memory) {
  if (GetParam() != "native") GTEST_SKIP() << "other devices may read the whole page";
  const auto k = kernel("ends", [](Arr<float> x, Arr<const int> chosen, Arr<float> sum) {
    Int i = tid();
    If (chosen[i] == 1) {
      sum[i] = x[3 * i] + x[3 * i + 1];
      x[3 * i + 1] = -1.f;
    }
  });
  const test::GuardedMemory page(4096);
  for (const int n : kSizes) {
    const std::span<float> memory = page.last<float>(std::size_t(3 * n - 1));
    std::iota(memory.begin(), memory.end(), 1.f);
    std::vector<int> chosen;
    for (int i = 0; i < n; ++i) chosen.push_back(i % 3 != 1);
    Array<float> x = wrap(device(), memory), sum = zeros<float>(device(), n);
    launch(k, n, x, Array<int>(device(), chosen), sum);
    x.wait();
    for (int i = 0; i < n; ++i) {
      const bool takes = chosen[std::size_t(i)] == 1;
      EXPECT_EQ(sum.at(i), takes ? float(6 * i + 3) : 0) << n;
      EXPECT_EQ(memory[std::size_t(3 * i + 1)], takes ? -1 : float(3 * i + 2)) << n;
    }
  }
}
#endif

TEST_P(ElementParts, accesses_keep_their_order) {
  // Two arrays that may be the same memory, and a part that is written twice.
  const auto k = kernel("order", [](Arr<int> a, Arr<int> b, Arr<int> seen) {
    Int i = tid();
    a[3 * i] = 1;
    b[3 * i] = 2;
    a[3 * i + 1] = 3;
    seen[i] = b[3 * i + 1];
    a[3 * i + 1] = 4;
    b[3 * i + 2] = 5;
    a[3 * i + 2] = 6;
    a[3 * i] = b[3 * i] + 10;
  });
  for (const int n : kSizes) {
    Array<int> a = zeros<int>(device(), 3 * n), seen = zeros<int>(device(), n);
    launch(k, n, a, a, seen);
    std::vector<int> expected;
    for (int i = 0; i < n; ++i) expected.insert(expected.end(), {12, 4, 6});
    EXPECT_EQ(a.to_vector(), expected) << n;
    EXPECT_EQ(seen.to_vector(), std::vector<int>(std::size_t(n), 3)) << n;
  }
}

TEST_P(ElementParts, parts_are_changed_one_after_another) {
  const auto k = kernel("changes", [](Arr<vec3> a, Arr<vec3> b) {
    Int i = tid();
    a[i].z += 1;
    a[i].x += 2;
    a[i].y += a[i].x;
    b[i].x = a[i].z;
    a[i].z += b[i].x;
    a[i].x = a[i].z * 2.0f;
    b[i].y = a[i].x + b[i].x;
  });
  for (const int n : kSizes) {
    std::vector<vec3> start, expected;
    for (int i = 0; i < n; ++i) {
      start.emplace_back(float(i), float(2 * i), float(3 * i));
      // Both arrays are the same memory.
      vec3 v = start.back();
      v.z += 1, v.x += 2, v.y += v.x, v.x = v.z, v.z += v.x, v.x = v.z * 2, v.y = v.x + v.x;
      expected.push_back(v);
    }
    Array<vec3> a(device(), start);
    launch(k, n, a, a);
    EXPECT_EQ(a.to_vector(), expected) << n;
  }
}

TEST_P(ElementParts, matrices) {
  const auto k = kernel("matrices", [](Arr<const mat33> a, Arr<mat33> b, Arr<mat44> c) {
    Int i = tid();
    b[i] = transpose(a[i]) * 2.0f;
    c[i] = c[i] + c[i];
  });
  for (const int n : kSizes) {
    std::vector<mat33> a(static_cast<std::size_t>(n)), twice;
    std::vector<mat44> c(a.size()), sum;
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; j < 9; ++j) a[i].m[j] = float(9 * i + j);
      for (std::size_t j = 0; j < 16; ++j) c[i].m[j] = float(16 * i + j);
      twice.push_back(transpose(a[i]) * 2.0f);
      sum.push_back(c[i] + c[i]);
    }
    Array<mat33> b = zeros<mat33>(device(), n);
    Array<mat44> d(device(), c);
    launch(k, n, Array<mat33>(device(), a), b, d);
    EXPECT_EQ(b.to_vector(), twice) << n;
    EXPECT_EQ(d.to_vector(), sum) << n;
  }
}

TEST_P(ElementParts, strides_of_all_sizes) {
  for (int stride = 2; stride < 15; ++stride) {
    const auto k = kernel("stride", [stride](Arr<const int> x, Arr<int> y) {
      Int i = tid();
      y[stride * i + stride - 1] += x[stride * i] * stride;
    });
    for (const int n : kSizes) {
      std::vector<int> x(std::size_t(stride * n)), expected(x.size(), 7);
      std::iota(x.begin(), x.end(), 1);
      Array<int> y(device(), expected);
      launch(k, n, Array<int>(device(), x), y);
      for (std::size_t i = 0; i < std::size_t(n); ++i)
        expected[std::size_t(stride) * (i + 1) - 1] += x[std::size_t(stride) * i] * stride;
      EXPECT_EQ(y.to_vector(), expected) << stride << ", " << n;
    }
  }
}

}  // namespace
}  // namespace weft
