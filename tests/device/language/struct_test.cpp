// User structs in kernels: both ways of declaring them, nested, with fixed arrays inside, as arguments and in arrays.
#include "../device_test.h"

using namespace weft;

namespace {

DEVICE_TEST(Structs);

template <template <class> class F = Host>
struct Particle {
  F<vec3> pos, vel;
  F<float> mass;

  auto energy() const { return 0.5f * mass * dot(vel, vel); }
  template <class T>
  void advance(const T& dt) {
    pos += vel * dt;
  }
};

// A struct with fields of 1, 2, 4 and 8 bytes, and gaps between them and at the end.
template <template <class> class F = Host>
struct Mixed {
  F<bool> on;
  F<std::int16_t> s;
  F<std::int8_t> b;
  F<double> d;
  F<half> h;
  F<std::uint64_t> u;
  F<vec2> v;
  F<std::uint8_t> last;
};

struct Body {
  vec3 pos{}, vel{};
  float weights[4] = {};
  int id = 0;
};
WEFT_STRUCT(Body, pos, vel, weights, id);

template <template <class> class F = Host>
struct Cluster {
  F<int> count;
  F<Particle<>> center;
  F<std::array<Particle<>, 2>> members;
  F<Body> body;
  F<std::array<float, 5>> weights;
  F<mat22> frame;
};

Particle<> particle(int i) {
  const float f = float(i);
  return {{f, 2 * f, -f}, {1, f, 0.5f}, f + 1};
}

std::vector<Particle<>> particles(int n) {
  std::vector<Particle<>> p;
  for (int i = 0; i < n; ++i) p.push_back(particle(i));
  return p;
}

bool equal(const Particle<>& a, const Particle<>& b) { return a.pos == b.pos && a.vel == b.vel && a.mass == b.mass; }

TEST_P(Structs, fields_of_elements_are_read_and_written) {
  Array<Particle<>> ps(device(), particles(5));
  launch(kernel("step",
                [](Arr<Particle<>> ps, Float dt) {
                  Int i = tid();
                  ps[i].vel += vec3{0, -1, 0} * dt;
                  ps[i].pos += ps[i].vel * dt;
                  ps[i].pos.x = 7;
                  ps[i].mass *= 2;
                }),
         5, ps, 0.5f);
  const auto out = ps.to_vector();
  for (int i = 0; i < 5; ++i) {
    Particle<> p = particle(i);
    p.vel += vec3{0, -1, 0} * 0.5f;
    p.pos += p.vel * 0.5f;
    p.pos.x = 7;
    p.mass *= 2;
    EXPECT_TRUE(equal(out[std::size_t(i)], p)) << i;
  }
}

TEST_P(Structs, a_struct_is_an_argument_and_its_functions_work_on_every_face) {
  Array<Particle<>> ps(device(), particles(4));
  Array<float> out = zeros<float>(device(), 9);
  const Particle<> one = particle(6);
  launch(kernel("faces",
                [](Arr<Particle<>> ps, Var<Particle<>> one, Arr<float> out, Arr<const Particle<>> read) {
                  Int i = tid();
                  Var<Particle<>> p = ps[i];
                  out[i] = p.energy();
                  out[i + 4] = read[i].energy();
                  out[8] = one.energy();
                  p.advance(one.mass);
                  ps[i].advance(0.5f);
                  If (i == 3) {
                    ps[i] = p;
                  }
                }),
         4, ps, one, out, ps.clone());
  const auto o = out.to_vector();
  const auto moved = ps.to_vector();
  for (int i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(o[std::size_t(i)], particle(i).energy());
    EXPECT_FLOAT_EQ(o[std::size_t(i) + 4], particle(i).energy());
    Particle<> p = particle(i);
    p.advance(i == 3 ? one.mass : 0.5f);
    EXPECT_TRUE(equal(moved[std::size_t(i)], p)) << i;
  }
  EXPECT_FLOAT_EQ(o[8], one.energy());
}

TEST_P(Structs, variables_are_snapshots_and_follow_control_flow) {
  Array<Particle<>> ps(device(), particles(6)), out = zeros<Particle<>>(device(), 6);
  launch(kernel("variables",
                [](Arr<Particle<>> ps, Arr<Particle<>> out) {
                  Int i = tid();
                  Var<Particle<>> p = ps[i];
                  Var<Particle<>> before = p;
                  ps[i].mass = -1;
                  p.mass = 100;
                  Var<Particle<>> best;
                  If (i == 0) {
                    best = p;
                  }
                  ElseIf (i == 1) {
                    best = before;
                  }
                  ElseIf (i == 2) {
                    best = Particle<>{{1, 2, 3}, {4, 5, 6}, 7};
                  }
                  ElseIf (i == 3) {
                    best = ps[0];
                  }
                  ElseIf (i == 4) {
                    best = Particle<Var>{.pos = vec3{9, 9, 9}, .vel = before.vel, .mass = 3};
                  }
                  for (auto k : range(3)) {
                    If (i == 5) {
                      best.mass += Float(k) + 1;
                      best.vel.y = best.mass;
                    }
                  }
                  out[i] = best;
                }),
         6, ps, out);
  const auto o = out.to_vector();
  Particle<> p0 = particle(0);
  p0.mass = 100;
  EXPECT_TRUE(equal(o[0], p0));
  EXPECT_TRUE(equal(o[1], particle(1)));
  EXPECT_TRUE(equal(o[2], {{1, 2, 3}, {4, 5, 6}, 7}));
  EXPECT_EQ(o[3].pos, particle(0).pos);
  EXPECT_TRUE(equal(o[4], {{9, 9, 9}, particle(4).vel, 3}));
  EXPECT_TRUE(equal(o[5], {{}, {0, 6, 0}, 6}));
}

TEST_P(Structs, whole_structs_are_assigned_compared_and_chosen) {
  Array<Particle<>> ps(device(), particles(4));
  Array<Particle<>> chosen = zeros<Particle<>>(device(), 4);
  Array<int> same = zeros<int>(device(), 4);
  launch(kernel("whole",
                [](Arr<Particle<>> ps, Arr<Particle<>> chosen, Arr<int> same, Var<Particle<>> like) {
                  Int i = tid();
                  Var<Particle<>> p = ps[i];
                  same[i] = select(p == like, 1, 0) + select(ps[i] != ps[i], 2, 0) + select(ps[i] == like, 4, 0) +
                            select(like != p, 8, 0);
                  chosen[i] = select(i < 2, p, like);
                  If (i == 3) {
                    chosen[i] = ps[i];
                  }
                }),
         4, ps, chosen, same, particle(2));
  EXPECT_EQ(same.to_vector(), (std::vector<int>{8, 8, 5, 8}));
  const auto c = chosen.to_vector();
  EXPECT_TRUE(equal(c[0], particle(0)) && equal(c[1], particle(1)) && equal(c[2], particle(2)) &&
              equal(c[3], particle(3)));
}

TEST_P(Structs, fields_of_every_width_lie_where_the_host_has_them) {
  const std::vector<Mixed<>> in = {
      {true, -300, -5, 0.1, half(1.5f), 1ull << 60, {1, 2}, 200},
      {false, 32767, 127, -1e300, half(-0.25f), 3, {-1, 0.5f}, 255},
  };
  Array<Mixed<>> a(device(), in), b = zeros<Mixed<>>(device(), 2), c = zeros<Mixed<>>(device(), 2);
  launch(kernel("mixed",
                [](Arr<const Mixed<>> a, Arr<Mixed<>> b, Arr<Mixed<>> c, Var<Mixed<>> second) {
                  Int i = tid();
                  b[i] = a[i];
                  c[i].on = !a[i].on;
                  c[i].s = a[i].s + 1;
                  c[i].b = a[i].b;
                  c[i].d = second.d * 2;
                  c[i].h = second.h;
                  c[i].u = a[i].u + second.u;
                  c[i].v = second.v;
                  c[i].last = second.last;
                }),
         2, a, b, c, in[1]);
  const auto x = b.to_vector(), y = c.to_vector();
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(x[i].on, in[i].on);
    EXPECT_EQ(x[i].s, in[i].s);
    EXPECT_EQ(x[i].b, in[i].b);
    EXPECT_EQ(x[i].d, in[i].d);
    EXPECT_EQ(float(x[i].h), float(in[i].h));
    EXPECT_EQ(x[i].u, in[i].u);
    EXPECT_EQ(x[i].v, in[i].v);
    EXPECT_EQ(x[i].last, in[i].last);
    EXPECT_EQ(y[i].on, !in[i].on);
    EXPECT_EQ(y[i].s, std::int16_t(in[i].s + 1));
    EXPECT_EQ(y[i].b, in[i].b);
    EXPECT_EQ(y[i].d, in[1].d * 2);
    EXPECT_EQ(float(y[i].h), float(in[1].h));
    EXPECT_EQ(y[i].u, in[i].u + 3);
    EXPECT_EQ(y[i].v, in[1].v);
    EXPECT_EQ(y[i].last, 255);
  }
}

