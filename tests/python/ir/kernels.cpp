// Kernels in C++ that tests/python/test_ir_hash.py has in Python: prints the hash of each one's IR. Where the order of
// reads decides the code, they are named one by one, because C++ leaves the order of operands open.
#include <weft/geometry.h>
#include <weft/weft.h>

#include <cstdio>

using namespace weft;

struct Particle {
  vec3 position;
  vec3 velocity;
  float mass;
  int kind;
};
WEFT_STRUCT(Particle, position, velocity, mass, kind);

namespace {

/// The kernel whose IR is shown instead of the hashes of all; null: none.
const char* wanted = nullptr;

template <class... P>
void show(const Kernel<P...>& k) {
  if (!wanted)
    std::printf("%s %s\n", k.name().c_str(), to_hex(ir::hash(k.trace())).c_str());
  else if (k.name() == wanted)
    std::printf("%s\n", k.dump("ir").c_str());
}

void show_arithmetic() {
  show(kernel("scale", [](Arr<float> x, Float a) {
    Int i = tid();
    x[i] = x[i] * a;
  }));
  show(kernel("axpy", [](Arr<float> x, Arr<float> y, Float a) {
    Int i = tid();
    Float p = a * x[i];
    y[i] = p + y[i];
  }));
  show(kernel("integers", [](Arr<int> x, Int n) {
    Int i = tid();
    Int v = x[i];
    x[i] = (v * 3 - n) % 7;
  }));
  show(kernel("bits", [](Arr<unsigned> x, UInt mask) {
    Int i = tid();
    UInt v = x[i];
    UInt kept = v & mask;
    x[i] = kept ^ (v << 3u);
  }));
  show(kernel("functions", [](Arr<float> x) {
    Int i = tid();
    Float v = x[i];
    Float s = sin(v), c = cos(v);
    x[i] = sqrt(s * s + c * c);
  }));
  show(kernel("doubles", [](Arr<double> x) {
    Int i = tid();
    Double v = x[i];
    x[i] = exp(v) + 1.0;
  }));
  show(kernel("limits", [](Arr<float> x, Float lo, Float hi) {
    Int i = tid();
    x[i] = clamp(Float(x[i]), lo, hi);
  }));
  show(kernel("casts", [](Arr<int> x, Arr<float> y) {
    Int i = tid();
    y[i] = Float(Int(x[i])) * 0.5f;
  }));
}

void show_control() {
  show(kernel("branch", [](Arr<float> x) {
    Int i = tid();
    Float v = x[i];
    If (v < 0.f) {
      x[i] = -v;
    }
  }));
  show(kernel("either", [](Arr<float> x) {
    Int i = tid();
    Float v = x[i];
    If (v < 0.f) {
      x[i] = 1.f;
    }
    Else { x[i] = 2.f; }
  }));
  show(kernel("summed", [](Arr<float> x, Arr<float> y, Int n) {
    Int i = tid();
    Float s = 0.f;
    for (Int k : range(n)) s += x[k];
    y[i] = s;
  }));
  show(kernel("stepped", [](Arr<float> x, Arr<float> y, Int n) {
    Int i = tid();
    Float s = 0.f;
    for (Int k : range(Int(2), n, Int(3))) s += x[k];
    y[i] = s;
  }));
  show(kernel("halved", [](Arr<int> x) {
    Int i = tid();
    Int v = x[i];
    Int count = 0;
    While (v > 1) {
      v = v / 2;
      count = count + 1;
    }
    x[i] = count;
  }));
  show(kernel("left", [](Arr<float> x, Arr<int> y, Int n) {
    Int i = tid();
    Int found = -1;
    for (Int k : range(n)) {
      If (x[k] > 0.f) {
        found = k;
        Break();
      }
    }
    y[i] = found;
  }));
  show(kernel("returned", [](Arr<float> x, Int n) {
    Int i = tid();
    If (i >= n) {
      Return();
    }
    x[i] = 1.f;
  }));
  show(kernel("both", [](Arr<float> x, Int n) {
    Int i = tid();
    If (i > 0 && i < n) {
      x[i] = 0.f;
    }
  }));
}

void show_shapes() {
  show(kernel("rows", [](Arr<float, 2> a) {
    auto [i, j] = tid<2>();
    a(i, j) = a(j, i) + 1.f;
  }));
  show(kernel("extent", [](Arr<float> x, Arr<int> y) {
    Int i = tid();
    y[i] = x.shape(0);
  }));
  show(kernel("moved", [](Arr<vec3> x, Arr<vec3> v, Float dt) {
    Int i = tid();
    Vec3 at = x[i];
    Vec3 step = v[i] * dt;
    x[i] = at + step;
  }));
  show(kernel("lengths", [](Arr<vec3> x, Arr<float> y) {
    Int i = tid();
    y[i] = length(Vec3(x[i]));
  }));
  show(kernel("normals", [](Arr<vec3> x) {
    Int i = tid();
    x[i] = normalize(Vec3(x[i]));
  }));
  show(kernel("crossed", [](Arr<vec3> x, Arr<vec3> y, Arr<float> z) {
    Int i = tid();
    Vec3 a = x[i];
    Vec3 b = y[i];
    z[i] = dot(cross(a, b), a);
  }));
  show(kernel("products", [](Arr<mat33> m, Arr<vec3> x) {
    Int i = tid();
    Mat33 a = m[i];
    Vec3 v = x[i];
    x[i] = a * v;
  }));
  show(kernel("inverted", [](Arr<mat33> m) {
    Int i = tid();
    m[i] = inverse(Mat33(m[i]));
  }));
  show(kernel("turned", [](Arr<quat> q, Arr<vec3> x) {
    Int i = tid();
    Quat r = q[i];
    Vec3 v = x[i];
    x[i] = quat_rotate(r, v);
  }));
  show(kernel("placed", [](Arr<transform> t, Arr<vec3> x) {
    Int i = tid();
    Transform a = t[i];
    Vec3 p = x[i];
    x[i] = transform_point(a, p);
  }));
}

void show_memory() {
  show(kernel("counted", [](Arr<int> x, Arr<int> counts) {
    Int i = tid();
    Int v = x[i];
    atomic_add(counts[0], v);
  }));
  show(kernel("largest", [](Arr<float> x, Arr<float> most) {
    Int i = tid();
    Float v = x[i];
    atomic_max(most[0], v);
  }));
  show(kernel("particles", [](Arr<Particle> p, Float dt) {
    Int i = tid();
    Vec3 at = p[i].position;
    Vec3 v = p[i].velocity;
    p[i].position = at + v * dt;
  }));
  show(kernel("drawn", [](Arr<float> x, Int seed) {
    Int i = tid();
    UInt state = rand_init(seed, i);
    x[i] = randf(state);
  }));
  const auto squared = func("squared", [](Float v) { return v * v; });
  show(kernel("called", [=](Arr<float> x) {
    Int i = tid();
    Float v = x[i];
    Float once = squared(v);
    x[i] = once + squared(v + 1.f);
  }));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) wanted = argv[1];
  show_arithmetic();
  show_control();
  show_shapes();
  show_memory();
}
