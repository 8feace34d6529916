// What the emitter writes, run: the same bytes in memory as the interpreter leaves, for vectors of every width, numbers
// of threads around multiples of it, and launches in several parts. Skipped where there is no LLVM.
#include <gtest/gtest.h>
#include <weft/weft.h>

#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>

#include "../../../backends/native/code/compiler.h"
#include "../../../backends/native/code/loader.h"
#include "../../../llvm/emit.h"
#include "../../device/run_module.h"
#include "arm_machine.h"

namespace weft {
namespace {

using Arrays = std::vector<const ArrayBase*>;

/// The rows and columns of a launch; one row is a launch over threads alone.
struct Threads {
  int rows, columns;
  int count() const { return rows * columns; }
};

/// The argument block of a kernel that takes contiguous arrays.
std::vector<std::byte> block_of(const ir::Module& module, const Arrays& arrays, Threads threads) {
  std::vector<std::byte> block(module.args_bytes);
  auto put = [&](std::size_t at, auto value) { std::memcpy(block.data() + at, &value, sizeof value); };
  put(0, std::uint32_t(threads.count()));
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    put(module.params[k].offset, arrays[k]->address());
    for (int d = 0; d < arrays[k]->ndim(); ++d)
      put(module.params[k].offset + 8 + 4 * std::size_t(d), std::int32_t(arrays[k]->shape(d)));
  }
  if (module.tid_rank == 2) {
    // See tracing::thread_coordinate().
    const auto extent = std::uint32_t(threads.columns);
    const int shift = std::bit_width(extent - 1);
    put(module.tid_offset, extent);
    put(module.tid_offset + 4, std::uint32_t(((1ull << (31 + shift)) + extent - 1) / extent));
    put(module.tid_offset + 8, std::uint32_t(shift));
  }
  return block;
}

/// The number of lanes, on the host's processor or on an emulated one.
struct Lanes {
  std::uint32_t number;
  bool arm = false;
};
void PrintTo(const Lanes& lanes, std::ostream* out) { *out << lanes.number << (lanes.arm ? " on AArch64" : ""); }

class LlvmRun : public testing::TestWithParam<Lanes> {
 protected:
  /// The interpreter that rounds products and sums as code for this processor does.
  static Device interpreter_of_host() {
    const auto* compiler = backend::native::Compiler::find();
    const bool fused = GetParam().arm || !compiler || compiler->processor().target.fused;
    return Device(fused ? "reference" : "reference:split");
  }
  void SetUp() override {
    std::string why;
    compiler_ = backend::native::Compiler::find(&why);
    if (!compiler_) GTEST_SKIP() << why;
    if (!GetParam().arm) return;
    arm_ = test::ArmMachine::find(&why);
    if (!arm_) GTEST_SKIP() << why;
  }
  static int lanes() { return int(GetParam().number); }

  static const ir::Module& traced(const ir::Module& module) { return module; }
  template <class... P>
  static ir::Module traced(const Kernel<P...>& kernel) {
    return kernel.trace();
  }

  /// Compares all elements of the arrays that `make` makes after a run of the code and one of the interpreter.
  /// \param kernel  a kernel or its module
  template <class K, class Make>
  void compare(const K& kernel, Threads threads, Make make, bool by_rows = true) {
    const ir::Module module = traced(kernel);
    const auto expected = make(), found = make();
    const Arrays in = pointers(expected), out = pointers(found);
    std::vector<std::byte> block = block_of(module, in, threads);
    interpret(module, block, threads);
    run(module, out, threads, by_rows);
    for (std::size_t k = 0; k < in.size(); ++k)
      EXPECT_EQ(std::memcmp(bytes(*in[k]), bytes(*out[k]), in[k]->extent_bytes()), 0)
          << module.name << ", argument " << k + 1 << ", " << threads.rows << " x " << threads.columns << " threads";
  }

  /// The same for thread numbers around multiples of the lanes.
  template <class K, class Make>
  void compare_sizes(const K& kernel, Make make) {
    for (int n : {1, 2, lanes() - 1, lanes(), lanes() + 1, 2 * lanes(), 3 * lanes() + 1, 64 + lanes() + 1})
      compare(kernel, {1, n}, make);
  }

