// Access to the bits of floats, on both faces: for range reductions and scalings inside the library.
#pragma once
#include "../language/face.h"

namespace weft::lib {

template <class T>
struct FloatFormat;
template <>
struct FloatFormat<float> {
  using Bits = std::int32_t;
  static constexpr int digits = 23, bias = 127;
};
template <>
struct FloatFormat<double> {
  using Bits = std::int64_t;
  static constexpr int digits = 52, bias = 1023;
};

template <class S>
using BitsOf = FaceLike<S, typename FloatFormat<HostOf<S>>::Bits>;

/// The face in which functions of S compute: float16 is computed in float32 and rounded once.
template <class S>
using Wide = FaceLike<S, std::conditional_t<std::is_same_v<HostOf<S>, half>, float, HostOf<S>>>;

template <class S>
BitsOf<S> to_bits(const S& x) {
  return bitcast<typename FloatFormat<HostOf<S>>::Bits>(x);
}
template <class S, class B>
S from_bits(const B& bits) {
  return bitcast<HostOf<S>>(bits);
}

}  // namespace weft::lib
