// Structs that hold arrays: as arguments, and as elements that hold device addresses.
#include "../device_test.h"

using namespace weft;

namespace {

DEVICE_TEST(StructArrays);

// A struct from the section "Structs" of Warp's documents.
template <template <class> class F = Host>
struct MyStruct {
  F<int> param1;
  F<float> param2;
  F<Array<vec3>> param3;
};

struct Grid {
  vec3 origin;
  Array<float, 2> cells;
  int level;
};
WEFT_STRUCT(Grid, origin, cells, level);

template <template <class> class F = Host>
struct Scene {
  F<MyStruct<>> objects;
  F<Grid> grid;
  F<double> time;
};

MyStruct<> make(const Device& device, int first, int n) {
  std::vector<vec3> points;
  for (int i = 0; i < n; ++i) points.push_back(vec3{float(first), float(i), 1});
  return {first, 2.5f, Array<vec3>(device, points)};
}

const auto compute = kernel("compute", [](Var<MyStruct<>> args, Arr<float> out) {
  Int i = tid();
  Vec3 p = args.param3[i];
  out[i] = Float(args.param1) + args.param2 * p.y + Float(args.param3.shape(0));
  args.param3[i] = p * 2;
  args.param3[i].z += 1;
});

TEST_P(StructArrays, a_struct_with_an_array_is_an_argument) {
  MyStruct<> s;
  s.param1 = 10;
  s.param2 = 2.5f;
  s.param3 = zeros<vec3>(device(), 10);
  s.param3.fill(vec3{1, 2, 3});
  Array<float> out = zeros<float>(device(), 10);
  launch(compute, 10, s, out);
  EXPECT_EQ(out.at(9), 10 + 5 + 10);
  EXPECT_EQ(s.param3.at(4), (vec3{2, 4, 7}));
}

TEST_P(StructArrays, strided_views_go_as_arguments) {
  Array<vec3> points = zeros<vec3>(device(), 10);
  MyStruct<> s{1, 1, points.slice(1, 10, 3)};
  Array<float> out = zeros<float>(device(), 3);
  launch(compute, 3, s, out);
  EXPECT_EQ(out.at(2), 4);
  const auto p = points.to_vector();
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(p[i].z, i % 3 == 1 ? 1 : 0) << i;
}

TEST_P(StructArrays, nested_structs_with_arrays_are_arguments) {
  Scene<> scene{make(device(), 3, 4), {{1, 2, 3}, full<float, 2>(device(), {4, 2}, 0.5f), 7}, 0.25};
  Array<double> out = zeros<double>(device(), 4);
  launch(kernel("scene",
                [](Arr<double> out, Var<Scene<>> scene, Int more) {
                  Int i = tid();
                  Var<Scene<>> copy = scene;
                  copy.time += 1;
                  Arr<float> row = scene.grid.cells[i];
                  row[1] += scene.grid.origin.y;
                  out[i] = copy.time + Double(scene.objects.param3[i].y) + Double(scene.grid.cells(i, 1)) +
                           Double(scene.grid.level + more + scene.grid.cells.shape(1));
                }),
         4, out, scene, 100);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out.at(i), 1.25 + i + 2.5 + 109);
  EXPECT_EQ(scene.grid.cells.to_vector(), (std::vector<float>{0.5f, 2.5f, 0.5f, 2.5f, 0.5f, 2.5f, 0.5f, 2.5f}));
}

TEST_P(StructArrays, messages_name_the_field_of_an_argument) {
  Array<float> out = zeros<float>(device(), 2);
  std::string text = test::error_of([&] { launch(compute, 2, MyStruct<>{1, 2, {}}, out); });
  // Compilers that cannot tell a field's name lead to its number instead.
  if (text.find("argument 1.param3") == text.npos) test::expect_contains(text, "argument 1.field 3");
  test::expect_contains(text, "null array");
  test::expect_contains(text, "compute");
  const auto nested = kernel("nested", [](Arr<float> out, Var<Scene<>> s) { out[tid()] = s.grid.cells(0, 0); });
  text = test::error_of([&] { launch(nested, 2, out, Scene<>{make(device(), 1, 1), {}, 0}); });
  test::expect_contains(text, ".cells is a null array");
}

