// The kernels of Warp's page "Runtime Reference", each under the name of its section. Meshes, volumes, hash grids and
// tapes have tests of their own.
#include <cmath>
#include <string>

#include "../device_test.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(RuntimeReference);

constexpr float kPi = 3.14159265f;

/// Collects what kernels print while it lives.
class Printed {
 public:
  Printed() : before_(set_print_sink({write, this})) {}
  ~Printed() { set_print_sink(before_); }
  const std::string& text() const { return text_; }

 private:
  static void write(void* to, std::string_view line) { (static_cast<Printed*>(to)->text_ += line) += '\n'; }
  std::string text_;
  PrintSink before_;
};

// ---- Kernels

TEST_P(RuntimeReference, kernels_simple_kernel) {
  auto simple_kernel = kernel("simple_kernel", [](Arr<const vec3> a, Arr<const vec3> b, Arr<float> c) {
    Int i = tid();
    Vec3 x = a[i], y = b[i];
    Float r = dot(x, y);
    c[i] = r;
  });
  Array<vec3> a = full<vec3>(device(), 1024, vec3{1, 2, 3}), b = full<vec3>(device(), 1024, vec3{4, 5, 6});
  Array<float> c = zeros<float>(device(), 1024);
  launch(simple_kernel, 1024, a, b, c);
  EXPECT_EQ(c.at(1023), 32.f);
}

TEST_P(RuntimeReference, kernels_complex_kernel_over_three_dimensions) {
  auto complex_kernel = kernel("complex_kernel", [](Arr<int, 3> out) {
    auto [i, j, k] = tid<3>();
    out(i, j, k) = i * 10000 + j * 10 + k;
  });
  Array<int, 3> out = zeros<int, 3>(device(), {128, 128, 3});
  launch(complex_kernel, {128, 128, 3}, out);
  EXPECT_EQ(out.at(127, 64, 2), 1270642);
}

// ---- Arrays

TEST_P(RuntimeReference, arrays_constructors_and_copies) {
  const Device cpu(on_gpu() ? "reference" : "cpu");
  Array<vec3> e = empty<vec3>(cpu, 1024);
  Array<float> z = zeros<float>(device(), 1024);
  EXPECT_EQ(e.size(), z.size());

  std::vector<float> r;
  for (int k = 0; k < 1024; ++k) r.push_back(float(k) / 1024);
  Array<float> a(cpu, r);  // a copy
  if (cpu.wraps_host()) {
    Array<float> view = wrap(cpu, r);  // the same memory
    EXPECT_EQ(view.at(512), 0.5f);
  }
  std::vector<float> flat(3 * 1024, 2.f);
  Array<vec3> points = from_flat<vec3>(device(), flat);
  EXPECT_EQ(points.at(1023), vec3(2.f, 2.f, 2.f));

  Array<float> there = a.to(device());
  Array<float> target = empty_like(there);
  copy(target, a);
  EXPECT_EQ(target.to_vector(), r);
  EXPECT_EQ(zeros_like(there).at(7), 0.f);
  Array<float> own = there.clone();
  there.zero();
  EXPECT_EQ(own.to_vector(), r);
}

TEST_P(RuntimeReference, multi_dimensional_arrays_and_slices) {
  auto row_sum = [](Arr<const float> row) {
    Float sum = 0;
    for (auto k : range(row.shape(0))) sum += row[k];
    return sum;
  };
  auto test = kernel("test", [=](Arr<const float, 2> input, Arr<const float, 3> deep, Arr<float> sums) {
    Int i = tid();
    Float value = input(i, 0);
    auto row = input[i];
    auto s = deep[i][1];  // slices of slices
    sums[i] = value + row_sum(row) + s[2] + deep[i][0][1];
  });
  Array<float, 2> input = ones<float, 2>(device(), {8, 16});
  Array<float, 3> deep = full<float, 3>(device(), {8, 2, 4}, 0.5f);
  Array<float> sums = zeros<float>(device(), 8);
  launch(test, 8, input, deep, sums);
  for (float sum : sums.to_vector()) EXPECT_EQ(sum, 18.f);
}

