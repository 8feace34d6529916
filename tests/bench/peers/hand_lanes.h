// Vectors for the kernels by hand: numbers of several elements in lanes, as many as the compiler's target has. Only for
// sources that are compiled for the host's processor: all functions are local to their source, so that none of them
// gets into the rest of the program.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "hand.h"

namespace weft::bench {

namespace {

template <class F>
struct Lanes;
template <>
struct Lanes<float> {
  static constexpr int kCount = 1;
  using Int = int;
  using UInt = unsigned;
};

template <class F>
F load(const float* from) {
  F x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
template <class F>
void store(float* to, const F& x) {
  std::memcpy(to, &x, sizeof x);
}
template <class To, class From>
To bits(const From& x) {
  static_assert(sizeof(To) == sizeof(From));
  To y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}
template <class M, class T>
T select(const M& condition, const T& yes, const T& no) {
  return condition ? yes : no;
}
template <class T>
T max(const T& a, const T& b) {
  return select(a < b, b, a);
}
template <class T>
T min(const T& a, const T& b) {
  return select(b < a, b, a);
}
template <class F>
F abs(const F& x) {
  using U = typename Lanes<F>::UInt;
  return bits<F>(U(bits<U>(x) & 0x7fffffffu));
}

inline float root(float x) { return __builtin_sqrtf(x); }
inline float floor(float x) { return __builtin_floorf(x); }
inline int whole(float x) { return int(x); }
/// The same number in all lanes; ascending ones.
template <class F>
F same(float x) {
  return F{} + x;
}
template <class F>
F ascending(std::int64_t first);
template <>
inline float ascending<float>(std::int64_t first) {
  return float(first);
}

/// Reads elements of S numbers each, one after another: out[c] has number c of each.
template <int S>
void load_elements(const float* from, float (&out)[S]) {
  for (int c = 0; c < S; ++c) out[c] = from[c];
}
template <int S>
void store_elements(float* to, const float (&in)[S]) {
  for (int c = 0; c < S; ++c) to[c] = in[c];
}

#if defined(WEFT_HAND_VECTORS)
#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int Ints __attribute__((vector_size(4 * kLanes)));
typedef unsigned UInts __attribute__((vector_size(4 * kLanes)));
template <>
struct Lanes<Floats> {
  static constexpr int kCount = kLanes;
  using Int = Ints;
  using UInt = UInts;
};

inline Floats root(Floats x) {
#if defined(__AVX512F__)
  return _mm512_sqrt_ps(x);
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#else
  for (int k = 0; k < kLanes; ++k) x[k] = __builtin_sqrtf(x[k]);
  return x;
#endif
}
inline Floats floor(Floats x) {
#if defined(__AVX512F__)
  return _mm512_floor_ps(x);
#elif defined(__AVX2__)
  return _mm256_floor_ps(x);
#else
  for (int k = 0; k < kLanes; ++k) x[k] = __builtin_floorf(x[k]);
  return x;
#endif
}
inline Ints whole(Floats x) { return __builtin_convertvector(x, Ints); }

inline Floats gathered(const float* from, Ints index) {
#if defined(__AVX512F__)
  return _mm512_i32gather_ps((__m512i)index, from, 4);
#elif defined(__AVX2__)
  return _mm256_i32gather_ps(from, (__m256i)index, 4);
#else
  Floats x;
  for (int k = 0; k < kLanes; ++k) x[k] = from[index[k]];
  return x;
#endif
}

struct Numbers {
  alignas(4 * kLanes) int of[kLanes];
  Ints lanes() const { return bits<Ints>(of); }
};
template <class Function>
constexpr Numbers numbers(Function each) {
  Numbers n{};
  for (int k = 0; k < kLanes; ++k) n.of[k] = each(k);
  return n;
}
template <>
inline Floats ascending<Floats>(std::int64_t first) {
  static constexpr Numbers from_zero = numbers([](int k) { return k; });
  return __builtin_convertvector(from_zero.lanes() + int(first), Floats);
}

/// Places at which shuffles find the lanes of a result, one shuffle for each vector after the first: a lane comes from
/// the vector that has it, or else from the shuffle before.
template <int S>
struct Places {
  Numbers at[S][S];
};
/// \param lane  of all lanes of S vectors, the one that lane k of result c takes
template <int S, class Lane>
constexpr Places<S> places(Lane lane) {
  Places<S> p{};
  for (int c = 0; c < S; ++c)
    for (int from = 1; from < S; ++from)
      for (int k = 0; k < kLanes; ++k) {
        const int wanted = lane(c, k), of = wanted / kLanes;
        p.at[c][from].of[k] = of == from ? kLanes + wanted % kLanes : from == 1 && of == 0 ? wanted : k;
      }
  return p;
}
template <int S>
void shuffle(const Places<S>& places, const Floats (&in)[S], Floats (&out)[S]) {
  for (int c = 0; c < S; ++c) {
    out[c] = in[0];
    for (int from = 1; from < S; ++from) out[c] = __builtin_shuffle(out[c], in[from], places.at[c][from].lanes());
  }
}

template <int S>
void load_elements(const float* from, Floats (&out)[S]) {
  static constexpr Places<S> kPlaces = places<S>([](int c, int k) { return k * S + c; });
  Floats in[S];
  for (int c = 0; c < S; ++c) in[c] = load<Floats>(from + c * kLanes);
  shuffle<S>(kPlaces, in, out);
}
template <int S>
void store_elements(float* to, const Floats (&in)[S]) {
  static constexpr Places<S> kPlaces =
      places<S>([](int c, int k) { return (c * kLanes + k) % S * kLanes + (c * kLanes + k) / S; });
  Floats out[S];
  shuffle<S>(kPlaces, in, out);
  for (int c = 0; c < S; ++c) store(to + c * kLanes, out[c]);
}
#endif

/// Calls body.template run<F>(i) for elements from i on, as many as F has lanes, and for the rest one by one.
template <class F, class Body>
void for_elements(std::int64_t begin, std::int64_t end, const Body& body) {
  std::int64_t i = begin;
  for (constexpr int n = Lanes<F>::kCount; i + n <= end; i += n) body.template run<F>(i);
  if constexpr (Lanes<F>::kCount > 1)
    for (; i < end; ++i) body.template run<float>(i);
}

}  // namespace

}  // namespace weft::bench