const auto visit = kernel("visit", [](Arr<MyStruct<>> s, Arr<float> sums) {
  Int i = tid();
  Arr<vec3> points = s[i].param3;
  Float sum = 0;
  for (auto j : range(points.shape(0))) {
    sum += points[j].y + s[i].param3[j].x;
    s[i].param3[j].z = Float(i);
  }
  s[i].param1 += 1;
  sums[i] = sum * s[i].param2;
});

TEST_P(StructArrays, elements_hold_arrays) {
  std::vector<MyStruct<>> structs = {make(device(), 5, 3), make(device(), 7, 1), make(device(), 9, 6)};
  Array<MyStruct<>> a(device(), structs);
  Array<float> sums = zeros<float>(device(), 3);
  launch(visit, 3, a, sums);
  EXPECT_EQ(sums.to_vector(), (std::vector<float>{2.5f * (15 + 3), 2.5f * 7, 2.5f * (54 + 15)}));
  for (std::size_t i = 0; i < 3; ++i)
    for (const vec3& p : structs[i].param3.to_vector()) EXPECT_EQ(p.z, float(i));
  const auto back = a.to_vector();
  ASSERT_EQ(back.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(back[i].param1, structs[i].param1 + 1);
    EXPECT_EQ(back[i].param3.address(), structs[i].param3.address());
    EXPECT_EQ(back[i].param3.storage(), structs[i].param3.storage());
    EXPECT_EQ(back[i].param3.to_vector(), structs[i].param3.to_vector());
  }
  EXPECT_EQ(a.at(2).param3.size(), 6);
}

TEST_P(StructArrays, whatever_an_element_holds_lives_as_long_as_the_array) {
  Array<MyStruct<>> a, copy;
  Array<float> sums = zeros<float>(device(), 3);
  {
    a = Array<MyStruct<>>(device(), {make(device(), 5, 3), make(device(), 7, 1), make(device(), 9, 6)});
    copy = a.clone();
  }
  // These arrays would take memory that was freed too early.
  std::vector<Array<vec3>> others;
  for (int i = 0; i < 8; ++i) others.push_back(full<vec3>(device(), 6, vec3{1e6f, 1e6f, 1e6f}));
  a = {};
  launch(visit, 3, copy, sums);
  const std::vector<float> expected{2.5f * (15 + 3), 2.5f * 7, 2.5f * (54 + 15)};
  EXPECT_EQ(sums.to_vector(), expected);
  launch(visit, 3, copy, sums);
  copy = {};
  for (int i = 0; i < 8; ++i) others.push_back(full<vec3>(device(), 6, vec3{1e6f, 1e6f, 1e6f}));
  EXPECT_EQ(sums.to_vector(), expected);
}

TEST_P(StructArrays, launches_wait_for_what_elements_hold) {
  const int n = 1 << 12;
  Array<vec3> points = zeros<vec3>(device(), n);
  Array<MyStruct<>> holder(device(), {MyStruct<>{1, 1, points}});
  const auto grow = kernel("grow", [](Arr<vec3> x) { x[tid()].x += 1; });
  const auto twice = kernel("twice", [](Arr<MyStruct<>> s) {
    Int i = tid();
    s[0].param3[i].x = s[0].param3[s[0].param3.shape(0) - 1 - i].x * 0 + s[0].param3[i].x * 2;
  });
  for (int k = 0; k < 10; ++k) {
    launch(grow, n, points);
    launch(twice, n, holder);
  }
  for (const vec3& p : points.to_vector()) ASSERT_EQ(p.x, 2046);
}

