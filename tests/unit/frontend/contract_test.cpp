// Contraction: which products and sums become fma, which stay, and how the marks of the others keep it decided once.
#include <gtest/gtest.h>

#include <functional>

#include "../../../frontend/adjoint/adjoint.h"
#include "../../../frontend/kernels/names.h"
#include "../../../frontend/language/detach.h"
#include "../../../frontend/language/report.h"
#include "../../../frontend/library/linalg.h"
#include "../../../frontend/library/noise.h"
#include "../../../frontend/library/random.h"
#include "../../../frontend/library/special.h"
#include "../../../frontend/library/vector.h"
#include "../../../frontend/passes/passes.h"
#include "../environment.h"

namespace weft::ir {
namespace {

/// The operations of a kernel and its functions that run, by name.
int count(const Module& m, Op op) {
  int n = 0;
  for (const Region& region : m.regions)
    for (const Id id : region.insts) n += m[id].op == op;
  for (const auto& function : m.functions) n += count(*function, op);
  return n;
}

/// The sums, differences and products of float32 and float64 that are not marked.
int unmarked(const Module& m) {
  int n = 0;
  for (const Region& region : m.regions)
    for (const Id id : region.insts) n += is_contractible(m[id].op, m[id].type) && m[id].imm != kRounded;
  for (const auto& function : m.functions) n += unmarked(*function);
  return n;
}

/// The operations of out[i] = f(x, y, z), which are all marked.
template <class T, class F>
Module trace_of(F f, KernelOptions options = {}) {
  const Module m = kernel(
                       "k", [f](Arr<T> out, Var<T> x, Var<T> y, Var<T> z) { out[tid()] = f(x, y, z); }, options)
                       .trace();
  EXPECT_EQ(unmarked(m), 0) << print(m);
  EXPECT_EQ(hash(contract(m)), hash(m)) << "a second run changes something:\n" << print(m);
  return m;
}

struct Counts {
  int fma = 0, neg = 0, mul = 0, add = 0, sub = 0;
  bool operator==(const Counts&) const = default;
};
void PrintTo(const Counts& c, std::ostream* out) {
  *out << c.fma << " fma, " << c.neg << " neg, " << c.mul << " mul, " << c.add << " add, " << c.sub << " sub";
}
Counts counts(const Module& m) {
  return {count(m, Op::fma), count(m, Op::neg), count(m, Op::mul), count(m, Op::add), count(m, Op::sub)};
}

template <class T, class F>
Counts counts_of(F f, KernelOptions options = {}) {
  return counts(trace_of<T>(f, options));
}

template <class T>
void expect_forms() {
  using V = Var<T>;
  const Counts sum{1}, difference{1, 1};
  EXPECT_EQ(counts_of<T>([](V x, V y, V z) { return x * y + z; }), sum);
  EXPECT_EQ(counts_of<T>([](V x, V y, V z) { return z + x * y; }), sum);
  EXPECT_EQ(counts_of<T>([](V x, V y, V z) { return x * y - z; }), difference);
  EXPECT_EQ(counts_of<T>([](V x, V y, V z) { return z - x * y; }), difference);
  EXPECT_EQ(counts_of<T>([](V x, V y, V z) { return z - -x * y; }), sum) << "two negations are none";
  EXPECT_EQ(counts_of<T>([](V x, V, V z) { return z - x * T(3); }), sum) << "a constant is negated for nothing";
  EXPECT_EQ(counts_of<T>([](V x, V y, V z) { return x * y + z * x; }), (Counts{1, 0, 1}));
  EXPECT_EQ(counts_of<T>([](V x, V y, V z) { return x * y - z * x; }), (Counts{1, 1, 1}));
  EXPECT_EQ(counts_of<T>([](V x, V y, V z) { return x * y + y * z + z * x; }), (Counts{2, 0, 1}));
  EXPECT_EQ(counts_of<T>([](V x, V y, V z) { return fma(x, y, z) + x; }), (Counts{1, 0, 0, 1}));
}

TEST(Contract, fuses_each_form) {
  expect_forms<float>();
  expect_forms<double>();
}

TEST(Contract, leaves_other_types) {
  EXPECT_EQ(counts_of<half>([](Half x, Half y, Half z) { return x * y + z; }), (Counts{0, 0, 1, 1}));
  EXPECT_EQ(counts_of<int>([](Int x, Int y, Int z) { return x * y + z; }), (Counts{0, 0, 1, 1}));
}

TEST(Contract, a_product_with_other_readers_stays_beside) {
  const Module m = kernel("k", [](Arr<float> out, Float x, Float y, Float z) {
                     const Float p = x * y;
                     out[0] = p + z;
                     out[1] = p;
                     If (z > 0) {
                       out[2] = p - z;
                     }
                   }).trace();
  EXPECT_EQ(counts(m), (Counts{2, 1, 1})) << print(m);
}

// Fused, p - p would be the rounding error of p, and p + p would compute the product twice.
TEST(Contract, twice_the_same_product_is_not_fused) {
  EXPECT_EQ(counts_of<float>([](Float x, Float y, Float) {
              const Float p = x * y;
              return p + p;
            }),
            (Counts{0, 0, 1, 1}));
  EXPECT_EQ(counts_of<float>([](Float x, Float y, Float) {
              const Float p = x * y;
              return p - p;
            }),
            (Counts{0, 0, 1, 0, 1}));
}

TEST(Contract, a_product_less_itself_detached_is_not_fused) {
  EXPECT_EQ(counts_of<float>([](Float x, Float y, Float z) {
              const Float p = x * y;
              return z + (p - detach(p));
            }),
            (Counts{0, 0, 1, 1, 1}));
}

TEST(Contract, the_first_of_two_products_is_fused_whatever_was_computed_before) {
  const auto third_operand = [](const Module& m) {
    for (const Region& region : m.regions)
      for (const Id id : region.insts)
        if (m[id].op == Op::fma) return m[m.arg(id, 2)];
    ADD_FAILURE() << print(m);
    return Inst();
  };
  for (const bool before : {false, true}) {
    const Module m = kernel("k", [before](Arr<float> out, Float x, Float y, Float z) {
                       if (before) out[1] = y * z;
                       const Float first = x * y;
                       out[0] = first + y * z;
                     }).trace();
    const Inst rest = third_operand(m);
    ASSERT_EQ(rest.op, Op::mul) << print(m);
    const Inst& factor = m[m.operands[rest.first_arg + 1]];
    EXPECT_EQ(factor.imm, m.params[3].offset) << "the second product is z's:\n" << print(m);
  }
}

TEST(Contract, through_variables_and_across_blocks) {
  const Module m = kernel("k", [](Arr<float> out, Arr<const float> in, Float x, Float y) {
                     Float sum = 0, p = 0;
                     p = x * y;
                     for (auto i : range(in.shape(0))) {
                       sum += in[i] * x;  // fused
                       sum += p;          // fused with a product from before the loop
                     }
                     out[0] = sum;
                   }).trace();
  EXPECT_EQ(counts(m).fma, 2) << print(m);
  EXPECT_EQ(counts(m).mul, 0) << print(m);
}

TEST(Contract, is_off_by_kernel_and_by_variable) {
  const auto f = [](Float x, Float y, Float z) { return x * y + z; };
  EXPECT_EQ(counts_of<float>(f, {.contract = false}), (Counts{0, 0, 1, 1}));
  const test::Variable off("WEFT_CONTRACT", "0");
  EXPECT_EQ(counts_of<float>(f), (Counts{0, 0, 1, 1}));
  const test::Variable wrong("WEFT_CONTRACT", "flase");
  EXPECT_THROW(counts_of<float>(f), Error);
}

TEST(Contract, pieces_of_code_are_contracted_among_themselves_alone) {
  using tracing::Trace;
  EXPECT_EQ(counts_of<float>([](Float x, Float y, Float z) {
              const Float p = [&] {
                const Trace::Piece piece(Trace::current());
                return Float(x * y);
              }();
              return p + z;
            }),
            (Counts{0, 0, 1, 1}));
  EXPECT_EQ(counts_of<float>([](Float x, Float y, Float z) {
              const Trace::Piece piece(Trace::current());
              return x * y + z;
            }),
            (Counts{1}));
  // One after another, and one in another.
  EXPECT_EQ(counts_of<float>([](Float x, Float y, Float z) {
              Float p = 0;
              {
                const Trace::Piece piece(Trace::current());
                p = x * y;
              }
              const Trace::Piece outer(Trace::current()), inner(Trace::current());
              return p + z;
            }),
            (Counts{0, 0, 1, 1}));
  EXPECT_EQ(counts_of<float>([](Float x, Float y, Float z) {
              const tracing::AsWritten as_written;
              const Trace::Piece piece(Trace::current());
              return x * y + z;
            }),
            (Counts{0, 0, 1, 1}));
}

// The product of pow(x, 2) is rounded by itself, in every piece, as if the exponent were not known.
TEST(Contract, squares_by_pow_are_not_fused) {
  EXPECT_EQ(counts_of<float>([](Float x, Float, Float z) { return pow(x, 2.f) + z; }), (Counts{0, 0, 1, 1}));
  EXPECT_EQ(counts_of<float>([](Float x, Float, Float z) {
              const tracing::Trace::Piece piece(tracing::Trace::current());
              return pow(x, 2.f) + z;
            }),
            (Counts{0, 0, 1, 1}));
  const auto square = func("square", [](Float x, Float z) { return pow(x, 2.f) + z; });
  EXPECT_EQ(counts_of<float>([square](Float x, Float, Float z) { return square(x, z); }), (Counts{0, 0, 1, 1}));
}

TEST(Contract, kernels_with_and_without_are_not_the_same) {
  const auto f = [](Float x, Float y, Float z) { return x * y + z; };
  EXPECT_NE(hash(trace_of<float>(f)), hash(trace_of<float>(f, {.contract = false})));
  const auto neither = [](Float x, Float y, Float z) { return (x + y) * z; };
  EXPECT_EQ(hash(trace_of<float>(neither)), hash(trace_of<float>(neither, {.contract = false})));
}

TEST(Contract, marked_operations_are_left) {
  const Module product = kernel("k", [](Arr<float> out, Float x, Float y, Float z) {
                           Float p;
                           {
                             const tracing::AsWritten as_written;
                             p = x * y;
                           }
                           out[0] = p + z;
                         }).trace();
  EXPECT_EQ(counts(product), (Counts{0, 0, 1, 1})) << print(product);
  const Module sum = kernel("k", [](Arr<float> out, Float x, Float y, Float z) {
                       const Float p = x * y;
                       {
                         const tracing::AsWritten as_written;
                         out[0] = p + z;
                       }
                       out[1] = p + z;
                     }).trace();
  EXPECT_EQ(counts(sum), (Counts{1, 0, 1, 1})) << print(sum);
  EXPECT_NE(print(sum).find("mul.rounded f32"), std::string::npos) << print(sum);
}

TEST(Contract, the_mark_is_for_operations_that_could_be_contracted) {
  Module m;
  m.args_bytes = 8;
  Builder b(m);
  const Id x = b.arg(Type::i32, 4);
  b.set_rounding(kRounded);
  EXPECT_EQ(m[b.pure(Op::mul, Type::i32, {x, x})].imm, 0u);
  EXPECT_EQ(first_violation(m), "");
  m.insts.back().imm = kRounded;
  EXPECT_NE(first_violation(m), "");
}

// A function is a call, or part of its caller where its code may end the thread or is checked: with the same roundings.
TEST(Contract, stays_on_one_side_of_a_call) {
  for (const bool asserts : {false, true}) {
    const auto add = func("add", [asserts](Float a, Float z) {
      if (asserts) assert_(a < 100, "too large");
      return a + z;
    });
    const auto multiply = func("multiply", [](Float a, Float b) { return a * b; });
    const auto both = func("both", [](Float a, Float b, Float z) { return a * b + z; });
    for (const Debug debug : {Debug(), Debug(true)}) {
      const Module m = kernel("k",
                              [=](Arr<float> out, Float x, Float y, Float z) {
                                out[0] = add(x * y, z);
                                out[1] = multiply(x, z) + y;
                                out[2] = both(x, y, z);
                                out[3] = both(y, z, x);
                              },
                              {.debug = debug})
                           .trace();
      const Module inlined = inline_calls(m);
      EXPECT_EQ(count(inlined, Op::fma), 2) << print(m);
      EXPECT_EQ(unmarked(m), 0) << print(m);
    }
  }
}

/// The adjoint of out[i] = v * s[i] for v = x[i] * y[i] + z[i] - 1, which computes v again.
Module adjoint_of(KernelOptions options) {
  const auto k = kernel(
      "k",
      [](Arr<const float> x, Arr<const float> y, Arr<const float> z, Arr<const float> s, Arr<float> out) {
        Int i = tid();
        const Float v = x[i] * y[i] + z[i] - 1;
        out[i] = v * s[i] + v * x[i];
      },
      options);
  Variant variant;
  variant.adjoint = true;
  const Module m = k.core().trace(variant);
  AdjointOptions choices;
  choices.with_gradient = real_arrays(m);
  return adjoint(m, choices).module;
}

TEST(Contract, adjoints_are_contracted_as_their_kernels_are) {
  const Module contracted = adjoint_of({}), plain = adjoint_of({.contract = false});
  EXPECT_EQ(unmarked(contracted), 0) << print(contracted);
  EXPECT_EQ(unmarked(plain), 0) << print(plain);
  EXPECT_EQ(count(plain, Op::fma), 0) << print(plain);
  EXPECT_GT(count(contracted, Op::fma), 1) << "v itself, and sums of gradients:\n" << print(contracted);
}

TEST(Contract, the_library_keeps_results_that_are_the_same_everywhere) {
  const auto fused = [](const std::function<Float(Float)>& f) {
    return count(kernel("k", [f](Arr<float> x) { x[tid()] = f(x[tid()]); }).trace(), Op::fma);
  };
  const auto state = [](const Float& x) { return bitcast<unsigned>(x); };
  EXPECT_EQ(fused([](Float x) { return erf(x); }), 0);
  EXPECT_EQ(fused([](Float x) { return cbrt(x) * log1p(x); }), 0);
  EXPECT_EQ(fused([](Float x) { return noise(7, Vec3(x, x, 1)); }), 0);
  EXPECT_EQ(fused([](Float x) { return pnoise(7, x, 5); }), 0);
  EXPECT_EQ(fused([](Float x) { return curlnoise(7, Vec3(x, x, 1), 3).x; }), 0);
  EXPECT_EQ(fused([=](Float x) {
              UInt s = state(x);
              return randf(s, -3.f, 5.f);
            }),
            0);
  EXPECT_EQ(fused([](Float x) { return determinant(Mat33(x, x, 1, 2, x, 3, 4, 5, x)); }), 0);
  EXPECT_EQ(fused([](Float x) { return inverse(Mat33(x, x, 1, 2, x, 3, 4, 5, x))(1, 1); }), 0);
  EXPECT_EQ(fused([](Float x) { return dot(Vec3(x, 2, 3), Vec3(1, x, x)); }), 2) << "or this test shows nothing";
}

// Functions that emitters put in place of operations are traced after contraction, and rely on plain rounding.
TEST(Contract, the_emitters_functions_stay_as_they_are_written) {
  const auto k = kernel("k", [](Arr<double> x) { x[tid()] = exp(x[tid()]); });
  EXPECT_EQ(k.dump("spirv").find(" Fma "), std::string::npos);
  EXPECT_EQ(k.dump("llvm").find("llvm.fma"), std::string::npos);
}

}  // namespace
}  // namespace weft::ir