// ---- Data types

template <class T>
bool stores_and_loads(const Device& device) {
  Array<T> a = arange<T>(device, 10), b = zeros_like(a);
  launch(kernel("copy",
                [](Arr<const T> a, Arr<T> b) {
                  Int i = tid();
                  b[i] = a[i];
                }),
         10, a, b);
  return a.to_vector() == b.to_vector() && b.at(9) == T(9);
}

TEST_P(RuntimeReference, scalar_types) {
  EXPECT_TRUE(stores_and_loads<std::int8_t>(device()));
  EXPECT_TRUE(stores_and_loads<std::uint8_t>(device()));
  EXPECT_TRUE(stores_and_loads<std::int16_t>(device()));
  EXPECT_TRUE(stores_and_loads<std::uint16_t>(device()));
  EXPECT_TRUE(stores_and_loads<std::int32_t>(device()));
  EXPECT_TRUE(stores_and_loads<std::uint32_t>(device()));
  EXPECT_TRUE(stores_and_loads<std::int64_t>(device()));
  EXPECT_TRUE(stores_and_loads<std::uint64_t>(device()));
  EXPECT_TRUE(stores_and_loads<float>(device()));
  EXPECT_TRUE(stores_and_loads<double>(device()));
}

TEST_P(RuntimeReference, vectors) {
  auto compute = kernel("compute", [](Arr<float> out, Arr<double> sums) {
    // basis vectors
    Vec3 a(1.0, 0.0, 0.0);
    Vec3 b(0.0, 1.0, 0.0);
    // take the cross product
    Vec3 c = cross(a, b);
    Float r = dot(c, c);
    out[0] = r;
    out[1] = c.z;

    using Vec5d = Vec<5, double>;  // a named type
    Vec5d zero;
    Vec5d v(1.0, 2.0, 3.0, 4.0, 5.0);
    sums[0] = dot(zero + v, v);
    Vec<5, double> same(1.0);  // all equal
    sums[1] = dot(same, v);
    sums[2] = dot(Vec<5, double>(), v);
  });
  Array<float> out = zeros<float>(device(), 2);
  Array<double> sums = ones<double>(device(), 3);
  launch(compute, 1, out, sums);
  EXPECT_EQ(out.to_vector(), (std::vector<float>{1, 1}));
  EXPECT_EQ(sums.to_vector(), (std::vector<double>{55, 15, 0}));
  Array<vec<5, double>> arr = zeros<vec<5, double>>(device(), 10);
  EXPECT_EQ(arr.at(9), (vec<5, double>()));
}

