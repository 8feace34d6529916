// The kernels of Warp's page "Interoperability", each under the name of its section.
#include <cmath>

#include "../device_test.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(Interoperability);

/// 0, 1, 2, ...
std::vector<float> counted(int n) {
  std::vector<float> v;
  for (int k = 0; k < n; ++k) v.push_back(float(k));
  return v;
}

TEST_P(Interoperability, numpy_arrays_saxpy) {
  auto saxpy = kernel("saxpy", [](Arr<const float> x, Arr<float> y, Float a) {
    Int i = tid();
    y[i] = a * x[i] + y[i];
  });
  const int n = 100;
  Array<float> x(device(), counted(n)), y = full<float>(device(), n, 1.f);
  launch(saxpy, n, x, y, 2.0f);
  const std::vector<float> result = y.to_vector();
  for (int i = 0; i < n; ++i) EXPECT_EQ(result[std::size_t(i)], 2.f * float(i) + 1);
}

TEST_P(Interoperability, optimization_using_warp_tape_loss) {
  auto loss = kernel("loss", [](Arr<const float, 2> xs, Arr<float> l) {
    Int i = tid();
    atomic_add(l[0], pow(xs(i, 0), 2.0f) + pow(xs(i, 1), 2.0f));
  });
  std::vector<float> values;
  double expected = 0;
  for (int k = 0; k < 200; ++k) {
    values.push_back(std::sin(float(k)) * 3);  // negative ones too: the documents square them by ** 2.0
    expected += double(values.back()) * values.back();
  }
  Array<float, 2> xs(device(), {100, 2}, values);
  Array<float> l = zeros<float>(device(), 1);
  launch(loss, 100, xs, l);
  EXPECT_NEAR(l.at(0), expected, 1e-3 * expected);
}

TEST_P(Interoperability, custom_autograd_functions_rosenbrock) {
  auto rosenbrock =
      func("rosenbrock", [](Float x, Float y) { return pow(1.0f - x, 2.0f) + 100.0f * pow(y - pow(x, 2.0f), 2.0f); });
  auto eval_rosenbrock = kernel("eval_rosenbrock", [=](Arr<const vec2> xs, Arr<float> z) {
    Int i = tid();
    Vec2 x = xs[i];
    z[i] = rosenbrock(x[0], x[1]);
  });
  std::vector<vec2> xs;
  for (int k = 0; k < 50; ++k) xs.push_back({std::sin(float(k)) * 2, std::cos(float(3 * k)) * 2});
  Array<vec2> in(device(), xs);
  Array<float> z = zeros<float>(device(), 50);
  launch(eval_rosenbrock, 50, in, z);
  const std::vector<float> result = z.to_vector();
  for (std::size_t k = 0; k < 50; ++k) {
    const double x = xs[k].x, y = xs[k].y, expected = (1 - x) * (1 - x) + 100 * (y - x * x) * (y - x * x);
    EXPECT_NEAR(result[k], expected, 1e-4 * (1 + expected));
  }
}

TEST_P(Interoperability, performance_notes_forward_and_backward_kernels) {
  auto forward_kernel = kernel("forward_kernel", [](Arr<const float> a, Arr<const float> b, Arr<float> output) {
    Int i = tid();
    Float x = a[i], y = b[i];
    output[i] = x * x + y * y;
  });
  auto backward_kernel = kernel("backward_kernel", [](Arr<const float> grad_output, Arr<const float> a,
                                                      Arr<const float> b, Arr<float> grad_a, Arr<float> grad_b) {
    Int i = tid();
    Float x = a[i], y = b[i], adj_z = grad_output[i];
    grad_a[i] = 2.0f * x * adj_z;
    grad_b[i] = 2.0f * y * adj_z;
  });
  const int n = 64;
  Array<float> a(device(), counted(n)), b = full<float>(device(), n, 3.f), output = empty_like(a),
                                        seed = full<float>(device(), n, 0.5f), grad_a = empty_like(a),
                                        grad_b = empty_like(a);
  launch(forward_kernel, n, a, b, output);
  launch(backward_kernel, n, seed, a, b, grad_a, grad_b);
  const std::vector<float> o = output.to_vector(), ga = grad_a.to_vector(), gb = grad_b.to_vector();
  for (int i = 0; i < n; ++i) {
    EXPECT_EQ(o[std::size_t(i)], float(i * i + 9));
    EXPECT_EQ(ga[std::size_t(i)], float(i));
    EXPECT_EQ(gb[std::size_t(i)], 3.f);
  }
}

