// The state for floats of the threads that launch: kernels neither see it nor change it.
#include <weft/weft.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "../device_test.h"

#ifdef __SSE__
#include <xmmintrin.h>

using namespace weft;

namespace {

DEVICE_TEST(FloatModes);

// Sets MXCSR: rounding up, no subnormals in operands and results.
class OtherMode {
 public:
  static constexpr unsigned kMode = 0xdfc0, kFlags = 0x3f;  // the latter tell what has happened
  OtherMode() : before_(_mm_getcsr()) { _mm_setcsr(kMode); }
  ~OtherMode() { _mm_setcsr(before_); }
  OtherMode(const OtherMode&) = delete;
  OtherMode& operator=(const OtherMode&) = delete;

 private:
  const unsigned before_;
};

// Numbers that round, and numbers below the smallest normal one.
std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t k = 0; k < count; ++k)
    values[k] = std::bit_cast<float>(std::uint32_t(k % 2 ? 0x3f800000 + k * 977 : 1 + k * 8003) & 0x7f7fffff);
  return values;
}

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> result;
  for (const float v : values) result.push_back(std::bit_cast<std::uint32_t>(v));
  return result;
}

// A kernel of its own for each way, so that each is traced, compiled and run in the mode of its caller. Caches know
// kernels by what they do: each does something else.
template <int kWay>
std::vector<float> thirds(const Device& device, const std::vector<float>& values) {
  Array<float> x(device, values);
  launch(kernel("thirds " + std::to_string(kWay),
                [](Arr<float> x) {
                  Float a = x[tid()];
                  x[tid()] = a / 3.f + a * 0.7f;
                  If (tid() == 1 << 30) {
                    x[0] = float(kWay);
                  }
                }),
         std::int64_t(values.size()), x);
  return x.to_vector();
}

// Values that are computed when the kernel is traced.
template <int kWay>
std::vector<float> constants(const Device& device) {
  Array<float> x = zeros<float>(device, 5);
  launch(kernel("constants " + std::to_string(kWay),
                [](Arr<float> x) {
                  Float sum = 0.1f, least = 1e-40f, whole = Float(0.1f) * 3.3f;
                  for (int k = 0; k < 20; ++k) sum = sum * 1.1f + 0.3f;
                  x[0] = sum;
                  x[1] = least * 3.f;
                  x[2] = whole + 0.7f;
                  x[3] = Float(std::numeric_limits<float>::denorm_min());
                  x[4] = float(kWay);
                }),
         1, x);
  return x.slice(0, 4).to_vector();
}

TEST_P(FloatModes, of_the_caller_are_left_and_change_no_result) {
  if (!on_host()) GTEST_SKIP() << "kernels run on threads of a driver";
  for (const std::size_t count : {std::size_t(37), std::size_t(300000)}) {
    const std::vector<float> values = numbers(count), usual = thirds<0>(device(), values);
    std::vector<float> other;
    unsigned after = 0;
    {
      const OtherMode mode;
      other = thirds<1>(device(), values);
      after = _mm_getcsr() & ~OtherMode::kFlags;
    }
    EXPECT_EQ(after, OtherMode::kMode);
    EXPECT_EQ(bits(other), bits(usual));
  }
}

TEST_P(FloatModes, of_the_caller_change_no_constant) {
  const std::vector<float> usual = constants<0>(device());
  std::vector<float> other;
  {
    const OtherMode mode;
    other = constants<1>(device());
  }
  EXPECT_EQ(bits(other), bits(usual));
  if (on_host()) EXPECT_EQ(bits(usual)[3], 1u);
}

}  // namespace
#endif
