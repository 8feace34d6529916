// Exported kernels and adjoints, launched by a program in plain Vulkan that has only the words and the JSON, against
// weft's own launches.
#include <cmath>
#include <cstring>
#include <map>

#include "../../../spirv/emit.h"
#include "../device_test.h"
#include "plain_vulkan.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(ExportedKernel);

void check(weft_loader_status status) {
  if (status != WEFT_LOADER_OK) throw std::runtime_error(weft_loader_error());
}

/// An exported kernel in the hands of the plain program, which sets arguments by name, as docs/exporting.md describes.
class Launch {
 public:
  Launch(const SpirvKernel& exported, const std::string& kind) {
    EXPECT_EQ(spirv::validate(exported.words), "");
    const std::string json = to_json(exported.reflection);
    check(weft_kernel_read(json.data(), json.size(), exported.words.data(), exported.words.size() * 4, &kernel_));
    check(weft_kernel_describe(kernel_, &info_));
    block_.resize(info_.block_bytes);
    check(weft_block_clear(kernel_, block_.data()));
    vulkan_ = std::make_unique<PlainVulkan>(kernel_, kind == "gpu");
  }
  ~Launch() {
    EXPECT_EQ(vulkan_->messages(), std::vector<std::string>());
    weft_kernel_close(kernel_);
  }

  template <class T>
  void value(const char* name, const T& v) {
    check(weft_block_set_value(kernel_, block_.data(), find(name), &v, sizeof v));
  }
  template <class T>
  void array(const std::string& name, const std::vector<T>& values, std::vector<std::int64_t> shape = {},
             const std::vector<std::int64_t>& strides = {}) {
    const PlainVulkan::Memory memory = vulkan_->allocate(values.size() * sizeof(T));
    std::memcpy(memory.host, values.data(), values.size() * sizeof(T));
    if (shape.empty()) shape = {std::int64_t(values.size())};
    bytes_[name] = values.size() * sizeof(T);
    set(find(name), memory, shape, strides);
  }
  template <class T>
  std::vector<T> read(const std::string& name) const {
    const PlainVulkan::Memory& memory = memory_.at(find(name));
    std::vector<T> values(bytes_.at(name) / sizeof(T));
    std::memcpy(values.data(), memory.host, bytes_.at(name));
    return values;
  }

  /// \param lanes  threads for which an adjoint's scratch has room
  void run(const std::vector<std::int64_t>& extents, std::uint32_t lanes = 8) {
    bool in_parts = false;
    std::uint32_t failures = ~0u;
    for (std::uint32_t k = 0; k < info_.argument_count; ++k) {
      weft_argument a;
      check(weft_kernel_argument(kernel_, k, &a));
      const auto words = [&](std::uint64_t bytes) {
        set(k, vulkan_->allocate(bytes), {std::int64_t(bytes / a.element_bytes)}, {});
      };
      switch (a.role) {
        case WEFT_OWNERS: {
          weft_argument of;
          check(weft_kernel_argument(kernel_, a.of, &of));
          words((bytes_.at(of.name) + 63) / 64 * (64 / a.unit) * 4);
          break;
        }
        case WEFT_SCRATCH:
        case WEFT_LOG: words(std::uint64_t(a.bytes_per_thread) * lanes); break;
        case WEFT_LANES:
          in_parts = true;
          check(weft_block_set_value(kernel_, block_.data(), k, &lanes, 4));
          break;
        case WEFT_FAILURES: words(65536), failures = k; break;
        default: break;
      }
    }
    weft_groups groups;
    std::int64_t threads = 1;
    for (const std::int64_t n : extents) threads *= n;
    check(weft_block_set_threads(kernel_, block_.data(), extents.data(), std::uint32_t(extents.size()),
                                 vulkan_->max_groups_x(), &groups));
    for (std::int64_t first = 0; in_parts && first < threads; first += lanes) {
      const auto count = std::uint32_t(std::min<std::int64_t>(lanes, threads - first));
      check(weft_block_set_part(kernel_, block_.data(), std::uint32_t(first), count, vulkan_->max_groups_x(), &groups));
      vulkan_->run(block_, groups);
    }
    parts = in_parts ? (threads + lanes - 1) / lanes : 1;
    if (!in_parts) vulkan_->run(block_, groups);
    if (failures != ~0u) {
      std::uint32_t word;
      std::memcpy(&word, memory_.at(failures).host + 4, 4);
      failed = word != 0;
    }
  }
  bool failed = false;  ///< an adjoint found an element without gradient
  std::int64_t parts = 0;
  const weft_kernel_info& info() const { return info_; }

