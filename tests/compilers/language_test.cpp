// Random kernels and the larger functions of the library, forwards and backwards.
#include <weft/runtime/graph.h>
#include <weft/runtime/tape.h>

#include "../../backends/backend.h"
#include "../random/random_program.h"
#include "compile_test.h"

using namespace weft;
using namespace weft::test;

namespace {

class CompilesTheLanguage : public CompileTest {};

TEST_F(CompilesTheLanguage, random_kernels) {
  constexpr int kKernels = 100, kThreads = 40;
  RandomArrays arrays(device(), kThreads, 1);
  for (int seed = 1; seed <= kKernels; ++seed) launch_random(random_kernel(std::uint64_t(seed)), kThreads, arrays);
  expect_compiled(kKernels - 5);  // some are alike
}

TEST_F(CompilesTheLanguage, small_launches_of_a_graph_by_one_dispatch) {
  RandomArrays arrays(device(), 40, 1);
  const RandomKernel program = random_kernel(4);
  const std::uint64_t before = device().native().stats().chains;
  const Graph graph = capture(device(), [&] {
    for (int k = 0; k < 20; ++k) launch_random(program, 40, arrays);
  });
  graph.launch();
  device().synchronize();
  EXPECT_EQ(device().native().stats().chains - before, 1u);
}

TEST_F(CompilesTheLanguage, large_functions_and_their_adjoints) {
  constexpr int kThreads = 100;
  const Array<mat33> m = zeros<mat33>(device(), kThreads).requires_grad();
  const Array<vec3> v = zeros<vec3>(device(), kThreads).requires_grad();
  const Array<float> out = zeros<float>(device(), kThreads);
  const auto decompositions = kernel("decompositions", [](Arr<const mat33> m, Arr<const vec3> v, Arr<float> out) {
    const Int i = tid();
    const auto s = svd3(m[i]);
    out[i] = dot(s.sigma, v[i]) + determinant(inverse(m[i])) + length(inverse(m[i]) * v[i]);
  });
  const auto noises = kernel("noises", [](Arr<const vec3> v, Arr<float> out) {
    const Int i = tid();
    out[i] = noise(7u, v[i]) + length(curlnoise(7u, v[i]));
  });
  const auto loops = kernel("loops", [](Arr<const vec3> v, Arr<float> out) {
    const Int i = tid(), n = i % 17;
    Vec3 x = v[i];
    for (auto k : range(n)) {
      If (x.x > Float(k)) {
        x = x * 0.9f + Vec3(sin(x.y));
      }
      Else { x = x - Vec3(cos(x.z) * 0.1f); }
    }
    out[i] = length(x);
  });
  Tape tape;
  for (const auto& work : std::vector<std::function<void()>>{[&] { launch(decompositions, kThreads, m, v, out); },
                                                             [&] { launch(noises, kThreads, v, out); },
                                                             [&] { launch(loops, kThreads, v, out); }}) {
    tape.reset();
    tape.record(work);
    tape.backward({{out, full<float>(device(), kThreads, 1)}});
  }
  expect_compiled(6);
}

}  // namespace