TEST_P(Interoperability, using_warp_kernels_as_jax_primitives_triple_kernel) {
  auto triple_kernel = kernel("triple_kernel", [](Arr<const float> input, Arr<float> output) {
    Int i = tid();
    output[i] = 3.0f * input[i];
  });
  Array<float> x(device(), counted(64)), y = empty_like(x);
  launch(triple_kernel, 64, x, y);
  EXPECT_EQ(y.at(63), 189.f);
}

TEST_P(Interoperability, input_and_output_semantics) {
  auto add_kernel = kernel("add_kernel", [](Arr<const int> a, Arr<const int> b, Arr<int> output) {
    Int i = tid();
    output[i] = a[i] + b[i];
  });
  Array<int> a(device(), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), b = full<int>(device(), 10, 1), sum = empty_like(a);
  launch(add_kernel, 10, a, b, sum);
  EXPECT_EQ(sum.to_vector(), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));

  auto sincos_kernel = kernel("sincos_kernel", [](Arr<const float> angle, Arr<float> sin_out, Arr<float> cos_out) {
    Int i = tid();
    sin_out[i] = sin(angle[i]);
    cos_out[i] = cos(angle[i]);
  });
  std::vector<float> angles;
  for (int k = 0; k < 32; ++k) angles.push_back(float(k) * 2 * 3.14159265f / 31);
  Array<float> in(device(), angles), s = empty_like(in), c = empty_like(in);
  launch(sincos_kernel, 32, in, s, c);
  const std::vector<float> sines = s.to_vector(), cosines = c.to_vector();
  for (std::size_t k = 0; k < 32; ++k) {
    EXPECT_NEAR(sines[k], std::sin(angles[k]), 1e-3);
    EXPECT_NEAR(cosines[k], std::cos(angles[k]), 1e-3);
  }

  auto diagonal_kernel = kernel("diagonal_kernel", [](Arr<mat33> output) {
    Int i = tid();
    output[i] = Mat33(1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0);
  });
  Array<mat33> m = zeros<mat33>(device(), 4);
  launch(diagonal_kernel, 4, m);
  for (const mat33& d : m.to_vector()) EXPECT_EQ(d, mat33(1.f, 0.f, 0.f, 0.f, 2.f, 0.f, 0.f, 0.f, 3.f));
}

TEST_P(Interoperability, scalar_inputs) {
  auto scale_kernel = kernel("scale_kernel", [](Arr<const float> a, Float s, Arr<float> output) {
    Int i = tid();
    output[i] = a[i] * s;
  });
  Array<float> a(device(), counted(10)), b = empty_like(a);
  launch(scale_kernel, 10, a, 2.0, b);
  EXPECT_EQ(b.at(9), 18.f);
}

TEST_P(Interoperability, kernel_launch_and_output_dimensions_matmul_kernel) {
  auto matmul_kernel = kernel("matmul_kernel", [](Arr<const float, 2> a, Arr<const float, 2> b, Arr<float, 2> c) {
    auto [i, j] = tid<2>();
    Int N = a.shape(0), K = a.shape(1), M = b.shape(1);
    If (i < N && j < M) {
      Float s = 0;
      for (auto k : range(K)) s += a(i, k) * b(k, j);
      c(i, j) = s;
    }
  });
  Array<float, 2> a = full<float, 2>(device(), {3, 2}, 2.f), b = full<float, 2>(device(), {2, 4}, 3.f),
                  c = zeros<float, 2>(device(), {3, 4});
  launch(matmul_kernel, {5, 5}, a, b, c);  // more threads than elements: the kernel guards itself
  for (float x : c.to_vector()) EXPECT_EQ(x, 12.f);
}

TEST_P(Interoperability, vector_and_matrix_arrays) {
  auto vecmat_kernel = kernel("vecmat_kernel", [](Arr<const float> a, Arr<const vec3> b, Arr<const mat22> c,
                                                  Arr<float> d, Arr<vec3> e, Arr<mat22> f) {
    Int i = tid();
    d[i] = a[i] + b[i].x;
    e[i] = b[i] * a[i];
    f[i] = c[i] * Mat22(c[i]);
  });
  const int n = 10;
  Array<float> a(device(), counted(n)), d = empty_like(a);
  Array<vec3> b = full<vec3>(device(), n, vec3{1, 2, 3}), e = empty_like(b);
  Array<mat22> c = full<mat22>(device(), n, mat22(0.f, 1.f, 2.f, 0.f)), f = empty_like(c);
  launch(vecmat_kernel, n, a, b, c, d, e, f);
  EXPECT_EQ(d.at(9), 10.f);
  EXPECT_EQ(e.at(9), vec3(9.f, 18.f, 27.f));
  EXPECT_EQ(f.at(9), mat22(2.f, 0.f, 0.f, 2.f));
}