TEST_P(Structs, foreign_structs_are_declared_by_one_line) {
  std::vector<Body> in(3);
  for (int i = 0; i < 3; ++i) in[std::size_t(i)] = {{float(i), 0, 0}, {0, 1, 0}, {1, 2, 3, float(i)}, i * 10};
  Array<Body> bodies(device(), in);
  launch(kernel("bodies",
                [](Arr<Body> bodies, Var<Body> push) {
                  Int i = tid();
                  Var<Body> b = bodies[i];
                  b.pos += b.vel + push.vel;
                  b.weights[1] = b.weights[3] + push.weights[0];
                  b.id += push.id;
                  bodies[i] = b;
                  bodies[i].weights[i] = -1;
                }),
         3, bodies, Body{{}, {0, 0, 2}, {0.5f, 0, 0, 0}, 1});
  const auto out = bodies.to_vector();
  for (int i = 0; i < 3; ++i) {
    const Body& b = out[std::size_t(i)];
    EXPECT_EQ(b.pos, (vec3{float(i), 1, 2}));
    float weights[4] = {1, float(i) + 0.5f, 3, float(i)};
    weights[i] = -1;
    for (int k = 0; k < 4; ++k) EXPECT_EQ(b.weights[k], weights[k]) << i << " " << k;
    EXPECT_EQ(b.id, 10 * i + 1);
  }
}

