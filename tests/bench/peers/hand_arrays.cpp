// Kernels by hand that move numbers more than they compute.
#include "hand_lanes.h"

namespace weft::bench {

namespace {

struct SaxpyBody {
  float a;
  const float* x;
  float* y;
  template <class F>
  void run(std::int64_t i) const {
    store<F>(y + i, load<F>(y + i) + a * load<F>(x + i));
  }
};
template <class F>
void saxpy(float a, const float* x, float* y, std::int64_t begin, std::int64_t end) {
  for_elements<F>(begin, end, SaxpyBody{a, x, y});
}

struct StencilRow {
  const float* in;
  float* out;
  int n;
  template <class F>
  void run(std::int64_t j) const {
    const float* p = in + j;
    store<F>(out + j, 0.2f * (load<F>(p) + load<F>(p - n) + load<F>(p + n) + load<F>(p - 1) + load<F>(p + 1)));
  }
};
template <class F>
void stencil(const float* in, float* out, int n, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const float* from = in + i * n;
    float* to = out + i * n;
    if (i == 0 || i == n - 1) {
      std::memcpy(to, from, std::size_t(n) * sizeof(float));
      continue;
    }
    to[0] = from[0];
    for_elements<F>(1, n - 1, StencilRow{from, to, n});
    to[n - 1] = from[n - 1];
  }
}

struct GatherBody {
  const float* x;
  const int* index;
  float* out;
  template <class F>
  void run(std::int64_t i) const {
    if constexpr (Lanes<F>::kCount == 1)
      out[i] = x[index[i]];
    else
      store<F>(out + i, gathered(x, bits<Ints>(load<F>(reinterpret_cast<const float*>(index) + i))));
  }
};
template <class F>
void gather(const float* x, const int* index, float* out, std::int64_t begin, std::int64_t end) {
  for_elements<F>(begin, end, GatherBody{x, index, out});
}

template <class F>
void transform(const float* m, const float* v, float* out, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const float *a = m + 16 * i, *x = v + 4 * i;
    for (int r = 0; r < 4; ++r)
      out[4 * i + r] = a[4 * r] * x[0] + a[4 * r + 1] * x[1] + a[4 * r + 2] * x[2] + a[4 * r + 3] * x[3];
  }
}
#if defined(WEFT_HAND_VECTORS)
typedef float Four __attribute__((vector_size(16)));
typedef int FourInts __attribute__((vector_size(16)));
/// Products of rows and the vector, turned over, so that sums are sums of vectors.
template <>
void transform<Floats>(const float* m, const float* v, float* out, std::int64_t begin, std::int64_t end) {
  const FourInts low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, first = {0, 1, 4, 5}, second = {2, 3, 6, 7};
  for (std::int64_t i = begin; i < end; ++i) {
    const Four x = load<Four>(v + 4 * i);
    Four p[4];
    for (int r = 0; r < 4; ++r) p[r] = load<Four>(m + 16 * i + 4 * r) * x;
    const Four a = __builtin_shuffle(p[0], p[1], low), b = __builtin_shuffle(p[2], p[3], low),
               c = __builtin_shuffle(p[0], p[1], high), d = __builtin_shuffle(p[2], p[3], high);
    store<Four>(out + 4 * i, __builtin_shuffle(a, b, first) + __builtin_shuffle(a, b, second) +
                                 __builtin_shuffle(c, d, first) + __builtin_shuffle(c, d, second));
  }
}
#endif

template <class F>
void cross(const F* a, const F* b, F* c) {
  c[0] = a[1] * b[2] - a[2] * b[1];
  c[1] = a[2] * b[0] - a[0] * b[2];
  c[2] = a[0] * b[1] - a[1] * b[0];
}

struct RotationBody {
  const float *q, *v;
  float* out;
  template <class F>
  void run(std::int64_t i) const {
    F r[4], x[3], t[3], u[3], y[3];
    load_elements<4>(q + 4 * i, r);
    load_elements<3>(v + 3 * i, x);
    cross(r, x, t);
    for (F& each : t) each = each * 2.0f;
    cross(r, t, u);
    for (int c = 0; c < 3; ++c) y[c] = x[c] + r[3] * t[c] + u[c];
    store_elements<3>(out + 3 * i, y);
  }
};
template <class F>
void rotation(const float* q, const float* v, float* out, std::int64_t begin, std::int64_t end) {
  for_elements<F>(begin, end, RotationBody{q, v, out});
}

