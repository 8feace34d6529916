// The layout that weft derives for a struct is the one that the compiler gives it.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <algorithm>
#include <cstddef>

using namespace weft;
using detail::Layout;

namespace {

template <class T>
std::vector<std::uint32_t> leaf_offsets() {
  std::vector<std::uint32_t> offsets;
  for (const detail::Leaf& leaf : Layout<T>::leaves) offsets.push_back(leaf.offset);
  return offsets;
}
template <class T>
std::vector<std::uint32_t> field_offsets() {
  std::vector<std::uint32_t> offsets;
  for (const detail::FieldPlace& place : Layout<T>::fields) offsets.push_back(place.offset);
  return offsets;
}

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
template <template <class> class F = Host>
struct Outer {
  F<std::uint8_t> first;
  F<Mixed<>> mixed;
  F<half> h;
  F<std::array<Mixed<>, 3>> several;
  F<mat33> m;
  F<std::array<vec3h, 2>> small;
};
struct Foreign {
  char c;
  double grid[2][3];
  bool flags[5];
  Mixed<> mixed;
  float f;
};
WEFT_STRUCT(Foreign, c, grid, flags, mixed, f);

TEST(StructLayout, fields_lie_where_the_compiler_puts_them) {
  using M = Mixed<>;
  EXPECT_EQ(field_offsets<M>(),
            (std::vector<std::uint32_t>{offsetof(M, on), offsetof(M, s), offsetof(M, b), offsetof(M, d), offsetof(M, h),
                                        offsetof(M, u), offsetof(M, v), offsetof(M, last)}));
  EXPECT_EQ(Layout<M>::size, sizeof(M));
  EXPECT_EQ(Layout<M>::align, alignof(M));
  using O = Outer<>;
  EXPECT_EQ(field_offsets<O>(), (std::vector<std::uint32_t>{offsetof(O, first), offsetof(O, mixed), offsetof(O, h),
                                                            offsetof(O, several), offsetof(O, m), offsetof(O, small)}));
  EXPECT_EQ(Layout<O>::size, sizeof(O));
  EXPECT_EQ(field_offsets<Foreign>(),
            (std::vector<std::uint32_t>{offsetof(Foreign, c), offsetof(Foreign, grid), offsetof(Foreign, flags),
                                        offsetof(Foreign, mixed), offsetof(Foreign, f)}));
  EXPECT_EQ(Layout<Foreign>::size, sizeof(Foreign));
}

TEST(StructLayout, leaves_are_all_scalars_in_order) {
  EXPECT_EQ(leaf_offsets<Mixed<>>(), (std::vector<std::uint32_t>{0, 2, 4, 8, 16, 24, 32, 36, 40}));
  EXPECT_EQ(Layout<Outer<>>::count, 1 + 9 + 1 + 27 + 9 + 6);
  const auto offsets = leaf_offsets<Foreign>();
  ASSERT_EQ(offsets.size(), 1u + 6 + 5 + 9 + 1);
  EXPECT_EQ(offsets[6], offsetof(Foreign, grid) + 40);
  EXPECT_EQ(offsets[11], offsetof(Foreign, flags) + 4);
  EXPECT_EQ(Layout<Foreign>::leaves[11].type, ir::Type::b1);
  EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end()));
}

// A struct of three fields, for every three of these types.
template <class A, class B, class C>
struct Three {
  template <template <class> class F = Host>
  struct S {
    F<A> a;
    F<B> b;
    F<C> c;
  };
};
template <class A, class B, class C>
void check_three() {
  using S = typename Three<A, B, C>::template S<Host>;
  S s{};
  const auto at = [&](const auto& field) {
    return std::uint32_t(reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&s));
  };
  EXPECT_EQ(field_offsets<S>(), (std::vector<std::uint32_t>{at(s.a), at(s.b), at(s.c)})) << detail::pretty_type<S>();
  EXPECT_EQ(Layout<S>::size, sizeof(S)) << detail::pretty_type<S>();
  EXPECT_EQ(Layout<S>::align, alignof(S)) << detail::pretty_type<S>();
}
template <class... T>
struct List {};
template <class A, class B, class... C>
void check_thirds(List<C...>) {
  (check_three<A, B, C>(), ...);
}
template <class A, class... B>
void check_seconds(List<B...> all) {
  (check_thirds<A, B>(all), ...);
}
template <class... A>
void check_all(List<A...> all) {
  (check_seconds<A>(all), ...);
}

