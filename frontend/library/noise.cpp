// Gradient noise and its curl, written once for both faces over a scalar S: float, double, Float, Double.
#include "noise.h"

#include "pcg.h"

namespace weft::lib {

namespace {

template <class S>
using UIntOf = FaceLike<S, std::uint32_t>;
template <class S>
using IntOf = FaceLike<S, int>;

/// The cell of one coordinate.
template <class S>
struct Axis {
  S from[2];            ///< the coordinate relative to the cell's lower and upper end
  S blend;              ///< from 0 at the lower end to 1 at the upper one, with two derivatives that are 0 at both
  S slope;              ///< the derivative of `blend`
  UIntOf<S> corner[2];  ///< the two ends, as numbers of the lattice
};

template <class S>
Axis<S> axis(const S& x, const IntOf<S>* period) {
  const S below = floor(x), t = x - below;
  Axis<S> a{.from = {t, t - 1},
            .blend = t * t * t * (t * (t * 6 - 15) + 10),
            .slope = 30 * t * t * ((t - 1) * (t - 1)),
            .corner = {}};
  const IntOf<S> cell = cast<int>(below);
  if (period) {
    const IntOf<S> cells = max(*period, IntOf<S>(1)), rest = cell % cells;
    const IntOf<S> lower = select(rest < 0, rest + cells, rest);
    const IntOf<S> upper = select(lower == cells - 1, IntOf<S>(0), lower + 1);
    a.corner[0] = cast<std::uint32_t>(lower);
    a.corner[1] = cast<std::uint32_t>(upper);
  } else {
    a.corner[0] = cast<std::uint32_t>(cell);
    a.corner[1] = a.corner[0] + 1u;
  }
  return a;
}

/// Chooses a gradient by the hash of a corner: the upper bits choose its direction up to signs, others the signs.
/// Line: anything in [-1, 1). Plane: 8 directions, 45 degrees apart, none along an axis or a diagonal. Space, and 4
/// dimensions: one component is 0, the others are equal but for their signs (12 and 32 directions).
template <int N, class S>
void gradient(const UIntOf<S>& hash, S* g) {
  using B = FaceLike<S, bool>;
  auto with_sign = [&](int i, const S& m) { return select((hash & (1u << (12 + i))) != 0u, -m, m); };
  if constexpr (N == 1) {
    g[0] = cast<HostOf<S>>(cast<int>(hash) >> 8) * S(0x1p-23);
  } else if constexpr (N == 2) {
    const S near = 0.92387953251128675613, far = 0.38268343236508977173;  // cos, sin of 22.5 degrees
    const B steep = hash >= 0x80000000u;
    g[0] = with_sign(0, select(steep, far, near));
    g[1] = with_sign(1, select(steep, near, far));
  } else if constexpr (N == 3) {
    const S part = 0.70710678118654752440, none = 0;
    const B first = hash < 0x55555555u, second = hash < 0xaaaaaaaau;
    g[0] = select(first, none, with_sign(0, part));
    g[1] = select(first, with_sign(1, part), select(second, none, with_sign(1, part)));
    g[2] = select(second, with_sign(2, part), none);
  } else {
    const S part = 0.57735026918962576451, none = 0;
    const UIntOf<S> zero = hash >> 30u;
    for (unsigned i = 0; i < 4; ++i) g[i] = select(zero == i, none, with_sign(int(i), part));
  }
}

/// The values of `Fields` noise functions and their derivatives by the first D coordinates.
template <class S, int Fields, int D>
struct Jets {
  S value[Fields];
  S slope[Fields][D > 0 ? D : 1];
};

/// Several functions share the hash of a corner: its multiples by odd numbers differ in their upper bits.
constexpr std::uint32_t kFieldFactor[] = {1u, 0x9e3779b1u, 0x85ebca77u};

/// Interpolates over the coordinates from K on; `hash` stands for the corner in the coordinates before, and `from` has
/// the distances to it.
template <int N, int Fields, int D, int K, class S>
Jets<S, Fields, D> interpolate(const Axis<S>* axes, const UIntOf<S>& hash, S* from) {
  Jets<S, Fields, D> out;
  if constexpr (K == N) {
    for (int f = 0; f < Fields; ++f) {
      S g[N];
      gradient<N, S>(f == 0 ? hash : UIntOf<S>(hash * kFieldFactor[f]), g);
      S sum = g[0] * from[0];
      for (int i = 1; i < N; ++i) sum += g[i] * from[i];
      out.value[f] = sum;
      for (int d = 0; d < D; ++d) out.slope[f][d] = g[d];
    }
  } else {
    const Axis<S>& a = axes[K];
    from[K] = a.from[0];
    const auto lower = interpolate<N, Fields, D, K + 1, S>(axes, detail::pcg(UIntOf<S>(hash ^ a.corner[0])), from);
    from[K] = a.from[1];
    const auto upper = interpolate<N, Fields, D, K + 1, S>(axes, detail::pcg(UIntOf<S>(hash ^ a.corner[1])), from);
    for (int f = 0; f < Fields; ++f) {
      const S rise = upper.value[f] - lower.value[f];
      out.value[f] = lower.value[f] + a.blend * rise;
      for (int d = 0; d < D; ++d) {
        out.slope[f][d] = lower.slope[f][d] + a.blend * (upper.slope[f][d] - lower.slope[f][d]);
        if (d == K) out.slope[f][d] += a.slope * rise;
      }
    }
  }
  return out;
}

/// `hash` is the hash of a seed, so that neighbouring seeds are as different as any others.
template <int N, int Fields, int D, class S>
Jets<S, Fields, D> jets(const UIntOf<S>& hash, const S* at, const IntOf<S>* period) {
  Axis<S> axes[N];
  for (int i = 0; i < N; ++i) axes[i] = axis<S>(at[i], period ? period + i : nullptr);
  S from[N];
  return interpolate<N, Fields, D, 0, S>(axes, hash, from);
}

}  // namespace

template <int N, class S>
S noise(const FaceLike<S, std::uint32_t>& seed, const typename PointOf<N, S>::type& at,
        const FaceLike<S, int>* period) {
  S x[N];
  if constexpr (N == 1)
    x[0] = at;
  else
    for (int i = 0; i < N; ++i) x[i] = at[i];
  return jets<N, 1, 0, S>(detail::pcg(seed), x, period).value[0];
}

template <int N, class S>
VecOf<N == 2 ? 2 : 3, S> curlnoise(const FaceLike<S, std::uint32_t>& seed, const VecOf<N, S>& at, bool single,
                                   const FaceLike<S, int>& octaves, const S& lacunarity, const S& gain) {
  VecOf<N == 2 ? 2 : 3, S> sum;
  UIntOf<S> hash = detail::pcg(seed);
  S frequency = 1, strength = 1;
  auto octave = [&] {
    S x[N];
    for (int i = 0; i < N; ++i) x[i] = frequency * at[i];
    if constexpr (N == 2) {
      const auto p = jets<2, 1, 2, S>(hash, x, nullptr);
      sum.x += strength * p.slope[0][1];
      sum.y -= strength * p.slope[0][0];
    } else {
      const auto p = jets<N, 3, 3, S>(hash, x, nullptr);
      sum.x += strength * (p.slope[2][1] - p.slope[1][2]);
      sum.y += strength * (p.slope[0][2] - p.slope[2][0]);
      sum.z += strength * (p.slope[1][0] - p.slope[0][1]);
    }
  };
  if (single) {
    octave();
  } else {
    for ([[maybe_unused]] auto k : range_of<S>(octaves)) {
      octave();
      hash = detail::pcg(hash);
      frequency *= lacunarity;
      strength *= gain;
    }
  }
  return sum;
}

#define WEFT_INSTANTIATE_NOISE(N, S) \
  template S noise<N, S>(const FaceLike<S, std::uint32_t>&, const PointOf<N, S>::type&, const FaceLike<S, int>*);
#define WEFT_INSTANTIATE_CURL(N, R, S)                                                              \
  template VecOf<R, S> curlnoise<N, S>(const FaceLike<S, std::uint32_t>&, const VecOf<N, S>&, bool, \
                                       const FaceLike<S, int>&, const S&, const S&);
#define WEFT_INSTANTIATE(S)      \
  WEFT_INSTANTIATE_NOISE(1, S)   \
  WEFT_INSTANTIATE_NOISE(2, S)   \
  WEFT_INSTANTIATE_NOISE(3, S)   \
  WEFT_INSTANTIATE_NOISE(4, S)   \
  WEFT_INSTANTIATE_CURL(2, 2, S) \
  WEFT_INSTANTIATE_CURL(3, 3, S) \
  WEFT_INSTANTIATE_CURL(4, 3, S)
WEFT_INSTANTIATE(float)
WEFT_INSTANTIATE(double)
WEFT_INSTANTIATE(Var<float>)
WEFT_INSTANTIATE(Var<double>)
#undef WEFT_INSTANTIATE
#undef WEFT_INSTANTIATE_CURL
#undef WEFT_INSTANTIATE_NOISE

}  // namespace weft::lib
