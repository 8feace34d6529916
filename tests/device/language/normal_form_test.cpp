// The emitters and the interpreter take normal form as they take traced form: the same results from both.
#include "../../../frontend/passes/passes.h"
#include "../run_module.h"

using namespace weft;
using namespace weft::test;

namespace {

DEVICE_TEST(NormalForm);

// The results of a kernel of one int array in a given form.
std::vector<int> run(const Device& device, const ir::Module& module, int n) {
  Array<int> out = full<int>(device, n, -7);
  const ArrayBase* arrays[] = {&out};
  run_module(device, module, n, arrays);
  return out.to_vector();
}

template <class F>
void compare(const Device& device, F body) {
  const int n = 300;
  const ir::Module traced = kernel("form", body).trace();
  const ir::Module normal = ir::promote(ir::normalise(traced));
  EXPECT_EQ(ir::first_violation(traced), "");
  EXPECT_EQ(ir::first_violation(normal), "");
  EXPECT_TRUE(normal.locals.empty());
  EXPECT_EQ(run(device, traced, n), run(device, normal, n)) << ir::print(normal);
}

TEST_P(NormalForm, of_branches) {
  compare(device(), [](Arr<int> out) {
    Int i = tid(), a = 1, b = 2;
    If (i % 2 == 0) {
      a = i;
      If (i > 100) {
        b = a * 3;
      }
    }
    ElseIf (i < 50) {
      b = -i;
    }
    out[i] = a * 1000 + b;
  });
}

TEST_P(NormalForm, of_loops_that_carry_swap_and_count) {
  compare(device(), [](Arr<int> out) {
    Int i = tid(), a = 0, b = 1, n = 0;
    While (a < i) {
      Int old = a;
      a = b;
      b = old + b;
      n += 1;
    }
    for (auto j : range(n)) b += j * a;
    out[i] = a * 100 + n + b % 7;
  });
}

TEST_P(NormalForm, of_break_continue_and_return_in_nested_loops) {
  compare(device(), [](Arr<int> out) {
    Int i = tid(), sum = 0;
    out[i] = -1;
    for (auto j : range(i % 13)) {
      If (j == 3) {
        Continue();
      }
      Int k = j;
      While (k < 20) {
        k += 1;
        If (k % 5 == 0) {
          Continue();
        }
        If (k * j > 60) {
          Break();
        }
        If (i > 250 && k == 7) {
          out[i] = sum;
          Return();
        }
        sum += k;
      }
      If (sum > 400) {
        Break();
      }
    }
    out[i] = sum;
  });
}

TEST_P(NormalForm, of_memory_read_and_written_in_loops) {
  compare(device(), [](Arr<int> out) {
    Int i = tid();
    out[i] = i;
    for (auto j : range(0, 10, 3)) {
      If (out[i] % 2 == 1) {
        out[i] = out[i] * 3 + j;
      }
      Else { out[i] = out[i] / 2; }
    }
  });
}

}  // namespace