TEST(StructLayout, any_three_fields_agree_with_the_compiler) {
  check_all(List<bool, std::int16_t, vec3, double, std::array<half, 3>>());
}

template <template <class> class F = Host>
struct Holder {
  F<std::uint8_t> tag;
  F<Array<float>> line;
  F<Array<vec3, 3>> volume;
  F<float> scale;
};

TEST(StructLayout, arrays_in_structs_are_an_address_and_sizes) {
  EXPECT_TRUE(Layout<Holder<>>::holds_arrays);
  EXPECT_EQ(field_offsets<Holder<>>(), (std::vector<std::uint32_t>{0, 8, 24, 48}));
  EXPECT_EQ(Layout<Holder<>>::size, 56u);
  EXPECT_EQ(Array<Holder<>>().element_bytes(), 56u);
}

template <template <class> class F = Host>
struct Largest {
  F<float> a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15;
  F<std::int8_t> b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15;
};

TEST(StructLayout, thirty_two_fields_are_told_apart) {
  EXPECT_EQ(detail::FieldTypes<Largest<>>::count, 32);
  EXPECT_EQ(field_offsets<Largest<>>().back(), offsetof(Largest<>, b15));
  EXPECT_EQ(Layout<Largest<>>::size, sizeof(Largest<>));
}

TEST(StructLayout, messages_know_the_names_of_types_and_fields) {
  EXPECT_EQ(detail::TypeName<Mixed<>>::get(), "Mixed");
  EXPECT_EQ(detail::TypeName<Foreign>::get(), "Foreign");
  EXPECT_EQ((detail::TypeName<std::array<Mixed<>, 3>>::get()), "array<Mixed, 3>");
  EXPECT_EQ((detail::struct_field_name<Foreign, 2>()), "flags");
#ifdef WEFT_NAMES_FIELDS
  EXPECT_EQ((detail::struct_field_name<Mixed<>, 7>()), "last");
#else
  EXPECT_EQ((detail::struct_field_name<Mixed<>, 7>()), "field 8");
#endif
}

TEST(StructLayout, accesses_are_as_wide_as_fields_and_alignment_allow) {
  const auto loads = [](const ir::Module& m) {
    std::vector<int> widths;
    for (ir::Id id : m.regions[0].insts)
      if (m[id].op == ir::Op::load) widths.push_back(m[id].width);
    return widths;
  };
  const auto aligned = kernel("aligned", [](Arr<const std::array<float, 8>> from, Arr<std::array<float, 8>> to) {
    Int i = tid();
    to[i] = from[i];
  });
  EXPECT_EQ(loads(aligned.trace()), (std::vector<int>{4, 4}));
  const auto fields = kernel("fields", [](Arr<const Three<float, float, vec2>::S<Host>> from, Arr<float> to) {
    Int i = tid();
    Var<Three<float, float, vec2>::S<Host>> s = from[i];
    to[i] = s.a + s.c.y;
  });
  EXPECT_EQ(loads(fields.trace()), (std::vector<int>{4}));
  const auto one = kernel("one", [](Arr<const Three<vec3, float, vec3>::S<Host>> from, Arr<float> to) {
    Int i = tid();
    Var<Three<vec3, float, vec3>::S<Host>> s = from[i];
    to[i] = s.b;
  });
  EXPECT_EQ(loads(one.trace()), (std::vector<int>{1}));  // fields that are not needed are not read
  const auto twice = kernel("twice", [](Arr<const Three<float, float, vec2>::S<Host>> from, Arr<float> to) {
    Int i = tid();
    auto& s = from[i];
    Var<Three<float, float, vec2>::S<Host>> a = s, b = s;
    Float sum = a.a + b.c.y;
    to[i] = sum;
    Var<Three<float, float, vec2>::S<Host>> c = s;  // the assignment may have changed the struct
    to[i] = sum + c.b;
  });
  EXPECT_EQ(loads(twice.trace()), (std::vector<int>{4, 4}));
}

}  // namespace
