// The generator of random kernels: it is the body of the kernel, and draws what to trace next.
#include "random_program.h"

#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

#include "../device/run_module.h"

namespace weft::test {

namespace {

using ir::Op;
using ir::Type;
using tracing::Id;

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// 0 to n - 1.
  int below(int n) { return int(bits() % std::uint64_t(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T, std::size_t N>
  T pick(const T (&of)[N]) {
    return of[below(int(N))];
  }

 private:
  std::uint64_t state_;
};

constexpr Type kTypes[] = {Type::b1,  Type::i8,  Type::u8,  Type::i16, Type::u16, Type::i32,
                           Type::u32, Type::i64, Type::u64, Type::f16, Type::f32, Type::f64};

/// An array of any element type, as access to its elements.
struct Memory {
  virtual ~Memory() = default;
  virtual Id read(const Var<int>& i) const = 0;
  virtual void write(const Var<int>& i, Id value) const = 0;
  Type type = Type::none;
};
template <class T>
struct MemoryOf : Memory {
  explicit MemoryOf(Arr<T> a) : array(a) { type = scalar_type<T>(); }
  Id read(const Var<int>& i) const override { return Var<T>(array[i]).read(); }
  void write(const Var<int>& i, Id value) const override { array[i] = Var<T>(value, detail::FromId{}); }
  Arr<T> array;
};

std::tuple<Int, Float> random_function_body(std::uint64_t seed, const Int& a, const Float& b, const Double& c);

auto random_function(std::uint64_t seed) {
  return func("random function", [seed](Int a, Float b, Double c) { return random_function_body(seed, a, b, c); });
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed), thread_(tid()) {
    statements_ = 6 + random_.below(30);
    for (int k = random_.below(3); k > 0; --k) functions_.push_back(random_function(random_.bits()));
  }
  /// The body of a function, which has variables, but neither memory nor `Return()`.
  Generator(std::uint64_t seed, const Int& a, const Float& b, const Double& c) : random_(seed), thread_(tid()) {
    in_function_ = true;
    variables_.push_back({Type::i32, tracing::Slot(a.read())});
    variables_.push_back({Type::f32, tracing::Slot(b.read())});
    variables_.push_back({Type::f64, tracing::Slot(c.read())});
    statements_ = 2 + random_.below(10);
  }
  std::tuple<Int, Float> results() {
    while (statements_ > 0) statement();
    Int whole = integer(2);
    return {whole, Float(expression(Type::f32, 2), detail::FromId{})};
  }

  template <class T>
  void add(Arr<T> array) {
    memories_.push_back(std::make_unique<MemoryOf<T>>(array));
  }

  void run(Arr<vec3> vectors, Arr<int> counters, Arr<std::int64_t> integers, Arr<double> reals) {
    vectors_ = &vectors;
    counters_ = &counters;
    while (statements_ > 0) statement();
    // The variables that exist at the end are the result.
    Int own = thread_ * RandomArrays::kVariables;
    for (int k = 0; k < RandomArrays::kVariables && k < int(variables_.size()); ++k) {
      const Variable& v = variables_[std::size_t(k)];
      const Id value = v.slot.read();
      if (is_float(v.type))
        reals[own + k] = Double(convert(Type::f64, value), detail::FromId{});
      else
        integers[own + k] = Int64(convert(Type::i64, value), detail::FromId{});
    }
  }

 private:
  struct Variable {
    Type type;
    tracing::Slot slot;
  };

  Id convert(Type to, Id value) { return type_of(value) == to ? value : tracing::convert(to, value, {}); }
  Type type_of(Id id) { return tracing::Trace::current().module()[id].type; }
  Bool boolean(int depth) { return Bool(expression(Type::b1, depth), detail::FromId{}); }
  Int integer(int depth) { return Int(expression(Type::i32, depth), detail::FromId{}); }
  /// An index of an element that this thread owns.
  Int own_index(int depth) {
    Int e = integer(depth);
    return thread_ * RandomArrays::kOwn + (e & (RandomArrays::kOwn - 1));
  }

  // ---- Expressions

  Id literal(Type type) {
    if (type == Type::b1) return tracing::literal_int(type, random_.below(2), {});
    if (is_float(type)) {
      const double values[] = {0, 1, -1, 0.5, 2, -3.25, 100, 1e-2, double(random_.below(2000) - 1000) / 8};
      return tracing::literal_real(type, random_.pick(values), {});
    }
    // Literals are small numbers, or any bits, which include the ends of the range.
    if (random_.chance(70)) return tracing::literal_int(type, random_.below(is_signed(type) ? 100 : 50), {});
    return tracing::Trace::current().builder().constant(type, random_.bits() & ir::mask(type));
  }

  Id leaf(Type type) {
    if (random_.chance(65)) {
      // Reads a variable of this type, or converts one.
      std::vector<const Variable*> fitting;
      for (const Variable& v : variables_)
        if (v.type == type) fitting.push_back(&v);
      if (!fitting.empty()) return fitting[std::size_t(random_.below(int(fitting.size())))]->slot.read();
      if (!variables_.empty() && random_.chance(50))
        return convert(type, variables_[std::size_t(random_.below(int(variables_.size())))].slot.read());
    }
    if (!in_function_ && random_.chance(40)) {
      const Memory& m = *memories_[std::size_t(random_.below(int(memories_.size())))];
      return convert(type, m.read(own_index(0)));
    }
    if (random_.chance(20)) return convert(type, thread_.read());
    return literal(type);
  }

  Id expression(Type type, int depth) {
    if (depth <= 0 || random_.chance(15)) return leaf(type);
    if (random_.chance(12)) {
      const Type from = random_.pick(kTypes);
      return convert(type, expression(from, depth - 1));
    }
    if (random_.chance(10)) {
      // One draw per statement, here and below, because C++ leaves the order of evaluation of arguments open.
      const Id condition = expression(Type::b1, depth - 1), yes = expression(type, depth - 1);
      const Id no = expression(type, depth - 1);
      return tracing::ternary(Op::select, condition, yes, no, {});
    }
    if (type == Type::b1) return logical(depth);
    return is_float(type) ? real(type, depth) : whole(type, depth);
  }

  Id logical(int depth) {
    switch (random_.below(6)) {
      case 0:
      case 1: {
        const Op ops[] = {Op::eq, Op::ne, Op::lt, Op::le};
        const Type t = kTypes[1 + random_.below(11)];
        const Id a = expression(t, depth - 1), b = expression(t, depth - 1);
        const Op op = random_.pick(ops);
        return tracing::binary(op, a, b, {});
      }
      case 2: {
        const bool or_else = random_.chance(50);
        const Id left = expression(Type::b1, depth - 1);
        tracing::begin_short_circuit(left, or_else, {});
        const Id right = expression(Type::b1, depth - 1);
        return tracing::end_short_circuit(left, right, or_else, {});
      }
      case 3: return tracing::logical_not(expression(Type::b1, depth - 1), {});
      case 4: {
        const Op ops[] = {Op::bit_and, Op::bit_or, Op::bit_xor};
        const Id a = expression(Type::b1, depth - 1), b = expression(Type::b1, depth - 1);
        const Op op = random_.pick(ops);
        return tracing::binary(op, a, b, {});
      }
      default: {
        const Type reals[] = {Type::f16, Type::f32, Type::f64};
        const Type type = random_.pick(reals);
        const Id x = expression(type, depth - 1);
        return tracing::unary(random_.chance(50) ? Op::is_nan : Op::is_inf, x, {});
      }
    }
  }

  Id whole(Type type, int depth) {
    const Id a = expression(type, depth - 1);
    switch (random_.below(8)) {
      case 0: {
        const Op ops[] = {Op::neg, Op::abs, Op::bit_not, Op::popcount};
        return tracing::unary(random_.pick(ops), a, {});
      }
      case 1: return tracing::sign(a, {});
      case 2: return tracing::floor_div(a, expression(type, depth - 1), {});
      case 3:
        if (ir::bits(type) == 32) return tracing::binary(Op::mul_hi, a, expression(type, depth - 1), {});
        [[fallthrough]];
      default: {
        const Op ops[] = {Op::add, Op::sub, Op::mul,    Op::div,     Op::rem, Op::min,
                          Op::max, Op::shl, Op::bit_or, Op::bit_and, Op::shr, Op::bit_xor};
        const Op op = random_.pick(ops);
        return tracing::binary(op, a, expression(type, depth - 1), {});
      }
    }
  }

  /// Uses only operations that every device rounds correctly.
  Id real(Type type, int depth) {
    const Id a = expression(type, depth - 1);
    switch (random_.below(6)) {
      case 0: {
        const Op ops[] = {Op::neg, Op::abs, Op::floor, Op::ceil, Op::trunc, Op::round_even};
        return tracing::unary(random_.pick(ops), a, {});
      }
      case 1: return random_.chance(50) ? tracing::sign(a, {}) : tracing::round_away(a, {});
      default: {
        const Op ops[] = {Op::add, Op::sub, Op::mul, Op::min, Op::max};
        const Op op = random_.pick(ops);
        return tracing::binary(op, a, expression(type, depth - 1), {});
      }
    }
  }

  // ---- Statements

  void statement() {
    --statements_;
    const int kind = random_.below(100);
    if (!is_deep_ && depth_ < 2 && random_.below(150) == 0) return deep();
    if (kind < 28) return declare();
    if (kind < 52) return assign();
    if (in_function_ && kind < 73) return assign();
    if (kind < 62) return store();
    if (kind < 67) return vectors();
    if (kind < 70) return count();
    if (kind < 73) return functions_.empty() ? assign() : call();
    if (kind < 76 && depth_ > 0) return leave();
    if (depth_ >= 4) return assign();
    if (kind < 88) return branch();
    if (kind < 95) return counted_loop();
    return while_loop();
  }

  void declare() {
    const Type type = random_.pick(kTypes);
    const Id value = expression(type, 3);
    variables_.push_back({type, tracing::Slot(value)});
  }

  void assign() {
    if (variables_.empty()) return declare();
    const std::size_t k = std::size_t(random_.below(int(variables_.size())));
    const Id value = expression(variables_[k].type, 3);
    variables_[k].slot.assign(value, {});
  }

  void store() {
    const Memory& m = *memories_[std::size_t(random_.below(int(memories_.size())))];
    Int at = own_index(2);
    m.write(at, expression(m.type, 3));
  }

  void vectors() {
    Int i = own_index(1), j = own_index(1);
    switch (random_.below(6)) {
      case 0: (*vectors_)[i] = (*vectors_)[j] - Vec3((*vectors_)[i].y, 1, (*vectors_)[j].x); break;
      case 1: (*vectors_)[i] += (*vectors_)[j] * 0.5f; break;
      case 2: (*vectors_)[i].z = Float(expression(Type::f32, 2), detail::FromId{}); break;
      case 3: (*vectors_)[i] = cross(Vec3((*vectors_)[j]), vec3{1, 2, 3}); break;
      case 4: {
        // The traced index is inside the vector or outside.
        Vec3 v = (*vectors_)[j];
        Int k = integer(1) % 5, l = integer(1) % 3;
        v[k] = v[l] + 1;
        (*vectors_)[i] = v;
        break;
      }
      default: {
        Int k = integer(1) & 3;
        Float x = (*vectors_)[j][k];
        (*vectors_)[i][k] = x - 2;
      }
    }
  }

  /// Adds to a counter; there is one for each operation, so that results do not depend on the order of the threads.
  void count() {
    const int which = random_.below(6);
    Int value = integer(2);
    Int& counter = (*counters_)[which];
    switch (which) {
      case 0: atomic_add(counter, value); break;
      case 1: atomic_min(counter, value); break;
      case 2: atomic_max(counter, value); break;
      case 3: atomic_and(counter, value); break;
      case 4: atomic_or(counter, value); break;
      default: atomic_xor(counter, value);
    }
  }

  void call() {
    const auto& f = functions_[std::size_t(random_.below(int(functions_.size())))];
    Int a = integer(2);
    Float b(expression(Type::f32, 2), detail::FromId{});
    Double c(expression(Type::f64, 2), detail::FromId{});
    auto [whole, real] = f(a, b, c);
    variables_.push_back({Type::i32, tracing::Slot(whole.read())});
    variables_.push_back({Type::f32, tracing::Slot(real.read())});
  }

  template <class F>
  void block(F body) {
    const std::size_t alive = variables_.size();
    ++depth_;
    body();
    --depth_;
    while (variables_.size() > alive) variables_.pop_back();
  }

  void statements(int n) {
    for (int k = 0; k < n && statements_ > 0; ++k) statement();
  }

  void leave() {
    Bool when = boolean(2);
    const int way = loops_ > 0 ? random_.below(in_function_ ? 4 : 5) : 4;
    if (way == 4 && in_function_) return;
    If (when) {
      if (way < 2)
        Break();
      else if (way < 4)
        Continue();
      else
        Return();
    }
  }

  void branch() {
    const int form = random_.below(3);
    Bool first = boolean(2);
    IfChain chain = if_(first, [&] { block([&] { statements(1 + random_.below(3)); }); });
    if (form == 0) return;
    if (form == 1)
      chain = chain.elif_([&] { return boolean(2); }, [&] { block([&] { statements(1 + random_.below(2)); }); });
    chain.else_([&] { block([&] { statements(1 + random_.below(3)); }); });
  }

  void counted_loop() {
    if (loops_ >= 2) return branch();
    Int lo = integer(1) % 4, length = integer(1) & 7;
    const int step = random_.below(3) + 1;
    const bool down = random_.chance(30);
    ++loops_;
    auto body = [&](const Int& i) {
      block([&] {
        variables_.push_back({Type::i32, tracing::Slot(i.read())});
        statements(1 + random_.below(4));
      });
    };
    if (down) {
      for (auto i : range(lo, lo - length, -step)) body(i);
    } else {
      for (auto i : range(lo, lo + length, step)) body(i);
    }
    --loops_;
  }

  void while_loop() {
    if (loops_ >= 2) return branch();
    Int turns = 0;
    const int most = 1 + random_.below(6);
    ++loops_;
    While (turns < most && boolean(2)) {
      turns += 1;  // first, so that Continue() cannot skip it
      block([&] { statements(1 + random_.below(4)); });
    }
    --loops_;
  }

  // ---- Depth

  /// The number of levels or alternatives, up to 400; small as often as large.
  int levels() {
    const int most[] = {20, 60, 100, 400};
    return 5 + random_.below(random_.pick(most) - 4);
  }

  /// The condition of level k, by which threads leave on different levels.
  Bool on_level(const Int& where, int k) { return (where & 511) == (k * 3 & 511); }

  void deep() {
    is_deep_ = true;
    if (variables_.empty()) declare();  // an assignment inside would otherwise declare one, which would end there
    const int n = levels();
    Int where = integer(1) + thread_ * 3;
    switch (random_.below(in_function_ ? 2 : 4)) {
      case 0: return chain(where, n);
      case 1: return nest(where, 0, n);
      case 2: {
        const int last = random_.below(3);
        for (auto turn : range(Int(1 + random_.below(3)))) {
          for (int k = 0; k < n; ++k) {
            If (on_level(where + turn, k)) {
              assign();
              if (k % 3 == last)
                Break();
              else
                Continue();
            }
          }
          assign();
        }
        return;
      }
      default:
        for (int k = 0; k < n; ++k) {
          If (on_level(where, k)) {
            if (k % 16 == 0) store();
            Return();
          }
        }
    }
  }

  void chain(const Int& where, int n) {
    auto chain = if_(on_level(where, 0), [&] { assign(); });
    for (int k = 1; k < n; ++k) {
      chain.elif_([&] { return on_level(where, k); },
                  [&] {
                    if (k % 8 == 0) assign();
                    if (k % 8 == 3 && !in_function_) store();
                  });
    }
    chain.else_([&] { assign(); });
  }

  void nest(const Int& where, int k, int n) {
    if (k == n) return assign();
    if (k % 16 == 5) assign();
    Int before = where + k;
    auto branches = if_((where & 511) > k, [&] {
      nest(where, k + 1, n);
      if (k % 32 == 7) variables_[0].slot.assign(convert(variables_[0].type, before.read()), {});
    });
    if (k % 4 == 1) branches.else_([&] { assign(); });
  }

  Random random_;
  Int thread_;
  bool is_deep_ = false;  ///< at most one deep statement, because drivers take long for each
  int statements_ = 0, depth_ = 0, loops_ = 0;
  bool in_function_ = false;
  std::vector<decltype(random_function(0))> functions_;
  std::deque<Variable> variables_;
  std::vector<std::unique_ptr<Memory>> memories_;
  const Arr<vec3>* vectors_ = nullptr;
  const Arr<int>* counters_ = nullptr;
};

std::tuple<Int, Float> random_function_body(std::uint64_t seed, const Int& a, const Float& b, const Double& c) {
  return Generator(seed, a, b, c).results();
}

template <class T>
std::vector<T> random_values(Random& random, int count) {
  std::vector<T> values;
  for (int k = 0; k < count; ++k) {
    if constexpr (std::is_same_v<T, vec3>) {
      float c[3];
      for (float& x : c) x = float(random.below(400) - 200) / 16;
      values.push_back({c[0], c[1], c[2]});
    } else if constexpr (RealScalar<T>) {
      values.push_back(T(float(random.below(4000) - 2000) / 64));
    } else if (random.chance(75)) {
      values.push_back(T(random.below(100) - 50));
    } else {
      values.push_back(T(random.bits()));
    }
  }
  return values;
}

template <class T>
Array<T> random_array(const Device& device, Random& random, int count) {
  if constexpr (std::is_same_v<T, bool>) {
    std::unique_ptr<bool[]> values(new bool[std::size_t(count)]);
    for (int k = 0; k < count; ++k) values[std::size_t(k)] = random.chance(50);
    return Array<bool>(device, std::span<const bool>(values.get(), std::size_t(count)));
  } else {
    return Array<T>(device, random_values<T>(random, count));
  }
}

template <class T>
bool same(T a, T b) {
  if constexpr (RealScalar<T>) {
    const double x = double(a), y = double(b);
    return x == y || (std::isnan(x) && std::isnan(y));
  } else {
    return a == b;
  }
}
inline bool same(const vec3& a, const vec3& b) { return same(a.x, b.x) && same(a.y, b.y) && same(a.z, b.z); }

template <class T>
std::string text(const T& value) {
  if constexpr (std::is_same_v<T, vec3>)
    return fmt::format("({}, {}, {})", value.x, value.y, value.z);
  else if constexpr (RealScalar<T>)
    return fmt::format("{}", double(value));
  else
    return fmt::format("{}", std::int64_t(value));
}

template <class T>
std::string first_difference(const char* name, const Array<T>& a, const Array<T>& b, int per_thread) {
  const std::vector<T> x = a.to_vector(), y = b.to_vector();
  for (std::size_t k = 0; k < x.size(); ++k)
    if (!same(T(x[k]), T(y[k])))
      return fmt::format("{}[{}] of thread {}: {} and {}", name, k, k / std::size_t(per_thread), text(T(x[k])),
                         text(T(y[k])));
  return {};
}

}  // namespace

RandomArrays::RandomArrays(const Device& device, int threads, std::uint64_t seed) {
  Random random(seed ^ 0x5eed);
  const int n = threads * kOwn;
  flags = random_array<bool>(device, random, n);
  bytes = random_array<std::uint8_t>(device, random, n);
  shorts = random_array<std::int16_t>(device, random, n);
  ints = random_array<int>(device, random, n);
  words = random_array<unsigned>(device, random, n);
  longs = random_array<std::int64_t>(device, random, n);
  halves = random_array<half>(device, random, n);
  floats = random_array<float>(device, random, n);
  doubles = random_array<double>(device, random, n);
  vectors = random_array<vec3>(device, random, n);
  counters = zeros<int>(device, kCounters);
  integers = zeros<std::int64_t>(device, threads * kVariables);
  reals = zeros<double>(device, threads * kVariables);
}

std::string RandomArrays::difference(const RandomArrays& other) const {
  std::string found;
  auto check = [&](const char* name, const auto& a, const auto& b, int per_thread) {
    if (found.empty()) found = first_difference(name, a, b, per_thread);
  };
  check("flags", flags, other.flags, kOwn);
  check("bytes", bytes, other.bytes, kOwn);
  check("shorts", shorts, other.shorts, kOwn);
  check("ints", ints, other.ints, kOwn);
  check("words", words, other.words, kOwn);
  check("longs", longs, other.longs, kOwn);
  check("halves", halves, other.halves, kOwn);
  check("floats", floats, other.floats, kOwn);
  check("doubles", doubles, other.doubles, kOwn);
  check("vectors", vectors, other.vectors, kOwn);
  check("counters", counters, other.counters, kCounters);
  check("integers", integers, other.integers, kVariables);
  check("reals", reals, other.reals, kVariables);
  return found;
}

RandomKernel random_kernel(std::uint64_t seed) {
  return kernel("random program", [seed](Arr<bool> flags, Arr<std::uint8_t> bytes, Arr<std::int16_t> shorts,
                                         Arr<int> ints, Arr<unsigned> words, Arr<std::int64_t> longs, Arr<half> halves,
                                         Arr<float> floats, Arr<double> doubles, Arr<vec3> vectors, Arr<int> counters,
                                         Arr<std::int64_t> integers, Arr<double> reals) {
    Generator g(seed);
    g.add(flags);
    g.add(bytes);
    g.add(shorts);
    g.add(ints);
    g.add(words);
    g.add(longs);
    g.add(halves);
    g.add(floats);
    g.add(doubles);
    g.run(vectors, counters, integers, reals);
  });
}

void launch_random(const RandomKernel& kernel, int threads, RandomArrays& a) {
  launch(kernel, threads, a.flags, a.bytes, a.shorts, a.ints, a.words, a.longs, a.halves, a.floats, a.doubles,
         a.vectors, a.counters, a.integers, a.reals);
}

void run_random(const Device& device, const ir::Module& module, int threads, RandomArrays& a) {
  const ArrayBase* arrays[] = {&a.flags,  &a.bytes,   &a.shorts,  &a.ints,     &a.words,    &a.longs, &a.halves,
                               &a.floats, &a.doubles, &a.vectors, &a.counters, &a.integers, &a.reals};
  run_module(device, module, threads, arrays);
}

}  // namespace weft::test