 private:
  std::uint32_t find(const std::string& name) const {
    const std::int32_t at = weft_kernel_find(kernel_, name.c_str());
    if (at < 0) throw std::runtime_error("no argument is called " + name);
    return std::uint32_t(at);
  }
  void set(std::uint32_t argument, const PlainVulkan::Memory& memory, const std::vector<std::int64_t>& shape,
           const std::vector<std::int64_t>& strides) {
    check(weft_block_set_array(kernel_, block_.data(), argument, memory.address, shape.data(),
                               strides.empty() ? nullptr : strides.data()));
    memory_[argument] = memory;
  }

  weft_kernel* kernel_ = nullptr;
  weft_kernel_info info_{};
  std::vector<std::byte> block_;
  std::unique_ptr<PlainVulkan> vulkan_;
  std::map<std::uint32_t, PlainVulkan::Memory> memory_;
  std::map<std::string, std::size_t> bytes_;
};

std::vector<float> waves(int n, float phase = 0) {
  std::vector<float> v;
  for (int k = 0; k < n; ++k) v.push_back(std::sin(float(k) * 0.7f + phase) * 2);
  return v;
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<T>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k)
    EXPECT_NEAR(double(got[k]), double(expected[k]), tolerance * (1 + std::abs(double(expected[k])))) << k;
}

TEST_P(ExportedKernel, ComputesWhatALaunchComputes) {
  // Rounded as written, so that devices that fuse and software Vulkan compute the same bits.
  auto integrate = kernel("integrate",
                          [](Arr<vec3> x, Arr<vec3> v, Arr<const float> inv_mass, Vec3 gravity, Float dt) {
                            Int i = tid();
                            v[i] += gravity * inv_mass[i] * dt;
                            x[i] += v[i] * dt;
                          },
                          {.contract = false});
  const int n = 1000;
  std::vector<vec3> x, v;
  for (int k = 0; k < n; ++k) x.push_back({float(k), 1, 2}), v.push_back({0, float(k % 7), -1});
  const std::vector<float> mass = waves(n);
  Array<vec3> ax(device(), x), av(device(), v);
  launch(integrate, n, ax, av, Array<float>(device(), mass), vec3{0, -9.81f, 1}, 0.01f);

  Launch plain(integrate.spirv({.names = {"x", "v", "inv_mass", "gravity", "dt"}}), GetParam());
  EXPECT_FALSE(plain.info().by_address);
  plain.array("x", x);
  plain.array("v", v);
  plain.array("inv_mass", mass);
  plain.value("gravity", vec3{0, -9.81f, 1});
  plain.value("dt", 0.01f);
  plain.run({n});
  EXPECT_EQ(plain.read<vec3>("x"), ax.to_vector());
  EXPECT_EQ(plain.read<vec3>("v"), av.to_vector());
}