  /// Compares what the code leaves as the device loads it with what it leaves in one piece.
  template <class K, class Make>
  void compare_pieces(const K& kernel, Make make) {
    const ir::Module module = traced(kernel);
    for (int n : {1, lanes() - 1, 3 * lanes() + 1}) {
      const auto whole = make(), pieces = make();
      const Arrays in = pointers(whole), out = pointers(pieces);
      in_pieces_ = false;
      run(module, in, {1, n}, true);
      in_pieces_ = true;
      run(module, out, {1, n}, true);
      for (std::size_t k = 0; k < in.size(); ++k)
        EXPECT_EQ(std::memcmp(bytes(*in[k]), bytes(*out[k]), in[k]->extent_bytes()), 0) << "argument " << k + 1;
    }
  }

  const Device reference_ = interpreter_of_host();

 private:
  template <class... A>
  static Arrays pointers(const std::tuple<A...>& arrays) {
    return std::apply([](const auto&... each) { return Arrays{&each...}; }, arrays);
  }
  static const void* bytes(const ArrayBase& array) { return reinterpret_cast<const void*>(array.address()); }

  void interpret(const ir::Module& module, std::span<const std::byte> block, Threads threads) {
    const auto program = reference_.native().compile(module, ir::hash(module));
    backend::Stream& stream = reference_.stream().native();
    const std::uint32_t groups = (std::uint32_t(threads.count()) + module.block - 1) / module.block;
    stream.wait(stream.launch(*program, {groups, 1, 1}, block, {}));
  }

  /// Runs the code in two parts, if there is more than one unit of its split.
  void run(const ir::Module& module, const Arrays& arrays, Threads threads, bool by_rows) {
    llvm::Target target = arm_ ? arm_->target() : compiler_->processor().target;
    target.lanes = GetParam().number;
    const llvm::Code code = llvm::emit(module, target, by_rows);
    std::int64_t end = threads.count(), middle = end / 2 / 64 * 64;
    if (code.split == llvm::Split::rows) {
      end = threads.rows;
      middle = end / 2;
    } else if (code.split == llvm::Split::groups) {
      end = (end + module.block - 1) / module.block;
      middle = end / 2;
    }
    const std::vector<std::byte> block = block_of(module, arrays, threads);
    const std::vector<std::pair<std::int64_t, std::int64_t>> ranges{{middle, end}, {0, middle}};
    arm_ ? emulate(module, code, block, arrays, ranges) : call(code, block, ranges);
  }

  /// As the device loads it: the kernel's own code, and the real functions that it calls, each compiled by itself.
  std::shared_ptr<backend::native::LoadedCode> load(const llvm::Code& code) const {
    std::vector<std::vector<std::byte>> objects;
    for (const llvm::FunctionModule& each : code.functions) objects.push_back(compiler_->compile(each.text));
    std::vector<backend::native::CalledFunction> functions;
    for (std::size_t k = 0; k < objects.size(); ++k) functions.push_back({code.functions[k].name, objects[k]});
    return backend::native::LoadedCode::load(compiler_->compile(code.own), llvm::kEntryName, functions);
  }

  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  void call(const llvm::Code& code, const std::vector<std::byte>& block, const Ranges& ranges) {
    auto [at, is_new] = loaded_.try_emplace(in_pieces_ ? code.own : code.text);
    if (is_new)
      at->second =
          in_pieces_ ? load(code) : backend::native::LoadedCode::load(compiler_->compile(code.text), llvm::kEntryName);
    const auto entry = reinterpret_cast<llvm::Entry>(at->second->entry());
    std::vector<std::byte> memory(code.arena_bytes + 64, std::byte{0xcd});
    const auto unaligned = reinterpret_cast<std::uintptr_t>(memory.data());
    const llvm::Worker worker{memory.data() + (64 - unaligned % 64)};
    for (const auto& [begin, end] : ranges) entry(block.data(), &worker, begin, end);
  }

  void emulate(const ir::Module& module, const llvm::Code& code, const std::vector<std::byte>& block,
               const Arrays& arrays, const Ranges& ranges) {
    auto [at, is_new] = objects_.try_emplace(code.text);
    if (is_new) at->second = arm_->compile(code.text);
    std::vector<test::ArmMachine::Array> places;
    for (std::size_t k = 0; k < arrays.size(); ++k)
      places.push_back(
          {module.params[k].offset, {reinterpret_cast<std::byte*>(arrays[k]->address()), arrays[k]->extent_bytes()}});
    arm_->run(at->second, code.arena_bytes, block, places, ranges);
  }

