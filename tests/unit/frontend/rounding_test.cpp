// Digits that conversions lose stay lost when the compiler optimises all it can. This file is compiled with -O3,
// because GCC 12, from -O2 on, takes neighbours that are converted to float and back for the originals.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "../../../frontend/types/mat.h"
#include "../../../frontend/types/names.h"
#include "../../../frontend/types/quaternion.h"

using namespace weft;

namespace {

// Rounds one scalar after another by way of whole numbers, in which no optimiser finds a conversion.
std::uint64_t rounded_bits(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, 8);
  const std::uint64_t lost = bits & 0x1fffffff, half_way = 0x10000000;
  bits -= lost;
  if (lost > half_way || (lost == half_way && (bits & 0x20000000))) bits += 0x20000000;
  return bits;
}
template <class X>
void expect_rounded(const X& got, const X& from, const char* what) {
  double a[sizeof(X) / 8], b[sizeof(X) / 8];
  std::memcpy(a, &got, sizeof got);
  std::memcpy(b, &from, sizeof from);
  for (std::size_t k = 0; k < sizeof(X) / 8; ++k) {
    std::uint64_t bits;
    std::memcpy(&bits, &a[k], 8);
    EXPECT_EQ(bits, rounded_bits(b[k])) << what << ", scalar " << k << ": " << b[k];
  }
}

/// Numbers that a float does not hold.
template <class X>
X random_value(unsigned seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> size(0.1, 10);
  double scalars[sizeof(X) / 8];
  for (double& s : scalars) s = size(engine);
  X x;
  std::memcpy(static_cast<void*>(&x), scalars, sizeof x);
  return x;
}

// The function is not inlined, so that the compiler knows only the type, which is when it joins neighbours.
template <class Narrow, class X>
[[gnu::noinline]] X there_and_back(const X& x) {
  return X(Narrow(x));
}
template <class Narrow, class X>
[[gnu::noinline]] X by_parts(const X& x) {
  return X(double(Narrow(x.x, x.y).x), double(Narrow(x.x, x.y).y));
}
template <class Narrow, class X>
void check(const char* what) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const X x = random_value<X>(seed);
    expect_rounded(there_and_back<Narrow>(x), x, what);
  }
}

TEST(Rounding, of_vectors_matrices_and_quaternions_to_float_is_not_undone_by_the_optimiser) {
  check<vec2, vec2d>("vec2");
  check<vec3, vec3d>("vec3");
  check<vec4, vec4d>("vec4");
  check<vec<5, float>, vec<5, double>>("vec<5>");
  check<vec<8, float>, vec<8, double>>("vec<8>");
  check<mat22, mat22d>("mat22");
  check<mat33, mat33d>("mat33");
  check<mat44, mat44d>("mat44");
  check<quat, quatd>("quat");
  check<transform, transformd>("transform");
}

TEST(Rounding, of_numbers_that_a_vector_is_made_of_is_not_undone_either) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const vec2d x = random_value<vec2d>(seed);
    expect_rounded(by_parts<vec2>(x), x, "vec2{x, y}");
  }
}

struct Pair {
  double x, y;
};
[[gnu::noinline]] Pair by_cast(const Pair& p) {
  return {cast<double>(cast<float>(p.x)), cast<double>(cast<float>(p.y))};
}

TEST(Rounding, of_casts_of_neighbours_is_not_undone_either) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Pair p = random_value<Pair>(seed);
    expect_rounded(by_cast(p), p, "cast");
  }
}

TEST(Rounding, is_done_in_constants) {
  constexpr vec2 v(0.1, 0.2);
  static_assert(v.x == 0.1f && v.y == 0.2f);
}

// Conversions through whole numbers lose digits as well.
template <class Narrow, class X>
[[gnu::noinline]] X through(const X& x) {
  return X(Narrow(x));
}
TEST(Rounding, through_whole_numbers_is_kept) {
  const vec<2, std::int64_t> wide(std::int64_t(5) << 32 | 7, std::int64_t(3) << 40 | 9);
  const vec<2, std::int64_t> low = through<vec<2, std::int32_t>>(wide);
  EXPECT_EQ(low.x, 7);
  EXPECT_EQ(low.y, 9);
  const vec<2, std::int32_t> odd((1 << 24) + 1, (1 << 25) + 1);
  const vec<2, std::int32_t> even = through<vec2>(odd);
  EXPECT_EQ(even.x, 1 << 24);
  EXPECT_EQ(even.y, 1 << 25);
  const vec2d part(1.75, -2.5);
  const vec2d whole = through<vec<2, std::int32_t>>(part);
  EXPECT_EQ(whole.x, 1);
  EXPECT_EQ(whole.y, -2);
  const vec<2, half> halves = through<vec<2, std::int32_t>>(vec<2, half>(half(1.75f), half(-2.5f)));
  EXPECT_EQ(float(halves.x), 1);
  EXPECT_EQ(float(halves.y), -2);
}

}  // namespace