TEST_P(Structs, structs_and_arrays_nest) {
  std::vector<Cluster<>> in(3);
  for (int i = 0; i < 3; ++i) {
    Cluster<>& c = in[std::size_t(i)];
    c = {i, particle(i), {particle(i + 1), particle(i + 2)}, {}, {1, 2, 3, 4, 5}, mat22{1, 2, 3, float(i)}};
    c.body.id = i;
  }
  Array<Cluster<>> clusters(device(), in);
  Array<float> out = zeros<float>(device(), 3);
  launch(kernel("clusters",
                [](Arr<Cluster<>> clusters, Arr<float> out, Var<Cluster<>> like) {
                  Int i = tid();
                  auto& c = clusters[i];
                  Var<Particle<>> first = c.members[0];
                  for (auto k : range(2)) c.members[k].mass += 10;
                  c.members[1].pos.y = first.mass;
                  clusters[i].center = c.members[i % 2];
                  c.body.weights[i] = like.body.weights[2 - i] + 1;
                  out[i] = c.weights[i] + like.weights[i + 1] + c.frame(1, 1) + like.members[1].mass;
                  Var<std::array<float, 5>> w = c.weights;
                  w[4] = w[i] * 100;
                  c.weights = w;
                }),
         3, clusters, out, in[2]);
  const auto o = clusters.to_vector();
  for (int i = 0; i < 3; ++i) {
    const Cluster<>& c = o[std::size_t(i)];
    Particle<> members[2] = {particle(i + 1), particle(i + 2)};
    for (Particle<>& p : members) p.mass += 10;
    members[1].pos.y = particle(i + 1).mass;
    EXPECT_TRUE(equal(c.members[0], members[0])) << i;
    EXPECT_TRUE(equal(c.members[1], members[1])) << i;
    EXPECT_TRUE(equal(c.center, members[i % 2])) << i;
    EXPECT_EQ(c.body.weights[i], 1);
    EXPECT_EQ(c.body.id, i);
    EXPECT_EQ(c.weights, (std::array<float, 5>{1, 2, 3, 4, float(i + 1) * 100}));
    EXPECT_EQ(out.at(i), float(i + 1) + float(i + 2) + float(i) + particle(4).mass);
  }
}

