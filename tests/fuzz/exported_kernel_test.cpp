// Damaged exports: the loader takes a kernel whose argument blocks can be filled, or says why not.
#include <weft/loader/loader.h>
#include <weft/weft.h>

#include <cstring>
#include <string>
#include <vector>

#include "inputs.h"

namespace weft {
namespace {

using test::below;
using test::one_in;
using test::Random;

// Exports of each kind.
const std::vector<SpirvKernel>& exports() {
  static const std::vector<SpirvKernel> all = [] {
    const auto saxpy = kernel("saxpy", [](Arr<const float> x, Arr<float> y, Float a) { y[tid()] += a * x[tid()]; });
    const auto plane = kernel("plane", [](Arr<vec4, 2> x, Arr<const float> y, Float s) {
      auto [i, j] = tid<2>();
      x(i, j) *= y[j] * s;
    });
    const auto many = kernel("many", [](Arr<double, 3> a, Arr<const float> b, Arr<const int> c, Arr<float> d, Mat44 m,
                                        Vec3 v, UInt64 n) {
      auto [i, j, k] = tid<3>();
      a(i, j, k) = Double(b[i] + d[j]) * Double(m(0, 1)) + Double(v[2]) + Double(Float(c[k])) + Double(Float(Int(n)));
    });
    const auto shares = kernel("shares",
                               [](Arr<float> x) {
                                 auto s = shared<float>(64);
                                 s[local_id()] = x[tid()];
                                 barrier();
                                 x[tid()] = s[63 - local_id()];
                               },
                               {.block = 64});
    const auto steps = kernel("steps", [](Arr<const float> a, Arr<float> b, Int n) {
      Float p = 1;
      for ([[maybe_unused]] auto i : range(n)) p *= a[tid()];
      b[tid()] = p;
    });
    return std::vector<SpirvKernel>{saxpy.spirv({.names = {"x", "y", "a"}}),
                                    saxpy.spirv({.adjoint = true, .strided = {"argument 1"}}),
                                    plane.spirv({.names = {"x", "y", "s"}, .strided = {"x"}}),
                                    plane.spirv({.adjoint = true}),
                                    many.spirv(),
                                    many.spirv({.adjoint = true}),
                                    shares.spirv(),
                                    steps.spirv({.adjoint = true})};
  }();
  return all;
}

// Changes a number, a word or a line of the text; after changes byte by byte, few texts are still JSON.
void change_values(Random& random, std::string& text) {
  constexpr const char* kValues[] = {"0",
                                     "1",
                                     "3",
                                     "4",
                                     "8",
                                     "255",
                                     "4294967295",
                                     "4294967296",
                                     "-1",
                                     "2147483648",
                                     "1e99",
                                     "[]",
                                     "{}",
                                     "null",
                                     "true",
                                     "\"\"",
                                     "\"x\"",
                                     "false",
                                     "1844674407370955161600",
                                     "0.5",
                                     "\"strided\"",
                                     "\"push_constants\""};
  for (std::uint64_t k = 1 + below(random, 3); k > 0; --k) {
    const std::size_t from = text.find(": ", below(random, text.size() + 1));
    if (from == std::string::npos) continue;
    const std::size_t to = text.find_first_of(",\n", from);
    if (to == std::string::npos) continue;
    if (one_in(random, 8))
      text.erase(from, to - from);
    else
      text.replace(from + 2, to - from - 2, test::one_of(random, kValues));
  }
  if (one_in(random, 10)) {  // a whole line twice, or not at all
    const std::size_t from = text.rfind('\n', below(random, text.size() + 1));
    const std::size_t to = from == std::string::npos ? from : text.find('\n', from + 1);
    if (to != std::string::npos) {
      if (one_in(random, 2))
        text.insert(to, text.substr(from, to - from));
      else
        text.erase(from, to - from);
    }
  }
}

void expect_words(weft_loader_status status) {
  EXPECT_TRUE(status == WEFT_LOADER_OK || *weft_loader_error()) << "status " << status;
}

std::int64_t random_size(Random& random) {
  constexpr std::int64_t kSizes[] = {0, 1, 2, 7, 1000, 2147483647, 2147483648, -1, INT64_MAX, INT64_MIN};
  return test::one_of(random, kSizes);
}

// Fills the block between canaries, for builds without sanitizers.
void fill_block(Random& random, const weft_kernel* kernel) {
  constexpr std::size_t kCanary = 64;
  constexpr std::byte kUntouched{0xa5};
  weft_kernel_info info;
  ASSERT_EQ(weft_kernel_describe(kernel, &info), WEFT_LOADER_OK);
  EXPECT_GE(info.workgroup_size, 1u);
  EXPECT_LE(info.dimensions, 4u);
  if (info.block_bytes > 1 << 20) return;
  std::vector<std::byte> all(info.block_bytes + 2 * kCanary, kUntouched);
  std::byte* const block = all.data() + kCanary;
  ASSERT_EQ(weft_block_clear(kernel, block), WEFT_LOADER_OK);
  for (std::uint32_t k = 0; k < info.argument_count; ++k) {
    weft_argument a;
    ASSERT_EQ(weft_kernel_argument(kernel, k, &a), WEFT_LOADER_OK);
    EXPECT_LE(std::uint64_t(a.offset) + a.bytes, info.block_bytes);
    EXPECT_GE(weft_kernel_find(kernel, a.name), 0);
    if (a.dimensions > 0) {
      std::int64_t shape[4], strides[4];
      for (int d = 0; d < 4; ++d) shape[d] = random_size(random), strides[d] = random_size(random);
      expect_words(weft_block_set_array(kernel, block, k, one_in(random, 3) ? random() : random() & ~0xffull, shape,
                                        one_in(random, 2) ? strides : nullptr));
    } else {
      const std::vector<std::byte> value(a.bytes, std::byte(1));
      EXPECT_EQ(weft_block_set_value(kernel, block, k, value.data(), value.size()), WEFT_LOADER_OK);
    }
  }
  std::int64_t extents[4];
  for (std::int64_t& e : extents) e = random_size(random);
  weft_groups groups;
  expect_words(weft_block_set_threads(kernel, block, extents, std::uint32_t(below(random, 6)),
                                      std::uint32_t(one_in(random, 4) ? 0 : 65535), &groups));
  expect_words(weft_block_set_part(kernel, block, std::uint32_t(random()), std::uint32_t(random()), 65535, &groups));
  for (std::size_t k = 0; k < kCanary; ++k)
    ASSERT_TRUE(all[k] == kUntouched && all[all.size() - 1 - k] == kUntouched) << "written outside of the block";
  for (int list = -1; list < 7; ++list)
    for (std::uint32_t k = 0; weft_kernel_requirement(kernel, weft_requirement(list), k); ++k) {
    }
}

TEST(ExportedKernelFuzz, damaged_exports_are_kernels_or_refused_in_words) {
  std::uint64_t taken = 0, refused = 0;
  test::for_each_input(2000, [&](Random& random) {
    const SpirvKernel& made = exports()[below(random, exports().size())];
    std::string json = to_json(made.reflection);
    std::string words(reinterpret_cast<const char*>(made.words.data()), made.words.size() * 4);
    switch (below(random, 8)) {
      case 0: test::damage(random, words); break;
      case 1:
      case 2: test::damage(random, json); break;
      case 3: {  // another module, which the text describes
        Reflection other = made.reflection;
        test::damage(random, words);
        words.resize(words.size() / 4 * 4);
        std::vector<std::uint32_t> changed(words.size() / 4);
        std::memcpy(changed.data(), words.data(), words.size());
        other.spirv_bytes = words.size();
        other.spirv_hash = detail::hash_of_words(changed);
        json = to_json(other);
        break;
      }
      case 4:  // deep and long
        json.insert(below(random, json.size()), std::string(below(random, 20000), one_in(random, 2) ? '[' : '{'));
        break;
      default: change_values(random, json); break;
    }
    try {
      const Reflection read = reflection_from_json(json);
      EXPECT_TRUE(reflection_from_json(to_json(read)) == read) << json;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
      EXPECT_NE(e.message(), "");
    }
    weft_kernel* kernel = nullptr;
    const weft_loader_status status = weft_kernel_read(json.data(), json.size(), words.data(), words.size(), &kernel);
    ++(status == WEFT_LOADER_OK ? taken : refused);
    if (status == WEFT_LOADER_OK) {
      fill_block(random, kernel);
    } else {
      EXPECT_EQ(status, WEFT_LOADER_BAD_KERNEL);
      EXPECT_STRNE(weft_loader_error(), "");
      EXPECT_EQ(kernel, nullptr);
    }
    weft_kernel_close(kernel);
    if (testing::Test::HasFailure()) ADD_FAILURE() << weft_loader_error() << "\n" << json;
  });
  if (taken + refused < 1000) return;
  EXPECT_TRUE(taken > refused / 20 && refused > taken / 20) << taken << ", " << refused;
}

}  // namespace
}  // namespace weft
