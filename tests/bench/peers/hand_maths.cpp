// Kernels by hand that compute.
#include "hand_lanes.h"

namespace weft::bench {

namespace {

template <class F>
F reciprocal_root(const F& x) {
  return 1.0f / root(x);
}
template <class F>
F dot(const F* a, const F* b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

struct NBodyBody {
  const float* bodies;
  float* out;
  int n;
  template <class F>
  void run(std::int64_t i) const {
    F self[4], sum[3] = {};
    load_elements<4>(bodies + 4 * i, self);
    for (int j = 0; j < n; ++j) {
      const float* other = bodies + 4 * j;
      const F d[3] = {other[0] - self[0], other[1] - self[1], other[2] - self[2]};
      const F r = reciprocal_root<F>(dot<F>(d, d) + 0.01f);
      const F k = other[3] * r * r * r;
      for (int c = 0; c < 3; ++c) sum[c] = sum[c] + d[c] * k;
    }
    store_elements<3>(out + 3 * i, sum);
  }
};
template <class F>
void nbody(const float* bodies, float* out, int n, std::int64_t begin, std::int64_t end) {
  for_elements<F>(begin, end, NBodyBody{bodies, out, n});
}

struct MandelbrotRow {
  int* out;
  int n, limit;
  float cy;
  template <class F>
  void run(std::int64_t j) const;
};
template <>
void MandelbrotRow::run<float>(std::int64_t j) const {
  const float cx = float(j) * (3.0f / float(n)) - 2.25f;
  float x = 0, y = 0;
  int steps = 0;
  for (; steps < limit && x * x + y * y <= 4.0f; ++steps) {
    const float t = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = t;
  }
  out[j] = steps;
}
#if defined(WEFT_HAND_VECTORS)
#if defined(__AVX512F__)
using Mask = __mmask16;
Mask still(Mask live, Floats square) { return _mm512_mask_cmp_ps_mask(live, square, same<Floats>(4), _CMP_LE_OQ); }
Ints counted(Ints steps, Mask live) {
  return (Ints)_mm512_mask_add_epi32((__m512i)steps, live, (__m512i)steps, _mm512_set1_epi32(1));
}
bool any(Mask live) { return live != 0; }
#else
using Mask = Ints;
Mask still(Mask live, Floats square) { return live & (square <= 4.0f); }
Ints counted(Ints steps, Mask live) { return steps - live; }
bool any(Mask live) {
#if defined(__AVX2__)
  return _mm256_movemask_ps((__m256)live) != 0;
#else
  int all = 0;
  for (int k = 0; k < kLanes; ++k) all |= live[k];
  return all != 0;
#endif
}
#endif
/// Lanes that have left compute on; only those that have not are counted.
template <>
void MandelbrotRow::run<Floats>(std::int64_t j) const {
  const Floats cx = ascending<Floats>(j) * (3.0f / float(n)) - 2.25f;
  Floats x{}, y{};
  Ints steps{};
  Mask live = ~Mask{};
  for (int k = 0; k < limit; ++k) {
    const Floats xx = x * x, yy = y * y;
    live = still(live, xx + yy);
    if (!any(live)) break;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
    steps = counted(steps, live);
  }
  std::memcpy(out + j, &steps, sizeof steps);
}
#endif
template <class F>
void mandelbrot(int* out, int n, int limit, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i)
    for_elements<F>(0, n, MandelbrotRow{out + i * n, n, limit, float(i) * (3.0f / float(n)) - 1.5f});
}

// The algorithm of frontend/library/factor.cpp, with columns as arrays of three.

constexpr float kTiny = 1e-18f;

template <class F>
struct Jacobi {
  F c, s, h;
  Jacobi(const F& d, const F& o) {
    const F e = abs(d) + kTiny, o2 = o + o;
    const F h2 = e * e + o2 * o2, ih = reciprocal_root<F>(h2);
    const F c2 = 0.5f + 0.5f * (e * ih), ic = reciprocal_root<F>(c2);
    const F large = c2 * ic, small = o * ih * ic;
    c = select(d < 0.0f, small, large);
    s = select(d < 0.0f, large, small);
    h = h2 * ih;
  }
  void rotate(F* p, F* q) const {
    for (int k = 0; k < 3; ++k) {
      const F old = p[k];
      p[k] = old * c + q[k] * s;
      q[k] = q[k] * c - old * s;
    }
  }
};

/// Makes the element (p, q) zero; `first` of all, so that no other is yet.
template <class F>
Jacobi<F> annihilate(F* d, F* o, int p, int q) {
  const int r = 3 - p - q;
  const Jacobi<F> j(d[p] - d[q], o[r]);
  const F mean = 0.5f * (d[p] + d[q]), half = 0.5f * j.h;
  d[p] = mean + half;
  d[q] = mean - half;
  o[r] = F{};
  const F pr = o[q];
  o[q] = j.c * pr + j.s * o[p];
  o[p] = j.c * o[p] - j.s * pr;
  return j;
}
template <class F>
void scale(F* v, const F& by) {
  for (int k = 0; k < 3; ++k) v[k] = v[k] * by;
}
template <class F>
void cross(const F* a, const F* b, F* c) {
  c[0] = a[1] * b[2] - a[2] * b[1];
  c[1] = a[2] * b[0] - a[0] * b[2];
  c[2] = a[0] * b[1] - a[1] * b[0];
}

constexpr int kPairs[3][2] = {{0, 1}, {0, 2}, {1, 2}};

/// Eigenvectors of the symmetric matrix with this diagonal and these other elements.
template <class F>
void diagonalise(F* d, F* o, F (*w)[3]) {
  const Jacobi<F> a = annihilate(d, o, 0, 1), b = annihilate(d, o, 0, 2), c = annihilate(d, o, 1, 2);
  const F start[3][3] = {{a.c * b.c, a.s * b.c, b.s}, {-a.s, a.c, F{}}, {-a.c * b.s, -a.s * b.s, b.c}};
  for (int k = 0; k < 3; ++k)
    for (int i = 0; i < 3; ++i) w[k][i] = start[k][i];
  c.rotate(w[1], w[2]);
  for (int sweep = 1; sweep < 3; ++sweep)
    for (const auto& [p, q] : kPairs) annihilate(d, o, p, q).rotate(w[p], w[q]);
  scale(w[0], reciprocal_root<F>(dot(w[0], w[0])));
  const F along = dot(w[0], w[1]);
  for (int k = 0; k < 3; ++k) w[1][k] = w[1][k] - w[0][k] * along;
  scale(w[1], reciprocal_root<F>(dot(w[1], w[1])));
  cross(w[0], w[1], w[2]);
}

struct SvdBody {
  const float* a;
  float *u, *sigma, *v;
  template <class F>
  void run(std::int64_t i) const {
    using I = typename Lanes<F>::Int;
    F m[9], w[3][3], b[3][3], l[3][3];
    load_elements<9>(a + 9 * i, m);
    F largest = abs(m[0]);
    for (const F& each : m) largest = max<F>(largest, abs(each));
    const I exponent = min<I>(max<I>(bits<I>(largest) & 0x7f800000, I{} + 0x00800000), I{} + 0x7e800000);
    const F factor = bits<F>(I(0x7f000000 - exponent)), inverse = bits<F>(exponent);
    F columns[3][3];
    for (int k = 0; k < 3; ++k)
      for (int r = 0; r < 3; ++r) columns[k][r] = m[3 * r + k] * factor;
    F d[3] = {dot(columns[0], columns[0]), dot(columns[1], columns[1]), dot(columns[2], columns[2])};
    F o[3] = {dot(columns[1], columns[2]), dot(columns[0], columns[2]), dot(columns[0], columns[1])};
    diagonalise(d, o, w);
    for (int k = 0; k < 3; ++k)
      for (int r = 0; r < 3; ++r) b[k][r] = columns[0][r] * w[k][0] + columns[1][r] * w[k][1] + columns[2][r] * w[k][2];
    for (const auto& [p, q] : kPairs) {
      const Jacobi<F> j(dot(b[p], b[p]) - dot(b[q], b[q]), dot(b[p], b[q]));
      j.rotate(b[p], b[q]);
      j.rotate(w[p], w[q]);
    }
    split(b, l);
    const F x = dot(l[0], b[0]), y = min<F>(abs(dot(l[1], b[1])), x), z = min<F>(max<F>(dot(l[2], b[2]), -y), y);
    const F values[3] = {x * inverse, y * inverse, z * inverse};
    store_elements<3>(sigma + 3 * i, values);
    store_matrix<F>(u + 9 * i, l);
    store_matrix<F>(v + 9 * i, w);
  }