TEST_P(StructArrays, several_streams_are_ordered_through_what_elements_hold) {
  const int n = 1 << 14;
  Array<vec3> points = zeros<vec3>(device(), n);
  Array<MyStruct<>> holder(device(), {MyStruct<>{1, 1, points}});
  const auto grow = kernel("grow", [](Arr<vec3> x) { x[tid()].x += 1; });
  const auto twice = kernel("twice", [](Arr<MyStruct<>> s) { s[0].param3[tid()].x *= 2; });
  Stream other = device().create_stream();
  for (int k = 0; k < 6; ++k) {
    launch(grow, n, points);
    launch(other, twice, n, holder);
  }
  for (const vec3& p : points.to_vector()) ASSERT_EQ(p.x, 126);
}

TEST_P(StructArrays, many_arrays_in_one_array_of_structs) {
  std::vector<MyStruct<>> structs;
  for (int i = 0; i < 150; ++i) structs.push_back(make(device(), i, i % 4 + 1));
  Array<MyStruct<>> a(device(), structs);
  Array<float> sums = zeros<float>(device(), 150);
  launch(visit, 150, a, sums);
  const auto s = sums.to_vector();
  for (int i = 0; i < 150; ++i) {
    const int n = i % 4 + 1;
    EXPECT_EQ(s[std::size_t(i)], 2.5f * float(i * n + n * (n - 1) / 2)) << i;
  }
}

TEST_P(StructArrays, zeros_and_fill_hold_null_arrays_and_one_array) {
  Array<MyStruct<>> a = zeros<MyStruct<>>(device(), 10);
  EXPECT_TRUE(a.at(3).param3.is_null());
  EXPECT_EQ(a.at(3).param1, 0);
  EXPECT_TRUE(empty<MyStruct<>>(device(), 4).at(2).param3.is_null());
  Array<float> sums = zeros<float>(device(), 10);
  launch(visit, 10, a, sums);  // null arrays have no elements to visit
  EXPECT_EQ(sums.at(9), 0);
  const MyStruct<> one = make(device(), 4, 2);
  a.fill(one);
  EXPECT_EQ(a.at(9).param3.address(), one.param3.address());
  launch(visit, 10, a, sums);
  EXPECT_EQ(sums.at(9), 2.5f * 9);
  EXPECT_EQ(full<MyStruct<>>(device(), 2, one).at(1).param3.size(), 2);
}

TEST_P(StructArrays, the_reference_device_finds_a_null_array) {
  if (!on_reference()) GTEST_SKIP() << "an access to a null array is undefined on other devices";
  Array<MyStruct<>> a = zeros<MyStruct<>>(device(), 2);
  const std::string text = test::error_of([&] {
    launch(kernel("null", [](Arr<MyStruct<>> a) { a[tid()].param3[1] = vec3{1, 2, 3}; }), 2, a);
  });
  test::expect_contains(text, "null or empty array of a struct");
  test::expect_contains(text, "\"null\"");
}

TEST_P(StructArrays, the_reference_device_checks_each_array_by_itself) {
  if (!on_reference()) GTEST_SKIP() << "an access outside an array is undefined on other devices";
  Array<MyStruct<>> a(device(), {make(device(), 1, 64), make(device(), 2, 2)});
  Array<float> out = zeros<float>(device(), 2);
  const auto read = kernel("read", [](Arr<MyStruct<>> a, Arr<float> out, Int j) {
    Int i = tid();
    out[i] = a[i].param3[j].y;
  });
  launch(read, 2, a, out, 1);
  EXPECT_EQ(out.to_vector(), (std::vector<float>{1, 1}));
  const std::string text = test::error_of([&] { launch(read, 2, a, out, 3); });
  test::expect_contains(text, "thread 1");
  test::expect_contains(text, "outside the array's 24 bytes");
}