TEST_P(ExportedKernel, HasCoordinatesStridesAndABlockInMemory) {
  auto spread = kernel("spread", [](Arr<const float, 3> from, Arr<float, 3> to, Mat44 m, Mat44 other, Int shift) {
    auto [i, j, k] = tid<3>();
    to(i, j, k) = from(i, j, k) * m(0, 1) + other(3, 2) + Float(i * 100 + j * 10 + k + shift);
  });
  const std::vector<std::int64_t> shape{5, 7, 3};
  mat44 m{}, other{};
  m(0, 1) = 2;
  other(3, 2) = 0.5f;
  const std::vector<float> all = waves(5 * 7 * 6);
  Array<float, 3> base(device(), {5, 7, 6}, all), to = zeros<float, 3>(device(), {5, 7, 3});
  launch(spread, {5, 7, 3}, base.slice(0, 6, 2, 2), to, m, other, 3);

  Launch plain(spread.spirv({.names = {"from", "to", "m", "other", "shift"}, .strided = {"from"}}), GetParam());
  EXPECT_TRUE(plain.info().by_address);
  plain.array("from", all, shape, {7 * 6 * 4, 6 * 4, 2 * 4});
  plain.array("to", std::vector<float>(105), shape);
  plain.value("m", m);
  plain.value("other", other);
  plain.value("shift", 3);
  plain.run(shape);
  EXPECT_EQ(plain.read<float>("to"), to.flatten().to_vector());
}

TEST_P(ExportedKernel, AsksForTheFeaturesOfItsTypes) {
  auto types = kernel(
      "types", [](Arr<std::int8_t> a, Arr<half> b, Arr<double> c, Arr<std::int64_t> d, Double z, Var<std::int16_t> s) {
        Int i = tid();
        a[i] += 1;
        b[i] = b[i] * b[i];
        c[i] = c[i] * 0.5 + z;
        atomic_add(d[0], Int64(i) + Int64(s));
      });
  const int n = 33;
  std::vector<std::int8_t> a(n);
  std::vector<half> b(n);
  std::vector<double> c(n);
  for (int k = 0; k < n; ++k)
    a[std::size_t(k)] = std::int8_t(k * 9), b[std::size_t(k)] = half(k), c[std::size_t(k)] = k;
  Array<std::int8_t> aa(device(), a);
  Array<half> ab(device(), b);
  Array<double> ac(device(), c);
  Array<std::int64_t> ad = zeros<std::int64_t>(device(), 1);
  launch(types, n, aa, ab, ac, ad, 0.25, std::int16_t(-3));

  const SpirvKernel exported = types.spirv();
  for (const char* feature : {"shaderInt8", "shaderFloat16", "shaderFloat64", "shaderBufferInt64Atomics"})
    EXPECT_NE(std::ranges::find(exported.reflection.features, feature), exported.reflection.features.end()) << feature;
  Launch plain(exported, GetParam());
  plain.array("argument 1", a);
  plain.array("argument 2", b);
  plain.array("argument 3", c);
  plain.array("argument 4", std::vector<std::int64_t>(1));
  plain.value("argument 5", 0.25);
  plain.value("argument 6", std::int16_t(-3));
  plain.run({n});
  EXPECT_EQ(plain.read<std::int8_t>("argument 1"), aa.to_vector());
  EXPECT_EQ(plain.read<half>("argument 2"), ab.to_vector());
  EXPECT_EQ(plain.read<double>("argument 3"), ac.to_vector());
  EXPECT_EQ(plain.read<std::int64_t>("argument 4"), ad.to_vector());
}

TEST_P(ExportedKernel, WorksInWorkgroups) {
  auto sums = kernel("sums",
                     [](Arr<const float> x, Arr<float> sum) {
                       auto part = shared<float>(64);
                       Int i = tid(), local = local_id();
                       part[local] = x[i];
                       barrier();
                       If (local == 0) {
                         Float s = 0;
                         for (auto k : range(64)) s += part[k];
                         sum[workgroup_id()] = s;
                       }
                     },
                     {.block = 64});
  const std::vector<float> x = waves(256);
  Array<float> sum = zeros<float>(device(), 4);
  launch(sums, 256, Array<float>(device(), x), sum);

  const SpirvKernel exported = sums.spirv({.names = {"x", "sum"}});
  EXPECT_TRUE(exported.reflection.whole_groups);
  EXPECT_EQ(exported.reflection.shared_bytes, 256u);
  Launch plain(exported, GetParam());
  plain.array("x", x);
  plain.array("sum", std::vector<float>(4));
  EXPECT_THROW(plain.run({255}), std::runtime_error);
  plain.run({256});
  EXPECT_EQ(plain.read<float>("sum"), sum.to_vector());
}