 private:
  /// Unit vectors along the columns of b; a column that is only rounding error gets one across the first.
  template <class F>
  static void split(F (*b)[3], F (*l)[3]) {
    l[0][0] = b[0][0] + kTiny;
    l[0][1] = b[0][1];
    l[0][2] = b[0][2];
    scale(l[0], reciprocal_root<F>(dot(l[0], l[0])));
    const F along = dot(l[0], b[1]);
    F across[3];
    for (int k = 0; k < 3; ++k) across[k] = b[1][k] - l[0][k] * along;
    const auto distinct = dot(across, across) > max<F>(0.25f * dot(b[1], b[1]), F{} + kTiny * kTiny);
    const auto beside_x = abs(l[0][0]) < 0.6f;
    const F other[3] = {select(beside_x, F{}, F(-l[0][1])), select(beside_x, F(-l[0][2]), l[0][0]),
                        select(beside_x, l[0][1], F{})};
    for (int k = 0; k < 3; ++k) l[1][k] = select(distinct, across[k], other[k]);
    scale(l[1], reciprocal_root<F>(dot(l[1], l[1])));
    cross(l[0], l[1], l[2]);
  }
  template <class F>
  static void store_matrix(float* to, const F (*columns)[3]) {
    F flat[9];
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c) flat[3 * r + c] = columns[c][r];
    store_elements<9>(to, flat);
  }
};
template <class F>
void svd3(const float* a, float* u, float* sigma, float* v, std::int64_t begin, std::int64_t end) {
  for_elements<F>(begin, end, SvdBody{a, u, sigma, v});
}

// The algorithm of frontend/library/noise.cpp.

template <class U>
U pcg(const U& x) {
  const U state = x * 747796405u + 2891336453u;
  const U word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
  return (word >> 22u) ^ word;
}
template <class F>
F corner(const typename Lanes<F>::UInt& hash, const F& x, const F& y, const F& z) {
  const F part = same<F>(0.70710678118654752440f);
  const auto first = hash < 0x55555555u, second = hash < 0xaaaaaaaau;
  const F gx = select((hash & 0x1000u) != 0u, -part, part), gy = select((hash & 0x2000u) != 0u, -part, part),
          gz = select((hash & 0x4000u) != 0u, -part, part);
  return select(first, F{}, gx) * x + select(first, gy, select(second, F{}, gy)) * y + select(second, gz, F{}) * z;
}
template <class F>
struct Axis {
  F from[2], blend;
  typename Lanes<F>::UInt corner[2];
  explicit Axis(const F& x) {
    const F below = floor(x), t = x - below;
    from[0] = t;
    from[1] = t - 1.0f;
    blend = t * t * t * (t * (t * 6.0f - 15.0f) + 10.0f);
    corner[0] = bits<typename Lanes<F>::UInt>(whole(below));
    corner[1] = corner[0] + 1u;
  }
};
template <class F>
F between(const F& lower, const F& upper, const F& t) {
  return lower + t * (upper - lower);
}
struct NoiseRow {
  float* out;
  unsigned seed;
  float y, z;
  template <class F>
  void run(std::int64_t j) const {
    using U = typename Lanes<F>::UInt;
    const Axis<F> x(ascending<F>(j) * 0.07f), y(same<F>(this->y)), z(same<F>(this->z));
    const U hash = U{} + pcg(seed);
    F planes[2];
    for (int a = 0; a < 2; ++a) {
      const U in_x = pcg<U>(hash ^ x.corner[a]);
      F lines[2];
      for (int b = 0; b < 2; ++b) {
        const U in_y = pcg<U>(in_x ^ y.corner[b]);
        lines[b] = between<F>(corner<F>(pcg<U>(in_y ^ z.corner[0]), x.from[a], y.from[b], z.from[0]),
                              corner<F>(pcg<U>(in_y ^ z.corner[1]), x.from[a], y.from[b], z.from[1]), z.blend);
      }
      planes[a] = between<F>(lines[0], lines[1], y.blend);
    }
    store<F>(out + j, between<F>(planes[0], planes[1], x.blend));
  }
};
template <class F>
void noise(float* out, int n, unsigned seed, float z, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i)
    for_elements<F>(0, n, NoiseRow{out + i * n, seed, float(i) * 0.07f, z * 0.07f});
}

template <class F>
constexpr HandMaths form(const char* name) {
  return {name, nbody<F>, mandelbrot<F>, svd3<F>, noise<F>};
}

}  // namespace

const HandMaths* hand_maths() {
  static constexpr HandMaths forms[] = {
    form<float>("loops by hand"),
#if defined(WEFT_HAND_VECTORS)
    form<Floats>("vectors by hand")
#endif
  };
  return forms;
}

}  // namespace weft::bench
