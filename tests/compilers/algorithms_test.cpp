// Algorithms for every type of element, in both grains.
#include <weft/runtime/algorithms/algorithms.h>

#include "compile_test.h"

using namespace weft;
using namespace weft::test;

namespace {

class CompilesAlgorithms : public CompileTest {
 protected:
  template <class F>
  void of_all_types(F f) {
    for (const Grain grain : {Grain::coarse, Grain::fine}) {
      f(int(), grain), f(unsigned(), grain), f(std::int64_t(), grain), f(std::uint64_t(), grain);
      f(float(), grain), f(double(), grain);
    }
  }
};

TEST_F(CompilesAlgorithms, sorts) {
  of_all_types([&]<class T>(T, Grain grain) {
    for (const std::int64_t n : {1'000, 3'000, 8'000, 100'000, 4'000'000}) {
      const Array<T> keys = zeros<T>(device(), n);
      radix_sort(keys, {.grain = grain});
      radix_sort_pairs(keys, zeros<unsigned>(device(), n), {.grain = grain});
      radix_sort_pairs(keys, zeros<double>(device(), n), {.grain = grain});
    }
  });
  expect_compiled(130);
}

TEST_F(CompilesAlgorithms, scans_and_reductions) {
  of_all_types([&]<class T>(T, Grain grain) {
    const AlgorithmOptions options{.grain = grain};
    for (const std::int64_t n : {1'000, 1'000'000}) {
      const Array<T> x = zeros<T>(device(), n), y = zeros<T>(device(), n), out = zeros<T>(device(), 1);
      exclusive_scan(x, y, options);
      inclusive_scan(x, y, options);
      exclusive_scan(x.slice(1), y.slice(1), options);
      reduce_sum(x, out, options);
      reduce_min(x, out, options);
      reduce_max(x, out, options);
      inner_product(x, y, out, options);
      // Elements with strides are reduced by columns.
      const Array<T> every = x.slice(0, n, 2);
      reduce_sum(every, out, options);
      reduce_min(every, out, options);
      reduce_max(every, out, options);
      inner_product(every, y.slice(0, n, 2), out, options);
    }
  });
  const Array<double> wide = zeros<double>(device(), 1);
  const Array<float> x = zeros<float>(device(), 1000);
  reduce_sum(x, wide);
  inner_product(x, x, wide);
  reduce_sum(zeros<vec3>(device(), 1000), zeros<vec3d>(device(), 1));
  expect_compiled(80);
}

TEST_F(CompilesAlgorithms, runs_histograms_and_selections) {
  of_all_types([&]<class T>(T, Grain grain) {
    const AlgorithmOptions options{.grain = grain};
    const std::int64_t n = 100'000;
    const Array<T> x = zeros<T>(device(), n), y = zeros<T>(device(), n);
    const Array<int> counts = zeros<int>(device(), 64), some = zeros<int>(device(), n), one = zeros<int>(device(), 1);
    run_length_encode(x, y, some, one, options);
    if constexpr (std::is_floating_point_v<T>)
      histogram(x, T(0), T(1), counts, options);
    else
      histogram(x, counts, options);
    compact(x, some, y, one, options);
    compact_indices(zeros<bool>(device(), n), some, one, options);
    segmented_sort(x, Array<int>(device(), {0, 10, 40'000, 100'000}), options);
  });
  expect_compiled(30);
}

}  // namespace