TEST_P(StructArrays, elements_of_elements_hold_arrays) {
  Array<Scene<>> scenes(device(), {Scene<>{make(device(), 1, 2), {{}, full<float, 2>(device(), {2, 3}, 1.f), 4}, 0.5},
                                   Scene<>{make(device(), 2, 5), {{}, full<float, 2>(device(), {1, 2}, 2.f), 8}, 1.5}});
  Array<double> out = zeros<double>(device(), 2);
  launch(kernel("deep",
                [](Arr<const Scene<>> scenes, Arr<double> out) {
                  Int i = tid();
                  Var<Scene<>> s = scenes[i];
                  Float sum = 0;
                  for (auto r : range(s.grid.cells.shape(0)))
                    for (auto c : range(s.grid.cells.shape(1))) sum += scenes[i].grid.cells(r, c);
                  out[i] = s.time + Double(sum) + Double(s.objects.param3.shape(0) * 10 + s.grid.level);
                }),
         2, scenes, out);
  EXPECT_EQ(out.to_vector(), (std::vector<double>{0.5 + 6 + 20 + 4, 1.5 + 4 + 50 + 8}));
  const Scene<> back = scenes.at(1);
  EXPECT_EQ(back.grid.cells.shape(1), 2);
  EXPECT_EQ(back.objects.param3.at(4), (vec3{2, 4, 1}));
}

TEST_P(StructArrays, what_elements_cannot_hold_is_refused) {
  Array<vec3> points = zeros<vec3>(device(), 10);
  std::string text = test::error_of([&] { Array<MyStruct<>>(device(), {MyStruct<>{1, 1, points.slice(0, 10, 2)}}); });
  test::expect_contains(text, "strided view");
  const Device another = Device::open(device().name());
  text = test::error_of([&] { Array<MyStruct<>>(another, {MyStruct<>{1, 1, points}}); });
  test::expect_contains(text, "holds an array on device");
  Array<MyStruct<>> a(device(), {MyStruct<>{1, 1, points}});
  test::expect_contains(test::error_of([&] { a.to(another); }), "another device");
}

TEST_P(StructArrays, debug_mode_checks_indices_of_held_arrays) {
  Array<MyStruct<>> a(device(), {make(device(), 1, 3), make(device(), 2, 2)});
  Array<float> out = zeros<float>(device(), 2);
  const auto read = kernel("read_held",
                           [](Arr<MyStruct<>> a, Arr<float> out, Int first, Int j) {
                             Int i = tid();
                             out[i] = a[i + first].param3[j].y;
                           },
                           {.debug = true});
  launch(read, 2, a, out, 0, 1);
  EXPECT_EQ(out.to_vector(), (std::vector<float>{1, 1}));
  launch(read, 2, a, out, 0, 2);
  test::expect_contains(test::error_of([&] { out.to_vector(); }),
                        "thread 1: index 2 is outside dimension 0 of an array in argument 1, which has 2 elements");
  launch(read, 2, a, out, 1, 0);
  test::expect_contains(test::error_of([&] { out.to_vector(); }),
                        "thread 1: index 2 is outside dimension 0 of argument 1, which has 2 elements");
  Array<MyStruct<>> none = zeros<MyStruct<>>(device(), 2);
  launch(read, 1, none, out, 0, 0);
  test::expect_contains(test::error_of([&] { out.to_vector(); }), "an array in argument 1, which has 0 elements");
}

template <template <class> class F = Host>
struct Node {
  F<int> value;
  F<Array<Node<>>> children;
};

TEST_P(StructArrays, a_struct_may_hold_arrays_of_itself_but_not_in_a_circle) {
  Array<Node<>> leaves(device(), {Node<>{1, {}}, Node<>{2, {}}, Node<>{3, {}}});
  Array<Node<>> roots(device(), {Node<>{10, leaves.slice(0, 2)}, Node<>{20, leaves}});
  Array<int> sums = zeros<int>(device(), 2);
  launch(kernel("tree",
                [](Arr<Node<>> roots, Arr<int> sums) {
                  Int i = tid();
                  Arr<Node<>> children = roots[i].children;
                  Int sum = roots[i].value;
                  for (auto k : range(children.shape(0))) sum += children[k].value;
                  sums[i] = sum;
                }),
         2, roots, sums);
  EXPECT_EQ(sums.to_vector(), (std::vector<int>{13, 26}));
  test::expect_contains(test::error_of([&] { leaves.fill(Node<>{4, roots}); }), "circle");
  leaves.slice(0, 1).fill(Node<>{5, leaves.slice(1, 3)});  // it may hold the array itself
  EXPECT_EQ(leaves.at(0).children.to_vector()[1].value, 3);
}

}  // namespace
