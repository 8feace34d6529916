// The interpreter: control flow in both forms, memory, its checks, and the device around it.
#include "../../backends/reference/reference.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <thread>

#include "../../frontend/ir/builder.h"
#include "../../frontend/support/error.h"
#include "../../frontend/types/half.h"

namespace weft::backend {
namespace {

using ir::Builder;
using ir::Id;
using ir::kNone;
using ir::MemoryRef;
using ir::Op;
using ir::Type;

/// A kernel over arrays "x" and "y" and a value "n", built by a function; argument block {u32 count, u64 x, y, i32 n}.
struct Kernel {
  static constexpr std::uint32_t kX = 8, kY = 16, kN = 24;

  explicit Kernel(const std::function<void(Kernel&)>& body) : b(module) {
    module.name = "sample";
    module.loc = {"sample.cpp", 1};
    for (const auto& [name, offset] : {std::pair{"x", kX}, std::pair{"y", kY}}) {
      ir::Param param;
      param.name = name;
      param.kind = ir::Param::Kind::array;
      param.offset = offset;
      param.ndim = 1;
      param.bytes = 8;
      module.params.push_back(param);
    }
    module.args_bytes = 28;
    body(*this);
  }

  Id x() { return b.arg(Type::u64, kX); }
  Id y() { return b.arg(Type::u64, kY); }
  Id n() { return b.arg(Type::i32, kN); }
  Id tid() { return b.pure(Op::convert, Type::i32, {b.thread_id()}); }
  Id i32(int value) { return b.constant_int(Type::i32, value); }
  Id add(Id p, Id q) { return b.pure(Op::add, b.module()[p].type, {p, q}); }
  Id mul(Id p, Id q) { return b.pure(Op::mul, b.module()[p].type, {p, q}); }
  Id less(Id p, Id q) { return b.pure(Op::lt, Type::b1, {p, q}); }
  Id equal(Id p, Id q) { return b.pure(Op::eq, Type::b1, {p, q}); }
  MemoryRef at(Id base, Id index, int bytes = 4) {
    return {base, index, static_cast<std::uint32_t>(bytes), 0, static_cast<std::uint32_t>(bytes)};
  }
  Id load(Type type, Id base, Id index) { return b.load(type, 1, at(base, index, ir::bytes(type))); }
  void store(Type type, Id value, Id base, Id index) {
    b.store(type, {&value, 1}, at(base, index, ir::bytes(type)), {"sample.cpp", 42});
  }
  void yield(std::initializer_list<Id> values) { b.yield({values.begin(), values.size()}); }

  ir::Module module;
  Builder b;
};

class Reference : public testing::Test {
 protected:
  template <class T>
  Allocation array(const std::vector<T>& values) {
    Allocation a = device_->allocate(values.size() * sizeof(T), MemoryKind::device);
    stream_->upload(a.address, values.data(), a.bytes);
    return a;
  }
  template <class T>
  std::vector<T> read(const Allocation& a) {
    std::vector<T> values(a.bytes / sizeof(T));
    stream_->download(values.data(), a.address, a.bytes, 0);
    return values;
  }
  void launch(const Kernel& kernel, std::uint32_t count, std::uint64_t x, std::uint64_t y = 0, std::int32_t n = 0) {
    std::byte args[28] = {};
    std::memcpy(args, &count, 4);
    std::memcpy(args + Kernel::kX, &x, 8);
    std::memcpy(args + Kernel::kY, &y, 8);
    std::memcpy(args + Kernel::kN, &n, 4);
    EXPECT_EQ(ir::first_violation(kernel.module), "");
    const auto program = device_->compile(kernel.module, {});
    stream_->launch(*program, {}, args, {});
  }
  /// Runs `count` threads and returns the array x of `size` 32-bit integers, which was zero before.
  std::vector<std::int32_t> run(const std::function<void(Kernel&)>& body, std::uint32_t count, std::int32_t n = 0,
                                std::size_t size = 8) {
    const Kernel kernel(body);
    const Allocation x = array(std::vector<std::int32_t>(size));
    launch(kernel, count, x.address, 0, n);
    const auto result = read<std::int32_t>(x);
    device_->free(x);
    return result;
  }
  /// The message of the launch's error.
  std::string error_of(const Kernel& kernel, std::uint32_t count, std::uint64_t x, std::int32_t n = 0) {
    try {
      launch(kernel, count, x, 0, n);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
      EXPECT_EQ(error.kernel(), "sample");
      return error.what();
    }
    return "no error";
  }