TEST_P(Interoperability, vmap_rowsum_and_lookup_kernels) {
  auto rowsum_kernel = kernel("rowsum_kernel", [](Arr<const float, 2> matrix, Arr<float> sums) {
    auto [i, j] = tid<2>();
    atomic_add(sums[i], matrix(i, j));
  });
  Array<float, 2> matrix(device(), {3, 4}, counted(12));
  Array<float> sums = zeros<float>(device(), 3);
  launch(rowsum_kernel, {3, 4}, matrix, sums);
  EXPECT_EQ(sums.to_vector(), (std::vector<float>{6, 22, 38}));

  auto lookup_kernel = kernel("lookup_kernel", [](Arr<const float> table, Arr<const int> indices, Arr<float> output) {
    Int i = tid();
    output[i] = table[indices[i]];
  });
  Array<float> table(device(), counted(100)), output = zeros<float>(device(), 4);
  Array<int> indices(device(), {99, 0, 42, 7});
  launch(lookup_kernel, 4, table, indices, output);
  EXPECT_EQ(output.to_vector(), (std::vector<float>{99, 0, 42, 7}));
}

TEST_P(Interoperability, automatic_differentiation_kernels) {
  auto scale_sum_square =
      kernel("scale_sum_square", [](Arr<const float> a, Arr<const float> b, Float s, Arr<float> out) {
        Int i = tid();
        out[i] = pow(a[i] * s + b[i], 2.0f);
      });
  auto multi_output =
      kernel("multi_output", [](Arr<const float> a, Arr<const float> b, Float s, Arr<float> c, Arr<float> d) {
        Int i = tid();
        c[i] = pow(a[i], 2.0f);
        d[i] = a[i] * b[i] * s;
      });
  auto scale_vec2 = kernel("scale_vec2", [](Arr<const vec2> a, Float s, Arr<vec2> out) {
    Int i = tid();
    out[i] = a[i] * s;
  });
  const int n = 16;
  Array<float> a(device(), counted(n)), b = full<float>(device(), n, 1.f), c = empty_like(a), d = empty_like(a);
  launch(scale_sum_square, n, a, b, 2.0, c);
  EXPECT_NEAR(c.at(15), 961, 0.01);
  launch(multi_output, n, a, b, 2.0, c, d);
  EXPECT_NEAR(c.at(15), 225, 0.01);
  EXPECT_EQ(d.at(15), 30.f);
  Array<vec2> v(device(), {vec2{0, 1}, vec2{2, 3}, vec2{4, 5}}), w = empty_like(v);
  launch(scale_vec2, 3, v, 3.0, w);
  EXPECT_EQ(w.at(2), vec2(12.f, 15.f));
}

TEST_P(Interoperability, calling_functions_that_launch_several_kernels) {
  auto scale_kernel = kernel("scale_kernel", [](Arr<const float> a, Float s, Arr<float> output) {
    Int i = tid();
    output[i] = a[i] * s;
  });
  auto scale_vec_kernel = kernel("scale_vec_kernel", [](Arr<const vec2> a, Float s, Arr<vec2> output) {
    Int i = tid();
    output[i] = a[i] * s;
  });
  auto example_func = [&](const Array<float>& a, const Array<vec2>& b, float s, Array<float>& c, Array<vec2>& d) {
    launch(scale_kernel, a.extent(), a, s, c);
    launch(scale_vec_kernel, b.extent(), b, s, d);
  };
  Array<float> a(device(), counted(10)), c = empty_like(a);
  Array<vec2> b(device(), {vec2{0, 1}, vec2{2, 3}}), d = empty_like(b);
  example_func(a, b, 2.f, c, d);
  EXPECT_EQ(c.at(9), 18.f);
  EXPECT_EQ(d.at(1), vec2(4.f, 6.f));
}

TEST_P(Interoperability, distributed_computation_multiply_by_two_kernel) {
  auto multiply_by_two_kernel = kernel("multiply_by_two_kernel", [](Arr<const float> a_in, Arr<float> a_out) {
    Int index = tid();
    a_out[index] = a_in[index] * 2.0f;
  });
  // Shards of one array, each launched on its own.
  Array<float> whole(device(), counted(32)), out = empty_like(whole);
  for (int shard = 0; shard < 4; ++shard)
    launch(multiply_by_two_kernel, 8, whole.slice(8 * shard, 8 * shard + 8), out.slice(8 * shard, 8 * shard + 8));
  for (int k = 0; k < 32; ++k) EXPECT_EQ(out.at(k), 2.f * float(k));
}

}  // namespace