TEST_P(ExportedKernel, RunsTheAdjointOfALoop) {
  // The number of the loop's rounds is data: its states are saved in scratch memory, and a few threads run at a time.
  auto logistic = kernel("logistic", [](Arr<const float> x, Arr<const int> steps, Arr<float> y, Float rate) {
    Int i = tid();
    Float v = x[i];
    for (auto k : range(steps[i])) {
      (void)k;
      v = rate * v * (1 - v);
    }
    y[i] = v;
  });
  const int n = 50;
  std::vector<float> x;
  std::vector<int> steps;
  for (int k = 0; k < n; ++k) x.push_back(0.3f + 0.005f * float(k)), steps.push_back(k % 13 * 5);
  const std::vector<float> seed = waves(n, 1);
  auto ax = Array<float>(device(), x).requires_grad(), ay = zeros<float>(device(), n).requires_grad();
  Tape tape;
  tape.record([&] { launch(logistic, n, ax, Array<int>(device(), steps), ay, 2.9f); });
  tape.backward({{ay, Array<float>(device(), seed)}});

  const SpirvKernel exported = logistic.spirv({.adjoint = true, .names = {"x", "steps", "y", "rate"}});
  EXPECT_TRUE(exported.reflection.adjoint);
  Launch plain(exported, GetParam());
  plain.array("x", x);
  plain.array("steps", steps);
  plain.array("y", std::vector<float>(n));
  plain.value("rate", 2.9f);
  plain.array("gradient of x", std::vector<float>(n));
  plain.array("gradient of y", seed);
  plain.run({n}, 24);
  EXPECT_EQ(plain.parts, 3);
  expect_near(plain.read<float>("gradient of x"), ax.grad().to_vector(), 1e-5);
  EXPECT_EQ(plain.read<float>("gradient of y"), std::vector<float>(n)) << "what was overwritten has no gradient left";
}

TEST_P(ExportedKernel, RunsTheAdjointOfASumIntoOneElement) {
  auto loss = kernel("loss", [](Arr<const vec2> x, Arr<float> l) {
    Vec2 p = x[tid()];
    atomic_add(l[0], p[0] * p[0] * p[1]);
  });
  const int n = 300;
  std::vector<vec2> x;
  for (int k = 0; k < n; ++k) x.push_back({std::sin(float(k)), std::cos(float(3 * k))});
  auto ax = Array<vec2>(device(), x).requires_grad();
  auto al = zeros<float>(device(), 1);
  Tape tape;
  tape.record([&] { launch(loss, n, ax, al); });
  tape.backward(al);

  Launch plain(loss.spirv({.adjoint = true, .names = {"x", "l"}}), GetParam());
  plain.array("x", x);
  plain.array("l", std::vector<float>(1));
  plain.array("gradient of x", std::vector<vec2>(n));
  plain.array("gradient of l", std::vector<float>{1});
  plain.run({n});
  const std::vector<vec2> got = plain.read<vec2>("gradient of x"), expected = ax.grad().to_vector();
  for (std::size_t k = 0; k < got.size(); ++k) {
    EXPECT_NEAR(got[k].x, expected[k].x, 1e-5);
    EXPECT_NEAR(got[k].y, expected[k].y, 1e-5);
  }
}

TEST_P(ExportedKernel, RunsTheAdjointOfAnUpdateInPlace) {
  // Elements that are overwritten are kept in a log, and put back.
  auto squares = kernel("squares", [](Arr<float> x) {
    Int i = tid();
    If (x[i] > 0) {
      x[i] = x[i] * x[i] * 0.5f + 0.1f;
      x[i] = x[i] * x[i];
    }
  });
  const int n = 20;
  const std::vector<float> x = waves(n), seed = waves(n, 2);
  auto ax = Array<float>(device(), x).requires_grad();
  Tape tape;
  tape.record([&] { launch(squares, n, ax); });
  tape.backward({{ax, Array<float>(device(), seed)}});

  Launch plain(squares.spirv({.adjoint = true, .names = {"x"}}), GetParam());
  plain.array("x", x);
  plain.array("gradient of x", seed);
  plain.run({n}, 16);
  expect_near(plain.read<float>("gradient of x"), tape.gradient(ax).to_vector(), 1e-5);
  EXPECT_EQ(plain.read<float>("x"), x) << "what an adjoint overwrites, it puts back";
}