TEST_P(Structs, strided_views_and_several_dimensions_hold_structs) {
  Array<Particle<>, 2> grid = zeros<Particle<>, 2>(device(), {4, 6});
  const auto number = kernel("number", [](Arr<Particle<>, 2> grid) {
    auto [i, j] = tid<2>();
    Var<Particle<>> p;
    p.mass = Float(i * 10 + j);
    p.pos.z = 1;
    grid(i, j) = p;
    grid[i][j].vel.x = Float(j);
  });
  launch(number, {4, 6}, grid);
  Array<Particle<>, 2> odd = grid.slice(1, 6, 2, 1).slice(1, 4, 2);
  launch(number, {2, 3}, odd);
  const auto all = grid.to_vector(), some = odd.to_vector();
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 6; ++j) {
      const bool seen = i % 2 == 1 && j % 2 == 1;
      const Particle<>& p = all[std::size_t(i * 6 + j)];
      EXPECT_EQ(p.mass, seen ? float(i / 2 * 10 + j / 2) : float(i * 10 + j));
      EXPECT_EQ(p.vel.x, seen ? float(j / 2) : float(j));
      EXPECT_EQ(p.pos.z, 1);
    }
  ASSERT_EQ(some.size(), 6u);
  EXPECT_EQ(some[5].mass, 12);
}

TEST_P(Structs, fields_take_atomics) {
  Array<Particle<>> ps = zeros<Particle<>>(device(), 2);
  launch(kernel("atomics",
                [](Arr<Particle<>> ps) {
                  Int i = tid();
                  atomic_add(ps[i % 2].mass, 1.f);
                  atomic_add(ps[0].pos.y, 2.f);
                }),
         100, ps);
  EXPECT_EQ(ps.at(0).mass, 50);
  EXPECT_EQ(ps.at(1).mass, 50);
  EXPECT_EQ(ps.at(0).pos.y, 200);
}

TEST_P(Structs, a_fixed_array_is_indexed_by_traced_integers) {
  Array<int> out = zeros<int>(device(), 6);
  launch(kernel("pick",
                [](Arr<int> out, Var<std::array<int, 3>> table) {
                  Int i = tid();
                  Var<std::array<vec2i, 2>> pairs;
                  pairs[0] = Vec2i(1, 2);
                  pairs[1] = Vec2i(i, 4);
                  Int sum = 0;
                  for (const auto& p : pairs) sum += p.y;
                  out[i] = select(i < 3, table[i % 3], pairs[i % 2].x + sum);
                }),
         6, out, std::array<int, 3>{5, 6, 7});
  EXPECT_EQ(out.to_vector(), (std::vector<int>{5, 6, 7, 3 + 6, 1 + 6, 5 + 6}));
}

template <template <class> class F = Host>
struct Joint {
  F<transform> frame;
  F<quat> turn;
  F<Particle<>> tip;
};

TEST_P(Structs, fields_may_be_rotations_and_transformations) {
  const auto swing = [](Var<Joint<>> joint, Var<Body> body, Float by) {
    Var<Joint<>> j = joint;
    j.tip.pos = quat_rotate(joint.turn, joint.tip.pos) + body.pos * by;
    j.frame = transform_multiply(joint.frame, joint.frame);
    j.tip.mass += body.weights[2];
    return j;
  };
  std::vector<Joint<>> in(4);
  for (std::size_t i = 0; i < 4; ++i) {
    in[i].tip = particle(int(i));
    in[i].turn = quat_from_axis_angle(vec3{0, 0, 1}, 0.5f * float(i));
    in[i].frame = transform(vec3{1, float(i), 0}, quat_identity());
  }
  Array<Joint<>> joints(device(), in);
  launch(kernel("swing_all",
                [=](Arr<Joint<>> joints, Var<Body> body) {
                  Int i = tid();
                  joints[i] = swing(joints[i], body, 2.f);
                }),
         4, joints, Body{{1, 2, 3}, {}, {0, 0, 5, 0}, 0});
  const auto out = joints.to_vector();
  for (std::size_t i = 0; i < 4; ++i) {
    const vec3 expected = quat_rotate(in[i].turn, in[i].tip.pos) + vec3{2, 4, 6};
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(out[i].tip.pos[k], expected[k], 1e-3);
    EXPECT_EQ(out[i].tip.mass, in[i].tip.mass + 5);
    EXPECT_EQ(out[i].tip.vel, in[i].tip.vel);
    EXPECT_EQ(transform_get_translation(out[i].frame), (vec3{2, 2 * float(i), 0}));
  }
}

