// How kernels round products and sums: fused where the device fuses, and the same in a kernel, its adjoint and its
// graph.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include "../../../frontend/support/platform.h"
#include "../../../runtime/geometry/geometry.h"
#include "../../common/software_vulkan.h"
#include "../device_test.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(Contraction);

template <class T>
bool fuses(const Device& device) {
  return sizeof(T) == 4 ? device.fuses_float32() : device.fuses_float64();
}

/// x * y + z as a device computes it.
template <class T>
T expected(bool fused, T x, T y, T z) {
  if (fused) return std::fma(x, y, z);
  const volatile T product = x * y;
  return product + z;
}

/// Numbers of which some products and sums nearly cancel.
template <class T>
std::vector<T> numbers(std::size_t n, unsigned seed) {
  std::mt19937 bits(seed);
  std::vector<T> v;
  while (v.size() < n) v.push_back(T(int(bits() % 2001) - 1000) / T(bits() % 2 ? 768 : 1000));
  v[0] = 0, v[1] = T(-0.0), v[2] = v[3] = T(1.1);
  return v;
}

/// The bits of a number, so that -0 is not 0.
template <class T>
std::uint64_t bits_of(T x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

constexpr int kForms = 6, kCount = 1500;

/// The forms of a product and a sum, one after another.
template <class T>
auto forms(KernelOptions options) {
  return kernel(
      "forms",
      [](Arr<T, 2> out, Arr<const T> a, Arr<const T> b, Arr<const T> c) {
        Int i = tid();
        const Var<T> x = a[i], y = b[i], z = c[i];
        out(0, i) = x * y + z;
        out(1, i) = z + x * y;
        out(2, i) = x * y - z;
        out(3, i) = z - x * y;
        out(4, i) = x * y + y * z;
        out(5, i) = x * y - y * z;
      },
      options);
}

template <class T>
void expect_forms(const Device& device, KernelOptions options, bool fused) {
  std::vector<T> x = numbers<T>(kCount, 1), y = numbers<T>(kCount, 2), z = numbers<T>(kCount, 3);
  for (std::size_t i = 4; i < x.size(); i += 3) z[i] = -x[i] * y[i];  // the sum is the product's rounding error
  for (std::size_t i = 5; i < x.size(); i += 6) z[i] = x[i];
  Array<T, 2> out = zeros<T, 2>(device, {kForms, kCount});
  launch(forms<T>(options), kCount, out, Array<T>(device, x), Array<T>(device, y), Array<T>(device, z));
  const std::vector<T> found = out.to_vector();
  int differences = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const volatile T rest = y[i] * z[i];
    const T right[kForms] = {expected<T>(fused, x[i], y[i], z[i]),  expected<T>(fused, x[i], y[i], z[i]),
                             expected<T>(fused, x[i], y[i], -z[i]), expected<T>(fused, -x[i], y[i], z[i]),
                             expected<T>(fused, x[i], y[i], rest),  expected<T>(fused, x[i], y[i], -rest)};
    for (std::size_t k = 0; k < kForms; ++k) {
      ASSERT_EQ(bits_of(found[k * kCount + i]), bits_of(right[k]))
          << "form " << k << " of " << x[i] << ", " << y[i] << ", " << z[i] << ": " << found[k * kCount + i] << ", not "
          << right[k];
    }
    differences += right[0] != expected<T>(!fused, x[i], y[i], z[i]);
  }
  EXPECT_GT(differences, kCount / 10) << "or this test shows nothing";
}

TEST_P(Contraction, is_rounded_as_the_device_fuses) {
  expect_forms<float>(device(), {}, device().fuses_float32());
  expect_forms<double>(device(), {}, device().fuses_float64());
}

TEST_P(Contraction, each_operation_is_rounded_without_it) {
  expect_forms<float>(device(), {.contract = false}, false);
  expect_forms<double>(device(), {.contract = false}, false);
}

TEST_P(Contraction, each_operation_is_rounded_where_the_environment_turns_it_off) {
  platform::set_environment("WEFT_CONTRACT", "0");
  expect_forms<float>(device(), {}, false);
  expect_forms<double>(device(), {}, false);
  platform::set_environment("WEFT_CONTRACT", nullptr);
}

// The adjoint multiplies by s what the kernel has multiplied it by, which it computes again: the gradient of s is that
// number. Half of the calls are traced in place, because they may end the thread.
template <class T>
void expect_same_again(const Device& device) {
  const auto sum = func("sum", [](Var<T> p, Var<T> z) { return p + z; });
  const auto checked = func("checked", [](Var<T> p, Var<T> z) {
    assert_(p < T(1e6), "out of range");
    return p * z + p;
  });
  const auto k = kernel("again", [=](Arr<const T> a, Arr<const T> b, Arr<const T> s, Arr<T> value, Arr<T> out) {
    Int i = tid();
    Var<T> v = a[i] * b[i] - T(0.3);
    for (auto n : range(3)) {
      v = v * a[i] + sum(v * b[i], a[i]);
      v = v + checked(v * b[i], a[i]) * Var<T>(T(0.125)) + Var<T>(n);
    }
    If (v * b[i] + a[i] > 0) {
      v = v * v - a[i] * b[i];
    }
    value[i] = v;
    out[i] = v * s[i];
  });
  const Array<T> a(device, numbers<T>(kCount, 4)), b(device, numbers<T>(kCount, 5));
  Array<T> s = full<T>(device, kCount, T(1)), value = zeros<T>(device, kCount), out = zeros<T>(device, kCount);
  s.requires_grad();
  Tape tape;
  tape.record([&] { launch(k, kCount, a, b, s, value, out); });
  tape.backward({{out, full<T>(device, kCount, T(1))}});
  const std::vector<T> forward = value.to_vector(), again = s.grad().to_vector();
  for (std::size_t i = 0; i < forward.size(); ++i) ASSERT_EQ(bits_of(again[i]), bits_of(forward[i])) << i;
}