TEST_P(ExportedKernel, RequiresWhatItNeeds) {
  auto twice = kernel("twice", [](Arr<double> x) { x[tid()] *= 2; });
  SpirvKernel exported = twice.spirv();
  // The plain program turns on what is listed, so the validation layer reports a feature that the list lacks.
  ASSERT_EQ(std::erase(exported.reflection.features, "shaderFloat64"), 1u);
  const std::string json = to_json(exported.reflection);
  weft_kernel* kernel = nullptr;
  check(weft_kernel_read(json.data(), json.size(), exported.words.data(), exported.words.size() * 4, &kernel));
  const PlainVulkan plain(kernel, GetParam() == "gpu");
  weft_kernel_close(kernel);
  if (!plain.validated()) GTEST_SKIP() << "there is no validation layer";
  ASSERT_FALSE(plain.messages().empty());
  expect_contains(plain.messages().front(), "Float64");
}

TEST_P(ExportedKernel, FindsElementsThatSeveralThreadsStore) {
  auto scatter = kernel("scatter", [](Arr<const float> x, Arr<const int> to, Arr<float> y) {
    Int i = tid();
    y[to[i]] = x[i] * x[i];
  });
  const std::vector<float> x{1, 2, 3, 4}, seed{1, 10, 100, 1000};
  const SpirvKernel exported = scatter.spirv({.adjoint = true, .names = {"x", "to", "y"}, .gradients = {"x", "y"}});
  for (const bool twice : {false, true}) {
    SCOPED_TRACE(twice);
    Launch plain(exported, GetParam());
    plain.array("x", x);
    plain.array("to", twice ? std::vector<int>{3, 1, 1, 0} : std::vector<int>{3, 1, 2, 0});
    plain.array("y", std::vector<float>(4));
    plain.array("gradient of x", std::vector<float>(4));
    plain.array("gradient of y", seed);
    plain.run({4});
    EXPECT_EQ(plain.failed, twice);
    if (!twice) {
      EXPECT_EQ(plain.read<float>("gradient of x"), (std::vector<float>{2000, 40, 600, 8}));
    }
  }
}

TEST_P(ExportedKernel, RunsOnTheTargetOfADevice) {
  if (on_host()) {
    expect_contains(error_of([&] { (void)spirv_target(device()); }), device().name() + " runs no SPIR-V");
    return;
  }
  auto total = kernel("total", [](Arr<const float> x, Arr<float> sum) {
    Float s = subgroup_add(x[tid()]);
    If (subgroup_lane() == 0) {
      atomic_add(sum[0], s);
    }
  });
  std::vector<float> x;
  for (int k = 0; k < 512; ++k) x.push_back(float(k % 17));
  Array<float> sum = zeros<float>(device(), 1);
  launch(total, 512, Array<float>(device(), x), sum);

  spirv::Target target = spirv_target(device());
  // Promises about rounding are properties that the plain program does not look up.
  target.round_even16 = target.round_even32 = target.round_even64 = false;
  target.keep_nan16 = target.keep_nan32 = target.keep_nan64 = false;
  const SpirvKernel exported = total.spirv({.target = target, .names = {"x", "sum"}});
  EXPECT_EQ(exported.reflection.subgroup_size, target.subgroup_size);
  Launch plain(exported, GetParam());
  plain.array("x", x);
  plain.array("sum", std::vector<float>(1));
  plain.run({512});
  EXPECT_EQ(plain.read<float>("sum"), sum.to_vector());
}

}  // namespace