TEST_P(Structs, an_index_out_of_a_fixed_array_means_the_nearest_element) {
  Array<Cluster<>> clusters(device(), std::vector<Cluster<>>(3));
  Array<float> read = zeros<float>(device(), 12);
  const auto ends = kernel("ends", [](Arr<Cluster<>> clusters, Arr<float> read, Int far) {
    Int i = tid();
    for (int k = 0; k < 5; ++k) clusters[i].weights[k] = Float(10 * i + k);
    Var<std::array<float, 5>> w = clusters[i].weights;
    Var<std::array<vec2, 3>> pairs;
    for (int k = 0; k < 3; ++k) pairs[k] = Vec2(Float(k), Float(100 + k));
    read[4 * i] = w[far] + pairs[far].y;
    read[4 * i + 1] = w[-far - 1] + pairs[Int64(-1) - Int64(far)].y;
    read[4 * i + 2] = clusters[i].weights[far];
    read[4 * i + 3] = clusters[i].weights[Int16(-far)];
    clusters[i].weights[far] = -1;
    clusters[i].weights[UInt(far) + 0x80000000u] -= 1;
    clusters[i].weights[-far] = -3;
    clusters[i].members[far].mass = Float(i + 1);
  });
  launch(ends, 3, clusters, read, 7);
  const std::vector<float> values = read.to_vector();
  const std::vector<Cluster<>> out = clusters.to_vector();
  for (std::size_t i = 0; i < 3; ++i) {
    const float first = 10 * float(i), last = first + 4;
    EXPECT_EQ(values[4 * i], last + 102);
    EXPECT_EQ(values[4 * i + 1], first + 100);
    EXPECT_EQ(values[4 * i + 2], last);
    EXPECT_EQ(values[4 * i + 3], first);
    EXPECT_EQ(out[i].weights, (std::array<float, 5>{-3, first + 1, first + 2, first + 3, -2}));
    EXPECT_EQ(out[i].members[0].mass, 0);
    EXPECT_EQ(out[i].members[1].mass, float(i + 1));
  }
}

TEST_P(Structs, debug_mode_checks_indices_of_fixed_arrays) {
  Array<Cluster<>> clusters(device(), std::vector<Cluster<>>(3));
  const auto put =
      kernel("put", [](Arr<Cluster<>> clusters, Int k) { clusters[tid()].weights[k] = 2; }, {.debug = true});
  launch(put, 3, clusters, 4);
  EXPECT_EQ(clusters.at(2).weights[4], 2);
  launch(put, 3, clusters, 5);
  test::expect_contains(
      test::error_of([&] { clusters.to_vector(); }),
      "thread 0: index 5 is outside dimension 1 of argument 1, which has 5 elements (element (0, 5))");
  launch(put, 3, clusters, -1);
  test::expect_contains(test::error_of([&] { clusters.to_vector(); }), "index -1 is outside dimension 1");
}

TEST_P(Structs, a_host_index_out_of_a_fixed_array_is_an_error) {
  Array<float> out = zeros<float>(device(), 1);
  const std::string text = test::error_of([&] {
    launch(kernel("beyond", [](Arr<float> out, Var<std::array<float, 3>> t) { out[0] = t[3]; }), 1, out,
           std::array<float, 3>{});
  });
  test::expect_contains(text, "index 3 is out of range: there are 3, from 0");
  test::expect_contains(text, "beyond");
}

}  // namespace