TEST_P(Contraction, an_adjoint_computes_the_bits_of_its_kernel_again) {
  expect_same_again<float>(device());
  if (!on_gpu()) expect_same_again<double>(device());
}

TEST_P(Contraction, the_matching_interpreter_gives_the_same_bits) {
  const auto k = kernel("steps", [](Arr<float> x, Arr<const float> by) {
    Int i = tid();
    Vec3 v(x[i], by[i], 1);
    for (auto n : range(40)) {
      const Vec3 w(by[i], x[i], Float(n) * 0.01f);
      v = max(min(cross(v, w) * 0.7f + w - v * dot(v, w) * 0.1f, Vec3(9, 9, 9)), Vec3(-9, -9, -9));
    }
    x[i] = dot(v, v);
  });
  const auto result = [&](const Device& on) {
    const Array<float> x(on, numbers<float>(kCount, 6)), by(on, numbers<float>(kCount, 7));
    launch(k, kCount, x, by);
    return x.to_vector();
  };
  const std::vector<float> here = result(device()), there = result(interpreter_like(device()));
  for (std::size_t i = 0; i < here.size(); ++i) ASSERT_EQ(bits_of(here[i]), bits_of(there[i])) << i;
}

TEST(ContractionOnTheInterpreter, has_both_ways_for_each_type) {
  for (const auto& [name, f32, f64] :
       {std::tuple{"reference", true, true}, std::tuple{"reference:split", false, false},
        std::tuple{"reference:split32", false, true}, std::tuple{"reference:split64", true, false}}) {
    const Device device(name);
    EXPECT_EQ(device.name(), name);
    EXPECT_EQ(device.fuses_float32(), f32) << name;
    EXPECT_EQ(device.fuses_float64(), f64) << name;
    EXPECT_EQ(interpreter_like(device), device) << name;
    expect_forms<float>(device, {}, f32);
    expect_forms<double>(device, {}, f64);
  }
}

// Whether the device fuses is found by a kernel, when it is asked for, and kept on disk.
TEST(ContractionOnVulkan, is_found_out_once) {
  namespace fs = std::filesystem;
  const auto before = platform::environment("WEFT_CACHE_DIR");
  const fs::path folder = fs::temp_directory_path() / ("weft_fused_test_" + std::to_string(platform::process_id()));
  platform::set_environment_folder("WEFT_CACHE_DIR", folder);
  bool answers[2] = {};
  for (const bool again : {false, true}) {
    const Device device = Device::open(software_vulkan());
    EXPECT_EQ(device.compile_counts().compiled, 0u) << "opening a device compiles nothing";
    answers[again] = device.fuses_float32();
    const std::uint64_t compiled = device.compile_counts().compiled;
    EXPECT_EQ(compiled > 0, !again);
    device.fuses_float64();
    EXPECT_EQ(device.compile_counts().compiled, compiled) << "one question finds both answers";
    EXPECT_EQ(device.compile_counts().loaded, 0u);
  }
  EXPECT_EQ(answers[0], answers[1]);
  platform::set_environment("WEFT_CACHE_DIR", before ? before->c_str() : nullptr);
  fs::remove_all(folder);
}

// ---- Geometry

bool has_fma(const ir::Module& m) {
  return std::ranges::any_of(m.insts, [](const ir::Inst& inst) { return inst.op == ir::Op::fma; }) ||
         std::ranges::any_of(m.functions, [](const auto& function) { return has_fma(*function); });
}

TEST_P(Contraction, geometry_decides_with_plain_rounding) {
  const MeshData shape = shapes::icosphere(1, 1);
  const Mesh mesh(device(), shape, {.winding_number = true});
  const auto queries = kernel("queries", [](Var<MeshArrays> mesh, Arr<const vec3> points, Arr<float> out) {
    Int i = tid();
    const Vec3 p = points[i], d = points[i + 1];
    Float sum = 0;
    sum += mesh_query_ray(mesh, p, d, 10).t;
    sum += mesh_query_point(mesh, p, 10, MeshSign::normal).distance;
    sum += mesh_query_point(mesh, p, 10, MeshSign::winding).u;
    sum += mesh_query_furthest_point(mesh, p, 0).distance;
    for (auto face : mesh_query_sphere(mesh, p, 0.5f)) sum += Float(face);
    for (auto hit : mesh_query_ray_all(mesh, p, d, 10)) sum += hit.t;
    sum += closest_point_triangle(p, d, points[i + 2], points[i + 3]).distance_sq;
    sum += select(intersect_tri_tri(p, d, points[i + 2], points[i + 3], d, p), 1.f, 2.f);
    out[i] = sum;
  });
  EXPECT_FALSE(has_fma(queries.trace())) << queries.dump("ir");
  const Array<vec3> points(device(), shape.points);
  HashGrid grid(device(), 8, 8, 8);
  grid.build(points, 0.5f);
  spatial_order(points);
  spatial_order(points, points);
  // The kernels of the library that have run by now, or by earlier tests.
  int checked = 0;
  for (const auto& core : detail::KernelCore::all()) {
    if (std::string(core->loc().file).find("runtime/geometry") == std::string::npos) continue;
    ++checked;
    EXPECT_FALSE(has_fma(core->trace({}))) << core->name();
  }
  EXPECT_GT(checked, 10);
}

}  // namespace