struct ArraysBody {
  float *pos, *vel;
  const float* inv_mass;
  HandStep step;
  template <class F>
  void run(std::int64_t i) const {
    F p[3], v[3];
    load_elements<3>(pos + 3 * i, p);
    load_elements<3>(vel + 3 * i, v);
    const F m = load<F>(inv_mass + i);
    for (int c = 0; c < 3; ++c) {
      v[c] = v[c] + step.force[c] * m * step.dt;
      p[c] = p[c] + v[c] * step.dt;
    }
    store_elements<3>(vel + 3 * i, v);
    store_elements<3>(pos + 3 * i, p);
  }
};
template <class F>
void step_arrays(float* pos, float* vel, const float* inv_mass, HandStep step, std::int64_t begin, std::int64_t end) {
  for_elements<F>(begin, end, ArraysBody{pos, vel, inv_mass, step});
}

struct StructsBody {
  float* particles;
  HandStep step;
  template <class F>
  void run(std::int64_t i) const {
    F p[7];
    load_elements<7>(particles + 7 * i, p);
    for (int c = 0; c < 3; ++c) {
      p[3 + c] = p[3 + c] + step.force[c] * p[6] * step.dt;
      p[c] = p[c] + p[3 + c] * step.dt;
    }
    store_elements<7>(particles + 7 * i, p);
  }
};
template <class F>
void step_structs(float* particles, HandStep step, std::int64_t begin, std::int64_t end) {
  for_elements<F>(begin, end, StructsBody{particles, step});
}

struct ParticlesBody {
  float *x, *v;
  const float* w;
  HandStep step;
  float stiffness;
  template <class F>
  void run(std::int64_t i) const {
    F p[3], u[3];
    load_elements<3>(x + 3 * i, p);
    load_elements<3>(v + 3 * i, u);
    const F weight = load<F>(w + i);
    for (int c = 0; c < 3; ++c) {
      const F f = -stiffness * p[c];
      u[c] = u[c] + (f * weight + step.force[c]) * step.dt;
      p[c] = p[c] + u[c] * step.dt;
    }
    store_elements<3>(v + 3 * i, u);
    store_elements<3>(x + 3 * i, p);
  }
};
template <class F>
void particles(float* x, float* v, const float* w, HandStep step, float stiffness, std::int64_t begin,
               std::int64_t end) {
  for_elements<F>(begin, end, ParticlesBody{x, v, w, step, stiffness});
}

struct ParticlesBack {
  float *x, *v;
  const float* w;
  HandStep step;
  float stiffness;
  template <class F>
  void run(std::int64_t i) const {
    F p[3], u[3];
    load_elements<3>(x + 3 * i, p);
    load_elements<3>(v + 3 * i, u);
    const F weight = load<F>(w + i);
    for (int c = 0; c < 3; ++c) {
      u[c] = u[c] + p[c] * step.dt;
      p[c] = p[c] - stiffness * (u[c] * step.dt * weight);
    }
    store_elements<3>(v + 3 * i, u);
    store_elements<3>(x + 3 * i, p);
  }
};
template <class F>
void particles_back(float* x, float* v, const float* w, HandStep step, float stiffness, std::int64_t begin,
                    std::int64_t end) {
  for_elements<F>(begin, end, ParticlesBack{x, v, w, step, stiffness});
}

template <class F>
constexpr HandArrays form(const char* name) {
  return {name,        saxpy<F>,       stencil<F>,      gather<F>,    transform<F>,
          rotation<F>, step_arrays<F>, step_structs<F>, particles<F>, particles_back<F>};
}

}  // namespace

const HandArrays* hand_arrays() {
  static constexpr HandArrays forms[] = {
    form<float>("loops by hand"),
#if defined(WEFT_HAND_VECTORS)
    form<Floats>("vectors by hand")
#endif
  };
  return forms;
}

}  // namespace weft::bench