  bool in_pieces_ = true;  ///< as the device loads it
  backend::native::Compiler* compiler_ = nullptr;
  const test::ArmMachine* arm_ = nullptr;                                       ///< of tests on it
  std::map<std::string, std::shared_ptr<backend::native::LoadedCode>> loaded_;  ///< by text
  std::map<std::string, std::vector<std::byte>> objects_;                       ///< the same
};

INSTANTIATE_TEST_SUITE_P(Lanes, LlvmRun,
                         testing::Values(Lanes{4}, Lanes{8}, Lanes{16}, Lanes{64}, Lanes{4, true}, Lanes{8, true}),
                         [](const auto& info) {
                           return std::to_string(info.param.number) + (info.param.arm ? "_on_arm" : "");
                         });

std::vector<int> numbers(int n, int step = 7, int modulus = 1001) {
  std::vector<int> all(static_cast<std::size_t>(n));
  for (int k = 0; k < n; ++k) all[std::size_t(k)] = k * step % modulus - modulus / 3;
  return all;
}

TEST_P(LlvmRun, DivergentLoopsAndBranches) {
  const auto k = kernel("collatz", [](Arr<int> x, Arr<int> steps) {
    Int i = tid(), n = abs(x[i]) % 50, count = 0;
    While (n > 1) {
      If (n % 2 == 0) {
        n /= 2;
      }
      Else {
        n = 3 * n + 1;
        If (n > 100) {
          Continue();
        }
        steps[i] += 100;
      }
      count += 1;
      If (count > 9) {
        Break();
      }
    }
    steps[i] += count;
    If (x[i] < 0) {
      Return();
    }
    for (auto j : range(x[i] % 5)) steps[i] -= j;
  });
  compare_sizes(k, [&] { return std::tuple(Array<int>(reference_, numbers(300)), zeros<int>(reference_, 300)); });
}

TEST_P(LlvmRun, LanesThatDoNotRunDivideByNothing) {
  const auto k = kernel("divide", [](Arr<int> a, Arr<int> b, Arr<std::int64_t> c) {
    Int i = tid();
    If (b[i] != 0) {
      a[i] = a[i] / b[i] + a[i] % b[i];
      c[i] = c[i] / Int64(b[i]);
    }
    c[i] += Int64(a[i]) % 7 + Int64(UInt(a[i]) / (UInt(b[i]) & 3u));
  });
  compare_sizes(k, [&] {
    std::vector<int> a = numbers(300, 1234567, 99999999), b = numbers(300, 1, 5);
    a[3] = a[9] = std::numeric_limits<int>::min();
    b[3] = -1;
    return std::tuple(Array<int>(reference_, a), Array<int>(reference_, b), ones<std::int64_t>(reference_, 300));
  });
}

TEST_P(LlvmRun, NeighboursOfTheFirstThreadAreNotRead) {
  const auto k =
      kernel("neighbours", [](Arr<const float> x, Arr<float> y, Arr<float> z, Arr<const vec3> p, Arr<vec3> q) {
        UInt u = UInt(tid());
        Int i = tid(), last = x.shape(0) - 1;
        If (i > 2) {
          y[i] = x[u - 3u] + x[i - 1];
          q[i] = p[i - 2] * 2.0f;
        }
        If (i < 5) {
          z[5 - i] = x[last - i];
        }
      });
  compare_sizes(k, [&] {
    std::vector<float> x(300);
    std::iota(x.begin(), x.end(), 0.5f);
    return std::tuple(Array<float>(reference_, x), zeros<float>(reference_, 300), zeros<float>(reference_, 6),
                      ones<vec3>(reference_, 300), zeros<vec3>(reference_, 300));
  });
}

TEST_P(LlvmRun, GathersScattersAndNarrowElements) {
  const auto k = kernel("scatter", [](Arr<const int> at, Arr<std::uint8_t> a, Arr<std::int16_t> b, Arr<half> c,
                                      Arr<vec4> d, Arr<bool> e) {
    Int i = tid(), j = at[i];
    a[j] = UInt8(i);
    b[j] = Int16(i * 3) / Int16(7);
    c[j] = Half(Float(i) / 3.0f) * half(1.5f);
    d[j] = d[i] + vec4(1, 2, 3, 4);
    If (e[i]) {
      e[j] = i % 3 == 0;
    }
  });
  compare_sizes(k, [&] {
    std::vector<int> at(300);
    for (int i = 0; i < 300; ++i) at[std::size_t(i)] = 300 + i * 7 % 300;
    return std::tuple(Array<int>(reference_, at), zeros<std::uint8_t>(reference_, 600),
                      zeros<std::int16_t>(reference_, 600), zeros<half>(reference_, 600), ones<vec4>(reference_, 600),
                      full<bool>(reference_, 600, true));
  });
}

TEST_P(LlvmRun, BlocksOfWordsFromAnywhere) {
  const auto k = kernel("blocks", [](Arr<const int> from, Arr<const vec4> a, Arr<const vec<2, double>> b,
                                     Arr<const mat44> c, Arr<const vec<2, std::int64_t>> d, Arr<const vec3> e,
                                     Arr<const vec2> f, Arr<vec4> x, Arr<double> y) {
    Int i = tid();
    x[i] = a[from[i]];
    // Lanes that rest have numbers of elements that are not there.
    Int far = select(from[i] % 3 == 0, from[i], 1 << 30);
    If (far < 300) {
      x[i] += a[far] * 2.0f;
      x[i] += Vec4(e[far].x, e[far].y, e[far].z, f[far].x + f[far].y);
      y[i] = b[far].x - b[far].y * 3.0 + Double(d[far].x * 3 - d[far].y);
    }
    While (far < 300) {
      const Mat44 m = c[far % 7];
      x[i] += m * Vec4(1, 2, 3, Float(far));
      far += 100;
    }
  });
  compare_sizes(k, [&] {
    std::vector<int> from(300);
    std::vector<vec4> a(300);
    std::vector<vec<2, double>> b(300);
    std::vector<mat44> c(7);
    std::vector<vec<2, std::int64_t>> d(300);
    std::vector<vec3> e(300);
    std::vector<vec2> f(300);
    for (int i = 0; i < 300; ++i) {
      const auto at = std::size_t(i);
      const float g = float(i);
      from[at] = i * 7 % 300, a[at] = {g, g + 0.25f, g + 0.5f, g + 0.75f}, b[at] = {double(i), double(i) / 3};
      e[at] = {g, g / 3, g / 7}, f[at] = {g / 9, -g};
      d[at] = {std::int64_t(i) << (i % 40), -std::int64_t(i) << 33};
      for (int r = 0; r < 4; ++r) c[at % 7](r, i % 4) = g + float(r) / 8;
    }
    return std::tuple(Array<int>(reference_, from), Array<vec4>(reference_, a), Array<vec<2, double>>(reference_, b),
                      Array<mat44>(reference_, c), Array<vec<2, std::int64_t>>(reference_, d),
                      Array<vec3>(reference_, e), Array<vec2>(reference_, f), zeros<vec4>(reference_, 300),
                      zeros<double>(reference_, 300));
  });
}

TEST_P(LlvmRun, SumsOfLanesThatShareAPlaceNowAndThen) {
  // As the adjoint of a gather makes them: runs of one index, alone and past a vector's end; then others in no order.
  const auto k = kernel("segments", [](Arr<const int> at, Arr<const int> some, Arr<int> sums, Arr<unsigned> most,
                                       Arr<std::int64_t> wide, Arr<unsigned> bits) {
    const Int i = tid();
    atomic_add(sums[at[i]], i * 3 + 1);
    If (i % 5 != 2) {
      atomic_max(most[some[i]], UInt(i) * 7u);
      atomic_add(wide[at[i]], Int64(i) << 33);
      atomic_xor(bits[some[i]], UInt(1) << (UInt(i) & 31u));
    }
  });
  compare_sizes(k, [&] {
    std::vector<int> at(300), some(300);
    for (int i = 0; i < 300; ++i) at[std::size_t(i)] = (i * i / 300) / 5, some[std::size_t(i)] = i * 7 % 11;
    return std::tuple(Array<int>(reference_, at), Array<int>(reference_, some), zeros<int>(reference_, 100),
                      zeros<unsigned>(reference_, 11), zeros<std::int64_t>(reference_, 100),
                      zeros<unsigned>(reference_, 11));
  });
}

TEST_P(LlvmRun, RealFunctionsThatSeveralObjectsHold) {
  const auto k = kernel("functions", [](Arr<const float> x, Arr<float> y, Arr<const double> a, Arr<double> b) {
    const Int i = tid();
    y[i] = sin(x[i]) + tanh(x[i] * 0.5f);
    If (i % 3 != 1) {
      b[i] = pow(a[i], 1.5) + exp(-a[i]) * sin(a[i]);
      y[i] += pow(abs(x[i]) + 0.25f, 0.75f);
    }
  });
  if (GetParam().arm) GTEST_SKIP() << "the emulator takes one object";
  compare_pieces(k, [&] {
    std::vector<float> x(300);
    std::vector<double> a(300);
    for (int i = 0; i < 300; ++i) x[std::size_t(i)] = float(i) / 9 - 12, a[std::size_t(i)] = double(i) / 17;
    return std::tuple(Array<float>(reference_, x), zeros<float>(reference_, 300), Array<double>(reference_, a),
                      zeros<double>(reference_, 300));
  });
}

TEST_P(LlvmRun, BlocksOfAnElementThatLanesShare) {
  // Elements of all lanes, of all that run (the first ones rest), of some, and past the last one where lanes rest.
  const auto k = kernel("shared", [](Arr<const int> at, Arr<const mat44> a, Arr<const vec4> b, Arr<vec4> x) {
    const Int i = tid(), j = at[i];
    Vec4 sum = a[j] * Vec4(1, 2, 3, 4);
    If (i % 8 > 4) {
      sum += a[j] * Vec4(5, 6, 7, 8);
    }
    const Int one = select(i % 16 > 2, i / 16 % 7, 1 << 30);
    If (one < 7) {
      sum += a[one] * Vec4(1, 0, 0, 1);
      for (int row = 0; row < 3; ++row) sum += b[one * 3 + row];
    }
    x[i] = sum;
  });
  compare_sizes(k, [&] {
    std::vector<int> at(300);
    std::vector<mat44> a(7);
    std::vector<vec4> b(21);
    for (int i = 0; i < 300; ++i) at[std::size_t(i)] = i < 100 ? i / 64 % 7 : i * 5 % 7;
    for (int i = 0; i < 21; ++i) {
      b[std::size_t(i)] = {float(i), float(i) / 2, float(i) / 4, -float(i)};
      for (int r = 0; r < 4; ++r) a[std::size_t(i % 7)](r, i / 7) = float(i) + float(r) / 8;
    }
    return std::tuple(Array<int>(reference_, at), Array<mat44>(reference_, a), Array<vec4>(reference_, b),
                      zeros<vec4>(reference_, 300));
  });
}

TEST_P(LlvmRun, LoopsThatFewLanesLeaveForLater) {
  const auto running = [] { return UInt(tracing::running_lanes(Loc::here()), detail::FromId{}); };
  const auto k = kernel("later", [&](Arr<const int> steps, Arr<int> found, Arr<unsigned> seen) {
    const Int i = tid();
    Int left = steps[i], sum = 0;
    seen[i] = running();
    While (left > 0) {
      const UInt all = running();
      Int here = left % 5;
      While (here > 0 & running() * 4u > all) {
        sum = sum * 3 + left;
        left -= 1;
        here -= 1;
      }
      left -= select(here == 0, 1, 0);
    }
    found[i] = sum;
    seen[i] = select(seen[i] > 0u & seen[i] <= 64u, 1u, 0u);
  });
  compare_sizes(k, [&] {
    std::vector<int> steps(300);
    for (int i = 0; i < 300; ++i) steps[std::size_t(i)] = i * 7 % 31;
    return std::tuple(Array<int>(reference_, steps), zeros<int>(reference_, 300), zeros<unsigned>(reference_, 300));
  });
}

TEST_P(LlvmRun, BlocksOfWordsToAnywhere) {
  const auto k = kernel("blocks", [](Arr<const int> to, Arr<vec4> a, Arr<vec3> b, Arr<vec2> c, Arr<vec4i> d,
                                     Arr<vec<2, double>> e, Arr<mat44> f, Arr<vec4> g) {
    Int i = tid(), j = to[i];
    const Float x = Float(i);
    a[j] = Vec4(x, x + 0.25f, x + 0.5f, x + 0.75f);
    g[i / 4] = Vec4(x, -x, x + 1.f, x + 2.f);  // of lanes that write to one element, the last one's stay
    // Lanes that rest have numbers of elements that are not there.
    const Int far = select(i % 3 == 0, j, 1 << 30);
    If (far < 300) {
      a[far] = Vec4(x / 3.f, x / 5.f, x / 7.f, x / 9.f);
      b[far] = Vec3(x, -x, x * x);
      c[far] = Vec2(x, 1.f - x);
      d[far] = Vec4i(i, i ^ 5, i * 7, -i);
      e[far] = Vec<2, double>(Double(x), Double(x) / 3.0);
    }
    Int rounds = i % 4;
    While (rounds > 0 & far < 300) {
      f[far] = Mat44(mat44::identity()) * (x + Float(rounds));
      rounds -= 1;
    }
  });
  compare_sizes(k, [&] {
    std::vector<int> to(300);
    for (int i = 0; i < 300; ++i) to[std::size_t(i)] = i * 7 % 300;
    return std::tuple(Array<int>(reference_, to), ones<vec4>(reference_, 300), ones<vec3>(reference_, 300),
                      ones<vec2>(reference_, 300), zeros<vec4i>(reference_, 300),
                      zeros<vec<2, double>>(reference_, 300), zeros<mat44>(reference_, 300),
                      zeros<vec4>(reference_, 100));
  });
}

TEST_P(LlvmRun, PrivateArraysOfLanesThatPart) {
  const auto k = kernel("stacks", [](Arr<int> x) {
    Int i = tid(), top = 0, sum = 0;
    auto own = private_array<int>(16);
    for (auto j : range(i % 13)) {
      own[top] = j * i;
      top += 1;
    }
    While (top > 0) {
      top -= 1;
      sum = sum * 3 + own[top];
    }
    x[i] = sum;
  });
  compare_sizes(k, [&] { return std::tuple(zeros<int>(reference_, 300)); });
}

TEST_P(LlvmRun, BlocksThatAreParted) {
  // Of 64 lanes, which no device has, the blocks are too short to be parted: LLVM takes ten minutes for long ones.
  const int many = lanes() > 16 ? 8 : 64;
  const auto k = kernel("long", [many](Arr<int> x, Arr<int> y) {
    Int i = tid(), sum = 0;
    for (auto round : range(i % 3)) {
      for (int j = 0; j < many; ++j) x[i * 64 + j] += sum + round;
      sum += x[i * 64 + 7];
    }
    If (i % 2 == 0) {
      for (int j = 0; j < many; ++j) sum += x[i * 64 + j] * j;
    }
    y[i] = sum;
  });
  compare_sizes(k, [&] { return std::tuple(ones<int>(reference_, 300 * 64), zeros<int>(reference_, 300)); });
}

TEST_P(LlvmRun, AtomicOperationsOfActiveLanes) {
  const auto k = kernel("atomics", [](Arr<int> sums, Arr<unsigned> most, Arr<double> reals) {
    Int i = tid();
    If (i % 3 != 1) {
      atomic_add(sums[0], i);
      atomic_min(sums[1 + i % 3], -i);
      atomic_max(most[i % 2], UInt(i) * 3u);
      atomic_add(reals[i % 5], Double(i));
    }
    atomic_xor(most[2], UInt(i));
  });
  compare_sizes(k, [&] {
    return std::tuple(zeros<int>(reference_, 4), zeros<unsigned>(reference_, 3), zeros<double>(reference_, 5));
  });
}

TEST_P(LlvmRun, AtomicOperationsAtOnePlaceTellEachLaneWhatWasBefore) {
  const auto k = kernel("before", [](Arr<int> at, Arr<unsigned> bits, Arr<std::int64_t> wide, Arr<int> sums,
                                     Arr<int> least, Arr<unsigned> seen, Arr<std::int64_t> most, Arr<int> places) {
    Int i = tid();
    If (i % 5 != 1) {
      sums[i] = atomic_add(at[0], i * 7 - 3);
      least[i] = atomic_min(at[1], 40 - i * 3 % 50);
      seen[i] = atomic_xor(bits[0], UInt(i) * 977u) + atomic_and(bits[1], ~(UInt(1) << (UInt(i) & 31u)));
      most[i] = atomic_max(wide[0], Int64(i * 37 % 64) << 40);
    }
    // Few lanes, as when elements are picked.
    If (i * 13 % 11 == 0) {
      places[i] = atomic_add(at[2], 1);
    }
  });
  const auto make = [&] {
    const auto ints = [&] { return zeros<int>(reference_, 127); };
    return std::tuple(zeros<int>(reference_, 3), Array<unsigned>(reference_, std::vector<unsigned>{5u, ~0u}),
                      zeros<std::int64_t>(reference_, 1), ints(), ints(), zeros<unsigned>(reference_, 127),
                      zeros<std::int64_t>(reference_, 127), ints());
  };
  // Fewer threads than run() has in one part: the order of parts is another.
  for (const int n : {1, 3, lanes() - 1, lanes(), lanes() + 1, 127}) compare(k, {1, n}, make);
}

// Lanes that do not run add nothing: not even 0, which would make 0 of -0.
TEST_P(LlvmRun, SumsOfNegativeZerosUnderAMask) {
  const auto k = kernel("zeros", [](Arr<float> sums, Arr<double> wide, Arr<const float> x) {
    Int i = tid();
    If (i % 3 != 1) {
      atomic_add(sums[0], x[i]);
      atomic_add(wide[0], Double(x[i]));
    }
    If (i < 0) {
      atomic_add(sums[1], x[i]);
    }
  });
  ir::Module gathered = k.trace();
  for (ir::Inst& inst : gathered.insts)
    if (inst.op == ir::Op::atomic_add) inst.imm = ir::kGather;
  const std::vector<float> zeros(300, -0.f);
  for (const ir::Module& module : {k.trace(), gathered})
    compare_sizes(module, [&] {
      return std::tuple(Array<float>(reference_, std::vector<float>(2, -0.f)),
                        Array<double>(reference_, std::vector<double>(1, -0.)), Array<float>(reference_, zeros));
    });
}

TEST_P(LlvmRun, RowsOfAnyLength) {
  const auto k = kernel("rows", [](Arr<const int> x, Arr<int, 2> y) {
    auto [i, j] = tid<2>();
    Int sum = i * 1000 + j;
    If (x[i] > x[j]) {
      sum += x[i];
    }
    y(i, j) = sum;
  });
  for (int columns : {1, 3, lanes() - 1, lanes(), lanes() + 1, 2 * lanes() + 1})
    for (int rows : {1, 2, 5})
      for (bool by_rows : {true, false})
        compare(
            k, {rows, columns},
            [&] {
              return std::tuple(Array<int>(reference_, numbers(200)), zeros<int, 2>(reference_, {rows, columns}));
            },
            by_rows);
}

TEST_P(LlvmRun, WorkgroupsThatAreNoMultipleOfTheLanes) {
  for (const unsigned block : {6u, 64u, 100u}) {
    const auto k = kernel("groups",
                          [block](Arr<int> x, Arr<const int> rounds) {
                            Int i = tid(), l = local_id(), size = int(block), before = x[i];
                            auto s = shared<int>(int(block));
                            auto own = private_array<int>(2);
                            own[0] = before;
                            s[l] = before;
                            Int step = rounds[0] - rounds[0] + 1;
                            for (auto r : range(3)) {
                              barrier();
                              Int other = s[(l + step) % size];
                              If (other % 2 == 0) {
                                before += other;
                              }
                              barrier();
                              s[l] = before + r;
                              own[1] = other;
                              step += 1;
                            }
                            barrier();
                            x[i] = s[size - 1 - l] + before * own[0] + own[1] + workgroup_id();
                          },
                          {.block = block});
    for (int groups : {1, 2, 3})
      compare(k, {1, groups * int(block)}, [&] {
        return std::tuple(Array<int>(reference_, numbers(groups * int(block))), ones<int>(reference_, 1));
      });
  }
}

}  // namespace
}  // namespace weft