  std::unique_ptr<Device> device_ = open_reference();
  std::unique_ptr<Stream> stream_ = device_->create_stream();
};

// ---- straight code and memory ----

TEST_F(Reference, EveryThreadRunsOnceInOrder) {
  const auto values = run([](Kernel& k) { k.store(Type::i32, k.mul(k.tid(), k.n()), k.x(), k.tid()); }, 5, 3);
  EXPECT_EQ(values, (std::vector<std::int32_t>{0, 3, 6, 9, 12, 0, 0, 0}));
}

TEST_F(Reference, NoThreadsDoNothing) {
  EXPECT_EQ(run([](Kernel& k) { k.store(Type::i32, k.i32(1), k.x(), k.i32(0)); }, 0)[0], 0);
}

TEST_F(Reference, Saxpy) {
  std::vector<float> x(1000), y(1000);
  std::iota(x.begin(), x.end(), 0.0f);
  std::iota(y.begin(), y.end(), 0.5f);
  const Kernel kernel([](Kernel& k) {
    const Id sum = k.b.pure(
        Op::fma, Type::f32,
        {k.load(Type::f32, k.x(), k.tid()), k.b.constant_float(Type::f32, 2.5), k.load(Type::f32, k.y(), k.tid())});
    k.store(Type::f32, sum, k.y(), k.tid());
  });
  const Allocation ax = array(x), ay = array(y);
  launch(kernel, 1000, ax.address, ay.address);
  const auto result = read<float>(ay);
  for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(result[i], 2.5f * x[i] + y[i]);
}

TEST_F(Reference, WideAccessesOfEveryWidthAndSize) {
  for (const Type type : {Type::u8, Type::u16, Type::f16, Type::i32, Type::f32, Type::i64, Type::f64}) {
    for (int width = 2; width <= 4; ++width) {
      const auto bytes = static_cast<std::uint32_t>(ir::bytes(type));
      const auto stride = bytes * static_cast<std::uint32_t>(width);
      const Kernel kernel([&](Kernel& k) {
        const Id from = k.b.load(type, width, {k.x(), k.tid(), stride, 0, bytes});
        std::vector<Id> turned;
        for (int p = width - 1; p >= 0; --p) turned.push_back(k.b.result(from, static_cast<std::uint32_t>(p), type));
        k.b.store(type, turned, {k.y(), k.tid(), stride, 0, bytes});
      });
      std::vector<std::uint8_t> in(stride * 3), expected(in.size());
      std::iota(in.begin(), in.end(), std::uint8_t{1});
      for (std::size_t element = 0; element < 3; ++element) {
        for (int p = 0; p < width; ++p) {
          std::memcpy(&expected[element * stride + bytes * static_cast<std::size_t>(p)],
                      &in[element * stride + bytes * static_cast<std::size_t>(width - 1 - p)], bytes);
        }
      }
      const Allocation x = array(in), y = array(std::vector<std::uint8_t>(in.size()));
      launch(kernel, 3, x.address, y.address);
      EXPECT_EQ(read<std::uint8_t>(y), expected) << ir::name(type) << " x " << width;
    }
  }
}

TEST_F(Reference, IndicesExtendByTheirSign) {
  const struct {
    Type type;
    std::int64_t index;
    std::int32_t expected;
  } cases[] = {{Type::i8, -1, 9},    {Type::i16, -2, 8},    {Type::i32, -3, 7}, {Type::i64, -10, 0},
               {Type::u8, 255, 265}, {Type::u16, 256, 266}, {Type::u32, 3, 13}, {Type::u64, -1, 9}};
  std::vector<std::int32_t> values(300);
  std::iota(values.begin(), values.end(), 0);
  const Allocation y = array(values);
  for (const auto& c : cases) {
    // Base and offset meet at element 10. The index is loaded, so that the builder does not fold it.
    const Kernel kernel([&](Kernel& k) {
      const Id index =
          k.b.pure(Op::convert, c.type,
                   {k.b.pure(Op::add, Type::i64,
                             {k.b.load(Type::i64, 1, {k.x(), k.i32(0), 8, 0, 8}), k.b.constant_int(Type::i64, 0)})});
      const Id value = k.b.load(Type::i32, 1, {k.y(), index, 4, 40, 4});
      k.store(Type::i32, value, k.x(), k.i32(2));
    });
    const Allocation x = array(std::vector<std::int64_t>{c.index, 0});
    launch(kernel, 1, x.address, y.address);
    EXPECT_EQ(read<std::int32_t>(x)[2], c.expected) << ir::name(c.type);
  }
}

TEST_F(Reference, ArgumentsOfSmallTypes) {
  Kernel kernel([](Kernel& k) {
    const auto put = [&](int at, Id value) { k.store(Type::i32, value, k.x(), k.i32(at)); };
    put(0, k.b.pure(Op::convert, Type::i32, {k.b.arg(Type::i8, 24)}));
    put(1, k.b.pure(Op::convert, Type::i32, {k.b.arg(Type::u16, 24)}));
    put(2, k.b.pure(Op::convert, Type::i32, {k.b.arg(Type::b1, 25)}));
    put(3, k.b.pure(Op::convert, Type::i32, {k.b.arg(Type::b1, 27)}));
    put(4, k.b.pure(Op::convert, Type::i32, {k.b.arg(Type::f16, 24)}));
  });
  const Allocation x = array(std::vector<std::int32_t>(8));
  launch(kernel, 1, x.address, 0, 0x0000c8fe);
  EXPECT_EQ(read<std::int32_t>(x), (std::vector<std::int32_t>{-2, 0xc8fe, 1, 0, -9, 0, 0, 0}));
}

TEST_F(Reference, AtomicAddGivesTheValueBefore) {
  const Kernel kernel([](Kernel& k) {
    const Id before = k.b.atomic(Op::atomic_add, Type::i32, {k.add(k.tid(), k.i32(1))}, k.at(k.x(), k.i32(0)));
    k.store(Type::i32, before, k.y(), k.tid());
    k.b.atomic(Op::atomic_add, Type::f32, {k.b.constant_float(Type::f32, 0.5)}, k.at(k.x(), k.i32(1)));
    k.b.atomic(Op::atomic_add, Type::u64, {k.b.constant_int(Type::u64, -1)}, k.at(k.x(), k.i32(1), 8));
  });
  const Allocation x = array(std::vector<std::int32_t>(4)), y = array(std::vector<std::int32_t>(4));
  launch(kernel, 4, x.address, y.address);
  EXPECT_EQ(read<std::int32_t>(y), (std::vector<std::int32_t>{0, 1, 3, 6}));
  EXPECT_EQ(read<std::int32_t>(x)[0], 10);
  EXPECT_EQ(std::bit_cast<float>(read<std::int32_t>(x)[1]), 2.0f);
  EXPECT_EQ(read<std::int64_t>(x)[1], -4);
}

TEST_F(Reference, AtomicsOfTwoStreamsLoseNothing) {
  const Kernel kernel([](Kernel& k) {
    k.b.atomic(Op::atomic_add, Type::f32, {k.b.constant_float(Type::f32, 1)}, k.at(k.x(), k.i32(0)));
  });
  const Allocation x = array(std::vector<float>(1));
  const auto program = device_->compile(kernel.module, {});
  std::byte args[28] = {};
  const std::uint32_t count = 20000;
  std::memcpy(args, &count, 4);
  std::memcpy(args + Kernel::kX, &x.address, 8);
  const auto work = [&] {
    const auto stream = device_->create_stream();
    for (int i = 0; i < 5; ++i) stream->launch(*program, {}, args, {});
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(read<float>(x)[0], 200000.0f);
}

// ---- traced form ----

/// for (i = 0; i < bound; ++i) body(i), in traced form.
void count_to(Kernel& k, Id bound, const std::function<void(Id)>& body) {
  const std::uint32_t i = k.b.local(Type::i32);
  k.b.local_set(i, k.i32(0));
  k.b.open_loop();
  const Id now = k.b.local_get(i);
  k.b.loop_body(k.less(now, bound));
  body(now);
  k.b.loop_step();
  k.b.local_set(i, k.add(k.b.local_get(i), k.i32(1)));
  k.b.close_loop();
}

void add_to(Kernel& k, std::uint32_t local, Id value) { k.b.local_set(local, k.add(k.b.local_get(local), value)); }

TEST_F(Reference, IfAndElse) {
  const auto values = run(
      [](Kernel& k) {
        k.b.open_if(k.less(k.tid(), k.i32(2)));
        k.store(Type::i32, k.i32(10), k.x(), k.tid());
        k.b.open_else();
        k.b.open_if(k.equal(k.tid(), k.i32(3)));
        k.store(Type::i32, k.i32(20), k.x(), k.tid());
        k.b.close_if();
        k.b.close_if();
      },
      5);
  EXPECT_EQ(values, (std::vector<std::int32_t>{10, 10, 0, 20, 0, 0, 0, 0}));
}

TEST_F(Reference, NestedLoopsWithBreakAndContinue) {
  const auto body = [](Kernel& k) {
    const std::uint32_t sum = k.b.local(Type::i32);
    k.b.local_set(sum, k.i32(0));
    count_to(k, k.n(), [&](Id i) {
      k.b.open_if(k.equal(i, k.i32(2)));
      k.b.leave(Op::continue_);
      k.b.close_if();
      count_to(k, k.n(), [&](Id j) {
        k.b.open_if(k.less(i, j));
        k.b.leave(Op::break_);
        k.b.close_if();
        k.b.open_if(k.equal(j, k.tid()));
        k.b.leave(Op::continue_);
        k.b.close_if();
        add_to(k, sum, k.add(k.mul(i, k.i32(100)), j));
      });
      add_to(k, sum, k.i32(100000));
    });
    k.store(Type::i32, k.b.local_get(sum), k.x(), k.tid());
  };
  const auto values = run(body, 8, 6);
  for (int t = 0; t < 8; ++t) {
    int expected = 0;
    for (int i = 0; i < 6; ++i) {
      if (i == 2) continue;
      for (int j = 0; j < 6; ++j) {
        if (i < j) break;
        if (j == t) continue;
        expected += 100 * i + j;
      }
      expected += 100000;
    }
    EXPECT_EQ(values[static_cast<std::size_t>(t)], expected) << t;
  }
}

TEST_F(Reference, ReturnFromInsideLoopsEndsTheThreadAlone) {
  const auto values = run(
      [](Kernel& k) {
        count_to(k, k.i32(10), [&](Id i) {
          count_to(k, k.i32(10), [&](Id j) {
            k.store(Type::i32, k.add(k.mul(i, k.i32(10)), j), k.x(), k.tid());
            k.b.open_if(k.equal(k.mul(i, j), k.tid()));
            k.b.open_if(k.less(k.i32(0), j));
            k.b.leave(Op::return_);
            k.b.close_if();
            k.b.close_if();
          });
        });
        k.store(Type::i32, k.i32(-1), k.x(), k.tid());
      },
      8);
  EXPECT_EQ(values, (std::vector<std::int32_t>{1, 11, 12, 13, 14, 15, 16, 17}));
}

TEST_F(Reference, LocalsStartAtZeroInEachThread) {
  const auto values = run(
      [](Kernel& k) {
        const std::uint32_t local = k.b.local(Type::i32);
        k.store(Type::i32, k.b.local_get(local), k.x(), k.tid());
        k.b.local_set(local, k.i32(7));
      },
      3);
  EXPECT_EQ(values, std::vector<std::int32_t>(8));
}

TEST_F(Reference, LocalGetIsASnapshot) {
  const auto values = run(
      [](Kernel& k) {
        const std::uint32_t local = k.b.local(Type::i32);
        k.b.local_set(local, k.i32(5));
        const Id before = k.b.local_get(local);
        k.b.local_set(local, k.i32(6));
        k.store(Type::i32, before, k.x(), k.i32(0));
        k.store(Type::i32, k.b.local_get(local), k.x(), k.i32(1));
      },
      1);
  EXPECT_EQ(values[0], 5);
  EXPECT_EQ(values[1], 6);
}

TEST_F(Reference, BreakAndContinueThatEndTheirRegions) {
  const auto values = run(
      [](Kernel& k) {
        const std::uint32_t i = k.b.local(Type::i32);
        k.b.local_set(i, k.i32(0));
        k.b.open_loop();
        k.b.loop_body(k.b.constant(Type::b1, 1));
        add_to(k, i, k.i32(1));
        k.b.open_if(k.less(k.i32(20), k.b.local_get(i)));
        k.b.open_else();
        k.b.leave(Op::continue_);
        k.b.close_if();
        k.b.leave(Op::break_);
        k.b.close_loop();
        k.store(Type::i32, k.b.local_get(i), k.x(), k.i32(0));
      },
      1);
  EXPECT_EQ(values[0], 21);
}

// ---- normal form ----

TEST_F(Reference, IfGivesResults) {
  const auto values = run(
      [](Kernel& k) {
        k.b.open_if(k.less(k.tid(), k.i32(4)));
        k.yield({k.tid(), k.b.constant_float(Type::f32, 2)});
        k.b.open_else();
        k.yield({k.i32(-1), k.b.constant_float(Type::f32, 3)});
        const Id both = k.b.close_if();
        const Id real = k.b.pure(Op::convert, Type::i32, {k.b.result(both, 1, Type::f32)});
        k.store(Type::i32, k.mul(k.b.result(both, 0, Type::i32), real), k.x(), k.tid());
      },
      6);
  EXPECT_EQ(values, (std::vector<std::int32_t>{0, 2, 4, 6, -3, -3, 0, 0}));
}

TEST_F(Reference, LoopCarriesValuesAllAtOnce) {
  // Fibonacci numbers: both next values name both present ones, in an order that a one-by-one move would break.
  const auto body = [](Kernel& k) {
    const Id initial[] = {k.i32(0), k.i32(1), k.i32(0)};
    k.b.open_loop(initial);
    const Id a = k.b.loop_param(0), c = k.b.loop_param(1), i = k.b.loop_param(2);
    k.b.loop_body(k.less(i, k.tid()));
    k.yield({c, k.add(a, c), k.add(i, k.i32(1))});
    const Id loop = k.b.close_loop();
    k.store(Type::i32, k.b.result(loop, 0, Type::i32), k.x(), k.tid());
  };
  EXPECT_EQ(run(body, 8), (std::vector<std::int32_t>{0, 1, 1, 2, 3, 5, 8, 13}));
}

TEST_F(Reference, LoopRotatesItsValues) {
  const auto body = [](Kernel& k) {
    const Id initial[] = {k.i32(1), k.i32(2), k.i32(3), k.i32(0)};
    k.b.open_loop(initial);
    const Id p[] = {k.b.loop_param(0), k.b.loop_param(1), k.b.loop_param(2), k.b.loop_param(3)};
    k.b.loop_body(k.less(p[3], k.n()));
    k.yield({p[2], p[0], p[1], k.add(p[3], k.i32(1))});
    const Id loop = k.b.close_loop();
    for (std::uint32_t r = 0; r < 4; ++r) {
      k.store(Type::i32, k.b.result(loop, r, Type::i32), k.x(), k.i32(static_cast<int>(r)));
    }
  };
  EXPECT_EQ(run(body, 1, 1, 4), (std::vector<std::int32_t>{3, 1, 2, 1}));
  EXPECT_EQ(run(body, 1, 2, 4), (std::vector<std::int32_t>{2, 3, 1, 2}));
  EXPECT_EQ(run(body, 1, 3, 4), (std::vector<std::int32_t>{1, 2, 3, 3}));
  EXPECT_EQ(run(body, 1, 0, 4), (std::vector<std::int32_t>{1, 2, 3, 0}));
}

TEST_F(Reference, NestedNormalFormLoopsAndIfs) {
  const auto body = [](Kernel& k) {
    const Id zero[] = {k.i32(0), k.i32(0)};
    k.b.open_loop(zero);
    const Id i = k.b.loop_param(0), outer_sum = k.b.loop_param(1);
    k.b.loop_body(k.less(i, k.n()));

    const Id inner_initial[] = {k.i32(0), outer_sum};
    k.b.open_loop(inner_initial);
    const Id j = k.b.loop_param(0), sum = k.b.loop_param(1);
    k.b.loop_body(k.less(j, i));
    k.b.open_if(k.equal(j, k.tid()));
    k.yield({sum});
    k.b.open_else();
    k.yield({k.add(sum, k.add(k.mul(i, k.i32(10)), j))});
    const Id choice = k.b.close_if();
    k.yield({k.add(j, k.i32(1)), k.b.result(choice, 0, Type::i32)});
    const Id inner = k.b.close_loop();

    k.yield({k.add(i, k.i32(1)), k.b.result(inner, 1, Type::i32)});
    const Id outer = k.b.close_loop();
    k.store(Type::i32, k.b.result(outer, 1, Type::i32), k.x(), k.tid());
  };
  const auto values = run(body, 8, 6);
  for (int t = 0; t < 8; ++t) {
    int expected = 0;
    for (int i = 0; i < 6; ++i) {
      for (int j = 0; j < i; ++j) expected += j == t ? 0 : 10 * i + j;
    }
    EXPECT_EQ(values[static_cast<std::size_t>(t)], expected) << t;
  }
}

// ---- wrong accesses ----

TEST_F(Reference, AccessPastAnArrayIsAnError) {
  const Kernel kernel([](Kernel& k) { k.store(Type::i32, k.i32(7), k.x(), k.tid()); });
  const Allocation x = array(std::vector<std::int32_t>(3)), y = array(std::vector<std::int32_t>(3));
  const std::string message = error_of(kernel, 5, x.address);
  EXPECT_NE(message.find("sample.cpp:42"), std::string::npos) << message;
  EXPECT_NE(message.find("kernel \"sample\""), std::string::npos) << message;
  EXPECT_NE(message.find("thread 3 writes 4 bytes at address 0x"), std::string::npos) << message;
  EXPECT_NE(message.find("index 3 of x"), std::string::npos) << message;
  EXPECT_NE(message.find("outside the array's 12 bytes"), std::string::npos) << message;
  EXPECT_EQ(read<std::int32_t>(x), (std::vector<std::int32_t>{7, 7, 7}));
  EXPECT_EQ(read<std::int32_t>(y), (std::vector<std::int32_t>(3)));
}

TEST_F(Reference, AnotherArraysMemoryIsNotThisOnes) {
  const Kernel kernel([](Kernel& k) { k.store(Type::i32, k.i32(7), k.x(), k.n()); });
  const Allocation x = array(std::vector<std::int32_t>(64)), y = array(std::vector<std::int32_t>(64));
  const auto distance = static_cast<std::int32_t>((y.address - x.address) / 4);
  EXPECT_NE(error_of(kernel, 1, x.address, distance).find("outside the array's 256 bytes"), std::string::npos);
  EXPECT_NE(error_of(kernel, 1, x.address, -1).find("index -1 of x"), std::string::npos);
}

TEST_F(Reference, WideAccessHalfPastTheEnd) {
  const Kernel kernel([](Kernel& k) {
    const Id wide = k.b.load(Type::f32, 4, {k.x(), k.tid(), 16, 0, 4}, {"sample.cpp", 17});
    k.store(Type::f32, k.b.result(wide, 3, Type::f32), k.x(), k.i32(0));
  });
  const Allocation x = array(std::vector<float>(6));
  const std::string message = error_of(kernel, 2, x.address);
  EXPECT_NE(message.find("sample.cpp:17"), std::string::npos) << message;
  EXPECT_NE(message.find("thread 1 reads 16 bytes"), std::string::npos) << message;
}

TEST_F(Reference, NullFreedAndComputedAddresses) {
  const Kernel direct([](Kernel& k) { k.store(Type::i32, k.i32(7), k.x(), k.tid()); });
  EXPECT_NE(error_of(direct, 1, 0).find("in an empty array"), std::string::npos);
  const Allocation x = array(std::vector<std::int32_t>(4));
  device_->free(x);
  EXPECT_NE(error_of(direct, 1, x.address).find("outside device memory"), std::string::npos);

  const Kernel computed(
      [](Kernel& k) { k.store(Type::i32, k.i32(7), k.add(k.x(), k.b.constant_int(Type::u64, 8)), k.tid()); });
  const std::string message = error_of(computed, 1, ~0ull - 10);
  EXPECT_NE(message.find("at address 0xfffffffffffffffd: outside device memory"), std::string::npos) << message;
  const Allocation y = array(std::vector<std::int32_t>(4));
  EXPECT_EQ(error_of(computed, 2, y.address), "no error");
  EXPECT_NE(error_of(computed, 3, y.address).find("thread 2"), std::string::npos);
  EXPECT_EQ(read<std::int32_t>(y), (std::vector<std::int32_t>{0, 0, 7, 7}));
}

TEST_F(Reference, MisalignedAccessIsAnError) {
  const Kernel kernel([](Kernel& k) { k.store(Type::i32, k.i32(7), k.x(), k.tid()); });
  const Allocation x = array(std::vector<std::int32_t>(4));
  const std::string message = error_of(kernel, 1, x.address + 2);
  EXPECT_NE(message.find("not a multiple of 4 bytes"), std::string::npos) << message;
}

TEST_F(Reference, ShortArgumentBlockIsAnError) {
  const Kernel kernel([](Kernel& k) { k.store(Type::i32, k.n(), k.x(), k.tid()); });
  const auto program = device_->compile(kernel.module, {});
  const std::byte args[12] = {};
  EXPECT_THROW(stream_->launch(*program, {}, args, {}), Error);
}

// ---- the device ----

TEST_F(Reference, CopiesFillsAndTickets) {
  const Allocation a = device_->allocate(64, MemoryKind::upload), b = device_->allocate(64, MemoryKind::readback);
  EXPECT_EQ(a.address % 256, 0u);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(a.host), a.address);
  const Ticket filled = stream_->fill(a.address, 64, 0x01020304);
  const Ticket copied = stream_->copy(b.address + 8, a.address, 16);
  EXPECT_LT(filled, copied);
  EXPECT_TRUE(stream_->done(copied));
  EXPECT_EQ(stream_->submit(), copied);
  EXPECT_EQ(read<std::uint32_t>(b)[2], 0x01020304u);
  EXPECT_EQ(stream_->upload(b.address, nullptr, 0), copied + 1);
  EXPECT_EQ(stream_->copy(0, 0, 0), copied + 2);
  EXPECT_THROW(stream_->copy(b.address + 60, a.address, 16), Error);
  EXPECT_THROW(stream_->fill(a.address, 6, 0), Error);
  EXPECT_THROW(stream_->upload(a.address + 64, "1234", 4), Error);
  EXPECT_THROW(stream_->download(nullptr, 4096, 4, 0), Error);
}

TEST_F(Reference, EmptyAllocationsHaveAddresses) {
  const Allocation a = device_->allocate(0, MemoryKind::device), b = device_->allocate(0, MemoryKind::device);
  EXPECT_NE(a.address, b.address);
  device_->free(a);
  device_->free(b);
  device_->free({});
  EXPECT_THROW(device_->free(a), Error);
}

TEST_F(Reference, TooMuchMemory) {
  for (const std::size_t bytes : {~std::size_t{0}, std::size_t{1} << 60}) {
    try {
      device_->allocate(bytes, MemoryKind::device);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos);
    }
  }
}

TEST_F(Reference, MemoryFreedDuringALaunchOutlivesIt) {
  const Kernel kernel([](Kernel& k) {
    count_to(k, k.n(), [&](Id) {
      k.b.atomic(Op::atomic_add, Type::i32, {k.i32(1)}, k.at(k.x(), k.i32(0)));
      k.store(Type::i32, k.tid(), k.y(), k.i32(0));
    });
    k.store(Type::i32, k.i32(1), k.y(), k.i32(0));  // looks the array up for the first time
  });
  const Allocation x = array(std::vector<std::int32_t>(1)), y = array(std::vector<std::int32_t>(1));
  std::atomic_ref<std::int32_t> progress(*reinterpret_cast<std::int32_t*>(x.host));
  std::jthread other([&] {
    while (progress.load() == 0) std::this_thread::yield();
    device_->free(y);
  });
  launch(kernel, 1, x.address, y.address, 300000);
  other.join();
  EXPECT_EQ(read<std::int32_t>(x)[0], 300000);
  EXPECT_THROW(device_->free(y), Error);
}

TEST_F(Reference, ManyAllocationsCostNoLaunchDearly) {
  std::vector<Allocation> many;
  for (int i = 0; i < 20000; ++i) many.push_back(device_->allocate(4, MemoryKind::device));
  const Kernel kernel([](Kernel& k) { k.b.atomic(Op::atomic_add, Type::i32, {k.i32(1)}, k.at(k.x(), k.i32(0))); });
  const auto program = device_->compile(kernel.module, {});
  for (const Allocation& a : many) {
    stream_->fill(a.address, 4, 0);
    std::byte args[28] = {std::byte{2}};
    std::memcpy(args + Kernel::kX, &a.address, 8);
    stream_->launch(*program, {}, args, {});
  }
  for (const Allocation& a : many) {
    ASSERT_EQ(*reinterpret_cast<std::int32_t*>(a.host), 2);
    device_->free(a);
  }
}

TEST_F(Reference, DescribesItself) {
  EXPECT_EQ(device_->info().name, "reference");
  EXPECT_TRUE(device_->info().host_visible);
  EXPECT_TRUE(device_->info().software);
  const Kernel kernel([](Kernel& k) { k.store(Type::i32, k.n(), k.x(), k.tid()); });
  device_->compile(kernel.module, {});
  EXPECT_EQ(device_->stats().emitted, 1u);
}

TEST_F(Reference, ProgramOfAnotherDeviceIsRefused) {
  struct Foreign : Program {
    const std::string& name() const override { return name_; }
    std::string name_ = "foreign";
  } foreign;
  std::byte args[28] = {};
  EXPECT_THROW(stream_->launch(foreign, {}, args, {}), Error);
}

}  // namespace
}  // namespace weft::backend