TEST_P(RuntimeReference, matrices) {
  auto compute = kernel("compute", [](Arr<vec2> v_out, Arr<vec<3, half>> v3_out, Arr<double> trace_out) {
    Mat22 m(1.0, 2.0, 3.0, 4.0);
    Mat22 minv = inverse(m);
    Vec2 v = minv * Vec2(0.5, 0.3);
    v_out[0] = v;

    Mat<3, 2, half> mh(1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
    Vec2h v2(1.0, 1.0);
    Vec<3, half> v3 = mh * v2;
    v3_out[0] = v3;

    Mat<3, 2, half> zero;
    v3_out[1] = zero * v2;
    auto identity = Mat<5, 5, double>::identity();
    trace_out[0] = trace(identity);
  });
  Array<vec2> v = zeros<vec2>(device(), 1);
  Array<vec<3, half>> v3 = zeros<vec<3, half>>(device(), 2);
  Array<double> t = zeros<double>(device(), 1);
  launch(compute, 1, v, v3, t);
  EXPECT_NEAR(v.at(0).x, -0.7f, 1e-5);
  EXPECT_NEAR(v.at(0).y, 0.6f, 1e-5);
  EXPECT_EQ(float(v3.at(0)[2]), 11.f);
  EXPECT_EQ(float(v3.at(1)[2]), 0.f);
  EXPECT_EQ(t.at(0), 5.0);
  Array<mat<3, 2, half>> a = zeros<mat<3, 2, half>>(device(), 10);
  EXPECT_EQ(a.size(), 10);
}

TEST_P(RuntimeReference, quaternions) {
  auto compute = kernel("compute", [](Arr<vec3> out, Arr<quatd> qd_out, Arr<quath> qh_out) {
    // a 30 degree rotation around the x axis
    Quat q = quat_from_axis_angle(Vec3(1.0, 0.0, 0.0), radians(30.f));
    out[0] = quat_rotate(q, Vec3(0.0, 1.0, 0.0));
    Quatd qd = quat_identity<double>();
    qd_out[0] = qd;
    Quat qf = quat_identity();
    out[1] = quat_rotate(qf, Vec3(1.0, 2.0, 3.0));
    Quath qh(0.0, 0.0, 0.0, 1.0);
    qh_out[0] = qh;
    qh_out[1] = Quath(Vec3h(0.0, 0.0, 0.0), 1.0);
  });
  Array<vec3> out = zeros<vec3>(device(), 2);
  Array<quatd> qd = zeros<quatd>(device(), 1);
  Array<quath> qh = zeros<quath>(device(), 2);
  launch(compute, 1, out, qd, qh);
  EXPECT_NEAR(out.at(0).y, std::cos(kPi / 6), 1e-3);
  EXPECT_NEAR(out.at(0).z, std::sin(kPi / 6), 1e-3);
  EXPECT_EQ(out.at(1), vec3(1.f, 2.f, 3.f));
  EXPECT_EQ(qd.at(0).w, 1.0);
  EXPECT_EQ(float(qh.at(1).w), 1.f);
}

TEST_P(RuntimeReference, transforms) {
  auto compute = kernel("compute", [](Arr<vec3> out, Arr<transformd> td) {
    Transform t(Vec3(1.0, 2.0, 3.0), quat_from_axis_angle(Vec3(0.0, 1.0, 0.0), radians(90.f)));
    out[0] = transform_point(t, Vec3(10.0, 0.5, 1.0));
    out[1] = transform_vector(t, Vec3(10.0, 0.5, 1.0));
    td[0] = transform_identity<double>();
  });
  Array<vec3> out = zeros<vec3>(device(), 2);
  Array<transformd> td = zeros<transformd>(device(), 1);
  launch(compute, 1, out, td);
  // Around y, x turns to -z and z to x.
  EXPECT_NEAR(out.at(1).x, 1, 0.02);
  EXPECT_NEAR(out.at(1).y, 0.5, 0.02);
  EXPECT_NEAR(out.at(1).z, -10, 0.02);
  EXPECT_NEAR(out.at(0).x, 2, 0.02);
  EXPECT_NEAR(out.at(0).z, -7, 0.02);
  EXPECT_EQ(td.at(0).q.w, 1.0);
}

}  // namespace

// ---- Structs

