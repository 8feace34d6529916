// The printed IR of a few kernels, compared with the files beside this one. WEFT_UPDATE_GOLDEN=1 writes the files anew.
#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <string>

#include "../../frontend/ir/builder.h"
#include "../../frontend/kernels/names.h"
#include "../../frontend/language/report.h"
#include "../../frontend/passes/passes.h"
#include "../../frontend/support/platform.h"

namespace weft::ir {
namespace {

void compare(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(WEFT_SOURCE_DIR) / "tests" / "golden" / (name + ".txt");
  if (platform::environment_flag("WEFT_UPDATE_GOLDEN", false)) {
    ASSERT_TRUE(platform::write_file(path, std::as_bytes(std::span(text)))) << path;
    return;
  }
  const auto bytes = platform::read_file(path);
  ASSERT_TRUE(bytes.has_value()) << path << " is missing; WEFT_UPDATE_GOLDEN=1 writes it";
  const std::string expected(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  EXPECT_EQ(text, expected) << "WEFT_UPDATE_GOLDEN=1 accepts the new text";
}

/// Compares a kernel as traced, cleaned up and in normal form.
void compare_forms(const std::string& name, const Module& traced) {
  const Module cleaned = forward(traced), normal = promote(normalise(cleaned));
  for (const Module* m : {&traced, &cleaned, &normal}) ASSERT_EQ(first_violation(*m), "") << print(*m);
  compare(name, "traced\n" + print(traced) + "\nforward\n" + print(cleaned) + "\nnormal form\n" + print(normal));
}

void add_array(Module& m, const char* name, const char* type, std::uint32_t offset, bool read_only) {
  Param p;
  p.name = name;
  p.type_name = type;
  p.kind = Param::Kind::array;
  p.ndim = 1;
  p.read_only = read_only;
  p.offset = offset;
  p.bytes = 12;
  p.access = read_only ? Access::read : Access::read | Access::write;
  m.params.push_back(p);
}

void add_value(Module& m, const char* name, const char* type, std::uint32_t offset, std::uint32_t bytes) {
  Param p;
  p.name = name;
  p.type_name = type;
  p.offset = offset;
  p.bytes = bytes;
  m.params.push_back(p);
}

Module kernel(const char* name, std::uint32_t args_bytes) {
  Module m;
  m.name = name;
  m.args_bytes = args_bytes;
  return m;
}

TEST(Golden, Saxpy) {
  Module m = kernel("saxpy", 44);
  m.tid_rank = 1;
  add_array(m, "x", "Array<float32, 1>", 8, true);
  add_array(m, "y", "Array<float32, 1>", 24, false);
  add_value(m, "a", "float32", 40, 4);
  Builder b(m);
  const MemoryRef x{b.arg(Type::u64, 8), b.thread_id(), 4, 0, 4}, y{b.arg(Type::u64, 24), b.thread_id(), 4, 0, 4};
  const Id ax = b.pure(Op::mul, Type::f32, {b.load(Type::f32, 1, x), b.arg(Type::f32, 40)});
  const Id sum[] = {b.pure(Op::add, Type::f32, {ax, b.load(Type::f32, 1, y)})};
  b.store(Type::f32, sum, y);
  compare_forms("saxpy", m);
}

/// x += v dt with a wide load, a vector argument and a clamp at the floor.
TEST(Golden, Integrate) {
  Module m = kernel("integrate", 60);
  m.tid_rank = 1;
  add_array(m, "x", "Array<vec3, 1>", 8, false);
  add_array(m, "v", "Array<vec3, 1>", 24, false);
  add_value(m, "gravity", "vec3", 40, 12);
  add_value(m, "dt", "float32", 52, 4);
  Builder b(m);
  const MemoryRef x{b.arg(Type::u64, 8), b.thread_id(), 12, 0, 4}, v{b.arg(Type::u64, 24), b.thread_id(), 12, 0, 4};
  const Id dt = b.arg(Type::f32, 52);
  const Id xs = b.load(Type::f32, 3, x), vs = b.load(Type::f32, 3, v);
  Id x1[3], v1[3];
  for (std::uint32_t k = 0; k < 3; ++k) {
    const Id g = b.arg(Type::f32, 40 + 4 * k);
    v1[k] = b.pure(Op::add, Type::f32, {b.result(vs, k, Type::f32), b.pure(Op::mul, Type::f32, {g, dt})});
    x1[k] = b.pure(Op::add, Type::f32, {b.result(xs, k, Type::f32), b.pure(Op::mul, Type::f32, {v1[k], dt})});
  }
  const std::uint32_t height = b.local(Type::f32);
  b.local_set(height, x1[1]);
  b.open_if(b.pure(Op::lt, Type::b1, {x1[1], b.constant_float(Type::f32, 0.1)}));
  b.local_set(height, b.constant_float(Type::f32, 0.1));
  b.close_if();
  x1[1] = b.local_get(height);
  b.store(Type::f32, x1, x);
  b.store(Type::f32, v1, v);
  compare_forms("integrate", m);
}

/// The product of x[0..n) that stops when it passes a limit and passes over zeros.
TEST(Golden, Product) {
  Module m = kernel("product", 44);
  add_array(m, "x", "Array<float32, 1>", 8, true);
  add_array(m, "out", "Array<float32, 1>", 24, false);
  add_value(m, "limit", "float32", 40, 4);
  Builder b(m);
  const Id zero = b.constant_int(Type::i32, 0), one = b.constant_int(Type::i32, 1);
  const std::uint32_t i = b.local(Type::i32), product = b.local(Type::f32);
  b.local_set(i, zero);
  b.local_set(product, b.constant_float(Type::f32, 1));
  b.open_loop();
  b.loop_body(b.pure(Op::lt, Type::b1, {b.local_get(i), b.arg(Type::i32, 16)}));
  const Id now = b.local_get(i);
  const Id x = b.load(Type::f32, 1, {b.arg(Type::u64, 8), now, 4, 0, 4});
  b.open_if(b.pure(Op::eq, Type::b1, {x, b.constant_float(Type::f32, 0)}));
  b.leave(Op::continue_);
  b.close_if();
  b.local_set(product, b.pure(Op::mul, Type::f32, {b.local_get(product), x}));
  b.open_if(b.pure(Op::lt, Type::b1, {b.arg(Type::f32, 40), b.local_get(product)}));
  b.leave(Op::break_);
  b.close_if();
  b.loop_step();
  b.local_set(i, b.pure(Op::add, Type::i32, {b.local_get(i), one}));
  b.close_loop();
  const Id out[] = {b.local_get(product)};
  b.store(Type::f32, out, {b.arg(Type::u64, 24), b.thread_id(), 4, 0, 4});
  compare_forms("product", m);
}

/// A search that returns from the inside of two loops and counts its steps atomically.
TEST(Golden, Search) {
  Module m = kernel("search", 56);
  m.tid_rank = 2;
  m.block = 64;
  add_array(m, "table", "Array<int32, 2>", 8, true);
  m.params.back().ndim = 2;
  m.params.back().bytes = 16;
  add_array(m, "found", "Array<int32, 1>", 24, false);
  add_array(m, "steps", "Array<uint32, 1>", 40, false);
  m.params.back().access = Access::atomic;
  Builder b(m);
  const Id zero = b.constant_int(Type::i32, 0), one = b.constant_int(Type::i32, 1);
  const Id me = b.pure(Op::convert, Type::i32, {b.thread_id()});
  const std::uint32_t row = b.local(Type::i32), column = b.local(Type::i32);
  b.local_set(row, zero);
  b.open_loop();
  b.loop_body(b.pure(Op::lt, Type::b1, {b.local_get(row), b.arg(Type::i32, 16)}));
  b.local_set(column, zero);
  b.open_loop();
  const Id inside = b.pure(Op::lt, Type::b1, {b.local_get(column), b.arg(Type::i32, 20)});
  b.open_if(inside);
  const auto element = [&] {
    const Id start = b.pure(Op::mul, Type::i32, {b.local_get(row), b.arg(Type::i32, 20)});
    const Id index = b.pure(Op::add, Type::i32, {start, b.local_get(column)});
    return b.load(Type::i32, 1, {b.arg(Type::u64, 8), index, 4, 0, 4});
  };
  const Id small = b.pure(Op::le, Type::b1, {element(), me});
  b.loop_body(b.close_short_circuit(inside, small, false));
  b.atomic(Op::atomic_add, Type::u32, {b.constant_int(Type::u32, 1)}, {b.arg(Type::u64, 40), zero, 4, 0, 4});
  b.open_if(b.pure(Op::eq, Type::b1, {element(), me}));
  const Id out[] = {b.local_get(row)};
  b.store(Type::i32, out, {b.arg(Type::u64, 24), me, 4, 0, 4});
  b.leave(Op::return_);
  b.close_if();
  b.loop_step();
  b.local_set(column, b.pure(Op::add, Type::i32, {b.local_get(column), one}));
  b.close_loop();
  b.local_set(row, b.pure(Op::add, Type::i32, {b.local_get(row), one}));
  b.close_loop();
  const Id none[] = {b.constant_int(Type::i32, -1)};
  b.store(Type::i32, none, {b.arg(Type::u64, 24), me, 4, 0, 4});
  compare_forms("search", m);
}

/// A line of print, an assertion, and the check of an index in debug mode.
TEST(Golden, Report) {
  const auto body = [](Arr<const float> x) {
    Int i = tid();
    Float v = x[i];
    ::weft::print("x", i, "=", v);
    assert_(v > 0, "x is not positive:", v);
  };
  const auto plain = ::weft::kernel("report", body), checked = ::weft::kernel("report", body, {.debug = true});
  compare("report", print(plain.trace()) + "\ndebug mode\n" + print(checked.trace()));
}

/// A function of two results with a loop, called twice, one of its results unread.
TEST(Golden, Calls) {
  auto newton = std::make_shared<Module>(kernel("roots", 32));
  newton->function = "newton";
  add_array(*newton, "x", "Array<float32, 1>", 8, false);
  {
    Builder b(*newton);
    const Id a = b.input(Type::f32), count = b.input(Type::i32);
    const std::uint32_t x = b.local(Type::f32), k = b.local(Type::i32);
    b.local_set(x, a);
    b.local_set(k, b.constant_int(Type::i32, 0));
    b.open_loop();
    b.loop_body(b.pure(Op::lt, Type::b1, {b.local_get(k), count}));
    const Id now = b.local_get(x);
    const Id sum = b.pure(Op::add, Type::f32, {now, b.pure(Op::div, Type::f32, {a, now})});
    b.local_set(x, b.pure(Op::mul, Type::f32, {sum, b.constant_float(Type::f32, 0.5)}));
    b.loop_step();
    b.local_set(k, b.pure(Op::add, Type::i32, {b.local_get(k), b.constant_int(Type::i32, 1)}));
    b.close_loop();
    const Id root = b.local_get(x);
    const Id out[] = {root, b.pure(Op::sub, Type::f32, {b.pure(Op::mul, Type::f32, {root, root}), a})};
    b.yield(out);
  }
  Module m = kernel("roots", 32);
  add_array(m, "x", "Array<float32, 1>", 8, false);
  Builder b(m);
  m.functions = {newton};
  const MemoryRef x{b.arg(Type::u64, 8), b.thread_id(), 4, 0, 4};
  const Id first[] = {b.load(Type::f32, 1, x), b.constant_int(Type::i32, 3)};
  const Id root = b.result(b.call(0, first), 0, Type::f32);
  const Id second[] = {root, b.constant_int(Type::i32, 4)};
  const Id call = b.call(0, second);
  const Id sum[] = {b.pure(Op::add, Type::f32, {b.result(call, 0, Type::f32), b.result(call, 1, Type::f32)})};
  b.store(Type::f32, sum, x);
  compare_forms("calls", m);
}

}  // namespace
}  // namespace weft::ir