namespace {
template <template <class> class F = Host>
struct MyStruct {
  F<int> param1;
  F<float> param2;
  F<Array<vec3>> param3;
};

TEST_P(RuntimeReference, structs) {
  auto compute = kernel("compute", [](Var<MyStruct<>> args) {
    Int i = tid();
    print(args.param1);
    print(args.param2);
    print(args.param3[i]);
  });
  MyStruct<> s;
  s.param1 = 10;
  s.param2 = 2.5f;
  s.param3 = zeros<vec3>(device(), 10);
  const Printed printed;
  launch(compute, 10, s);
  device().synchronize();
  std::string expected;
  for (int k = 0; k < 10; ++k) expected += "10\n2.5\n[0, 0, 0]\n";
  EXPECT_EQ(printed.text(), expected);

  Array<MyStruct<>> zeroed = zeros<MyStruct<>>(device(), 10);
  EXPECT_EQ(zeroed.at(9).param1, 0);
  EXPECT_TRUE(zeroed.at(9).param3.is_null());
  Array<MyStruct<>> given(device(), {s, s, s});
  EXPECT_EQ(given.at(2).param2, 2.5f);
}

// ---- Constants

TEST_P(RuntimeReference, constants_collide) {
  const int TYPE_SPHERE = 0, TYPE_CUBE = 1, TYPE_CAPSULE = 2;
  auto collide = kernel("collide", [=](Arr<const int> geometry) {
    Int t = geometry[tid()];
    If (t == TYPE_SPHERE) {
      print("sphere");
    }
    If (t == TYPE_CUBE) {
      print("cube");
    }
    If (t == TYPE_CAPSULE) {
      print("capsule");
    }
  });
  Array<int> geometry(device(), {2, 0, 1, 0});
  const Printed printed;
  launch(collide, 4, geometry);
  device().synchronize();
  EXPECT_EQ(printed.text(), "capsule\nsphere\ncube\nsphere\n");
}

// ---- Type conversions, operators

TEST_P(RuntimeReference, type_conversions) {
  auto convert = kernel("convert", [](Arr<float> out) {
    Float x = Float(0.0) + Float(Int(4));  // Float(0.0) + Int(4) does not compile
    out[0] = x;
    out[1] = Float(Half(1.5)) + Float(UInt8(200));
  });
  Array<float> out = zeros<float>(device(), 2);
  launch(convert, 1, out);
  EXPECT_EQ(out.to_vector(), (std::vector<float>{4, 201.5}));
}

TEST_P(RuntimeReference, operators) {
  auto operators = kernel("operators", [](Arr<const int> in, Arr<int> booleans, Arr<float> floats, Arr<int> ints) {
    Int a = in[0], b = in[1];  // 7, -2
    // boolean, with short circuit: in[9] does not exist
    booleans[0] = Int(a > 0 and b < 0);
    booleans[1] = Int(a > 0 or in[9] == 0);
    booleans[2] = Int(not(a > 0));
    booleans[3] = Int(a < 0 and in[9] == 0);
    // comparison
    booleans[4] = Int(a > b), booleans[5] = Int(a < b), booleans[6] = Int(a >= 7);
    booleans[7] = Int(a <= 6), booleans[8] = Int(a == 7), booleans[9] = Int(a != 7);
    // arithmetic
    Float x = Float(a), y = Float(b);
    floats[0] = x + y, floats[1] = x - y, floats[2] = x * y, floats[3] = x / y;
    floats[4] = floor_div(x, y);
    floats[5] = pow(y, 3.0f);
    floats[6] = x % y;
    ints[0] = a + b, ints[1] = a - b, ints[2] = a * b, ints[3] = floor_div(a, b), ints[4] = a % b;
  });
  Array<int> in(device(), {7, -2}), booleans = full<int>(device(), 10, -1), ints = zeros<int>(device(), 5);
  Array<float> floats = zeros<float>(device(), 7);
  launch(operators, 1, in, booleans, floats, ints);
  EXPECT_EQ(booleans.to_vector(), (std::vector<int>{1, 1, 0, 0, 1, 0, 1, 0, 1, 0}));
  const std::vector<float> f = floats.to_vector();
  EXPECT_EQ((std::vector<float>{f.begin(), f.begin() + 3}), (std::vector<float>{5, 9, -14}));
  EXPECT_FLOAT_EQ(f[3], -3.5f);
  EXPECT_EQ(f[4], -4.f);
  EXPECT_NEAR(f[5], -8.f, 1e-4);
  EXPECT_EQ(f[6], 1.f);
  EXPECT_EQ(ints.to_vector(), (std::vector<int>{5, 9, -14, -4, 1}));
}

}  // namespace
