// Kernels for the tests of the passes: written by hand or at random, run in every form on the interpreter.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "../../../backends/reference/reference.h"
#include "../../../frontend/ir/builder.h"
#include "../../../frontend/passes/passes.h"
#include "../../../frontend/support/error.h"

namespace weft::ir {

// ---- Running a module

constexpr std::uint32_t kIn = 8, kOut = 16;  // where the argument block holds the two addresses
constexpr std::uint32_t kPerThread = 8;      // words of input and of output for each thread
constexpr std::uint32_t kThreads = 12;

inline Module kernel(const char* name) {
  Module m;
  m.name = name;
  m.loc = Loc::here();
  m.args_bytes = 24;
  return m;
}

using Words = std::vector<std::uint32_t>;

/// Runs a kernel, and returns its output, which starts as zeros.
inline Words run(const Module& m, const Words& in) {
  const std::unique_ptr<backend::Device> device = backend::open_reference();
  const std::size_t bytes = in.size() * 4;
  const backend::Allocation a = device->allocate(bytes, backend::MemoryKind::device);
  const backend::Allocation b = device->allocate(bytes, backend::MemoryKind::device);
  Words out(in.size(), 0);
  {
    const std::unique_ptr<backend::Stream> stream = device->create_stream();
    stream->upload(a.address, in.data(), bytes);
    stream->fill(b.address, bytes, 0);
    std::byte args[24] = {};
    const auto threads = static_cast<std::uint32_t>(in.size() / kPerThread);
    std::memcpy(args, &threads, 4);
    std::memcpy(args + kIn, &a.address, 8);
    std::memcpy(args + kOut, &b.address, 8);
    const std::shared_ptr<backend::Program> program = device->compile(m, hash(m));
    const backend::MemoryRange ranges[] = {{a.address, bytes, Access::read},
                                           {b.address, bytes, Access::read | Access::write}};
    stream->launch(*program, {1, 1, 1}, args, ranges);
    stream->download(out.data(), b.address, bytes, stream->submit());
  }
  device->free(a);
  device->free(b);
  return out;
}

inline bool has(const Module& m, std::initializer_list<Op> ops) {
  const std::function<bool(RegionId)> region = [&](RegionId r) {
    for (Id id : m.regions[r].insts) {
      if (std::ranges::count(ops, m[id].op)) return true;
      for (RegionId inner : m[id].regions) {
        if (inner != kNone && region(inner)) return true;
      }
    }
    return false;
  };
  return region(0);
}

inline bool has_step(const Module& m) {
  return std::ranges::any_of(m.insts, [](const Inst& i) { return i.op == Op::loop && i.regions[2] != kNone; });
}

inline int count(const Module& m, Op op) {
  int n = 0;
  for (const Region& r : m.regions) {
    for (Id id : r.insts) n += m[id].op == op;
  }
  return n;
}

/// The depth of branches and loops inside each other.
inline unsigned deepest(const Module& m, RegionId region = 0) {
  unsigned levels = 0;
  for (const Id id : m.regions[region].insts) {
    for (const RegionId inner : m[id].regions)
      if (inner != kNone) levels = std::max(levels, 1 + deepest(m, inner));
  }
  return levels;
}

struct Form {
  const char* name;
  Module module;
};

inline std::vector<Form> forms(const Module& traced) {
  std::vector<Form> all;
  all.push_back({"forward", forward(traced)});
  all.push_back({"normalise", normalise(traced)});
  all.push_back({"promote normalise", promote(all[1].module)});
  all.push_back({"normalise forward", normalise(all[0].module)});
  all.push_back({"forward normalise forward", forward(all[3].module)});
  all.push_back({"promote forward normalise forward", promote(all[4].module)});
  all.push_back({"forward of normal form", forward(all[2].module)});
  all.push_back({"normalise of normal form", normalise(all[5].module)});
  all.push_back({"normalise in chains of one", normalise(traced, 1)});
  all.push_back({"promote normalise without chains", promote(normalise(traced, 0))});
  all.push_back({"promote of normal form", promote(all[5].module)});
  all.push_back({"sweep", sweep(traced)});
  if (traced.functions.empty()) return all;
  all.push_back({"inline", inline_calls(traced)});
  all.push_back({"promote normalise inline", promote(normalise(all.back().module))});
  all.push_back({"inline of normal form", inline_calls(all[2].module)});
  return all;
}

/// Checks the rules of each form, and that it does what the traced form does. \return  the output
inline Words check(const Module& traced, const Words& in) {
  EXPECT_EQ(first_violation(traced), "") << print(traced);
  if (!first_violation(traced).empty()) return {};
  const Words expected = run(traced, in);
  for (const Form& form : forms(traced)) {
    const std::string violation = first_violation(form.module);
    EXPECT_EQ(violation, "") << form.name << "\n" << print(traced) << print(form.module);
    if (!violation.empty()) return expected;
    const std::string_view name = form.name;
    if (name.find("normal") != name.npos) {
      EXPECT_FALSE(has(form.module, {Op::break_, Op::continue_, Op::return_})) << form.name << print(form.module);
      EXPECT_FALSE(has_step(form.module)) << form.name << print(form.module);
    }
    if (name.starts_with("promote") || name.ends_with("normal form")) {
      EXPECT_FALSE(has(form.module, {Op::local_get, Op::local_set})) << form.name << print(form.module);
    }
    try {
      EXPECT_EQ(run(form.module, in), expected) << form.name << "\n" << print(traced) << print(form.module);
    } catch (const Error& e) {
      ADD_FAILURE() << form.name << ": " << e.what() << "\n" << print(traced) << print(form.module);
    }
  }
  return expected;
}

inline Words counting(std::uint32_t threads = kThreads) {
  Words in(threads * kPerThread);
  for (std::uint32_t i = 0; i < in.size(); ++i) in[i] = i * 2654435761u >> 20;
  return in;
}

// ---- Writing kernels by hand

/// The Builder with the words that the tests use.
struct Writer {
  explicit Writer(const char* name) : m(kernel(name)), b(m) {}

  Module m;
  Builder b;

  Id i32(std::int64_t v) { return b.constant_int(Type::i32, v); }
  Id add(Id x, Id y) { return b.pure(Op::add, Type::i32, {x, y}); }
  Id mul(Id x, Id y) { return b.pure(Op::mul, Type::i32, {x, y}); }
  Id lt(Id x, Id y) { return b.pure(Op::lt, Type::b1, {x, y}); }
  Id eq(Id x, Id y) { return b.pure(Op::eq, Type::b1, {x, y}); }
  Id get(std::uint32_t v) { return b.local_get(v); }
  void set(std::uint32_t v, Id x) { b.local_set(v, x); }
  std::uint32_t var(Id initial) {
    const std::uint32_t v = b.local(b.module()[initial].type);
    set(v, initial);
    return v;
  }
  Id tid() { return b.pure(Op::convert, Type::i32, {b.thread_id()}); }
  /// Word `slot` of the part that this thread owns.
  MemoryRef word(std::uint32_t base, Id slot) {
    return {b.arg(Type::u64, base), add(mul(tid(), i32(kPerThread)), slot), 4, 0, 4};
  }
  Id in(Id slot) { return b.load(Type::i32, 1, word(kIn, slot)); }
  void out(Id slot, Id v) { b.store(Type::i32, {&v, 1}, word(kOut, slot)); }
  void if_(Id c, const std::function<void()>& then, const std::function<void()>& other = {}) {
    b.open_if(c);
    then();
    if (other) {
      b.open_else();
      other();
    }
    b.close_if();
  }
  void while_(const std::function<Id()>& condition, const std::function<void()>& body) {
    b.open_loop();
    b.loop_body(condition());
    body();
    b.close_loop();
  }
  void range(Id n, const std::function<void(Id)>& body) {
    const std::uint32_t i = var(i32(0));
    b.open_loop();
    b.loop_body(lt(get(i), n));
    body(get(i));
    b.loop_step();
    set(i, add(get(i), i32(1)));
    b.close_loop();
  }
  void leave(Op op) { b.leave(op); }
};

/// The words in slot `slot` of all threads.
inline Words column(const Words& words, std::uint32_t slot) {
  Words all;
  for (std::size_t i = slot; i < words.size(); i += kPerThread) all.push_back(words[i]);
  return all;
}

// ---- Random programs

/// Writes structured programs that end: every loop counts to a small number in a local of its own. With functions, the
/// kernel and each function call those that were made before.
class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed), w_("random") {}

  Module run(int num_functions = 0) {
    for (int k = 0; k < num_functions; ++k) {
      Generator g(static_cast<std::uint32_t>(random_()));
      g.functions_ = functions_;
      functions_.push_back(std::make_shared<Module>(g.function()));
    }
    declare_variables();
    const int n = 3 + pick(5);
    for (int k = 0; k < n; ++k) statement(0);
    for (std::uint32_t k = 0; k < 4; ++k) w_.out(w_.i32(k), w_.get(ints_[k]));
    w_.m.functions = functions_;
    return std::move(w_.m);
  }

 private:
  /// A function with two integers and a boolean as parameters, and an integer and a boolean as results.
  Module function() {
    w_.m.function = "f";
    for (Type type : {Type::i32, Type::i32, Type::b1}) keep(w_.b.input(type));
    declare_variables();
    for (int k = pick(4); k >= 0; --k) statement(0);
    const Id out[] = {integer(), boolean()};
    w_.b.yield(out);
    return std::move(w_.m);
  }

  /// Bodies have few calls, so that they stay small when these are inlined.
  bool may_call(int depth) { return !functions_.empty() && depth < 3 && calls_ < 4 && pick(4) == 0; }

  Id call(Type type, int depth) {
    ++calls_;
    const auto number = static_cast<std::uint32_t>(pick(static_cast<int>(functions_.size())));
    const Id args[] = {integer(depth + 1), integer(depth + 1), boolean(depth + 1)};
    const Id made = w_.b.call(number, args);
    return keep(w_.b.result(made, type == Type::b1, type));
  }

  void declare_variables() {
    for (int k = 0; k < 4; ++k) ints_.push_back(w_.var(w_.i32(pick(9) - 4)));
    for (int k = 0; k < 2; ++k) bools_.push_back(w_.var(w_.b.constant(Type::b1, static_cast<std::uint64_t>(pick(2)))));
  }

  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  /// A value of this type that was computed before and can be seen here.
  Id seen(Type type) {
    for (int tries = 0; tries < 4 && !values_.empty(); ++tries) {
      const Id id = values_[static_cast<std::size_t>(pick(static_cast<int>(values_.size())))];
      if (w_.b.module()[id].type == type && w_.b.is_visible(id)) return id;
    }
    return kNone;
  }

  Id keep(Id id) {
    values_.push_back(id);
    return id;
  }

  Id integer(int depth = 0) {
    if (may_call(depth)) return call(Type::i32, depth);
    switch (pick(depth > 2 ? 4 : 9)) {
      case 0: return w_.i32(pick(7) - 3);
      case 1: return keep(w_.get(ints_[static_cast<std::size_t>(pick(static_cast<int>(ints_.size())))]));
      case 2:
        if (const Id id = seen(Type::i32); id != kNone) return id;
        return w_.tid();
      case 3: return keep(w_.in(slot(depth + 3)));
      case 4: return keep(w_.add(integer(depth + 1), integer(depth + 1)));
      case 5: return keep(w_.mul(integer(depth + 1), integer(depth + 1)));
      case 6: return keep(w_.b.pure(Op::bit_xor, Type::i32, {integer(depth + 1), integer(depth + 1)}));
      case 7:
        return keep(w_.b.pure(Op::select, Type::i32, {boolean(depth + 1), integer(depth + 1), integer(depth + 1)}));
      default: return keep(w_.b.load(Type::i32, 1, w_.word(kOut, slot(depth + 1))));
    }
  }

  Id boolean(int depth = 0) {
    if (may_call(depth)) return call(Type::b1, depth);
    switch (pick(depth > 2 ? 3 : 7)) {
      case 0: return keep(w_.get(bools_[static_cast<std::size_t>(pick(static_cast<int>(bools_.size())))]));
      case 1: return keep(w_.b.pure(Op::bit_not, Type::b1, {w_.get(bools_[0])}));
      case 2:
        if (const Id id = seen(Type::b1); id != kNone) return id;
        return keep(w_.eq(w_.b.pure(Op::bit_and, Type::i32, {w_.tid(), w_.i32(1 << pick(3))}), w_.i32(0)));
      case 3: return keep(w_.lt(integer(depth + 1), integer(depth + 1)));
      case 4: return keep(w_.eq(w_.b.pure(Op::bit_and, Type::i32, {integer(depth + 1), w_.i32(3)}), w_.i32(pick(4))));
      case 5: return keep(w_.b.pure(Op::bit_and, Type::b1, {boolean(depth + 1), boolean(depth + 1)}));
      default: {
        const Id left = boolean(depth + 1);
        const bool or_else = pick(2) == 1;
        w_.b.open_if(left);
        if (or_else) w_.b.open_else();
        const Id right = boolean(depth + 1);
        return keep(w_.b.close_short_circuit(left, right, or_else));
      }
    }
  }

  Id slot(int depth) { return w_.b.pure(Op::bit_and, Type::i32, {integer(depth), w_.i32(kPerThread - 1)}); }

  void block(int depth) {
    const int n = pick(4);
    for (int k = 0; k < n; ++k) statement(depth);
    // Exits are at the end of blocks inside other constructs, most of them under a condition.
    if (depth == 0 || pick(4) != 0) return;
    const bool returns = w_.m.function.empty();
    if (!returns && loops_ == 0) return;
    const int kind = (returns ? 0 : 1) + pick(loops_ > 0 ? (returns ? 5 : 4) : 1);
    w_.leave(kind == 0 ? Op::return_ : kind < 3 ? Op::break_ : Op::continue_);
  }

  void statement(int depth) {
    const std::size_t ints = ints_.size(), bools = bools_.size();
    switch (pick(depth > 3 ? 4 : 9)) {
      case 0:
      case 1: w_.set(ints_[static_cast<std::size_t>(pick(4))], integer()); break;
      case 2: w_.set(bools_[static_cast<std::size_t>(pick(2))], boolean()); break;
      case 3: w_.out(slot(1), integer()); break;
      case 4:
      case 5:
        w_.b.open_if(boolean());
        block(depth + 1);
        if (pick(2)) {
          w_.b.open_else();
          block(depth + 1);
        }
        w_.b.close_if();
        break;
      case 6: declare(depth); return;
      default: loop(depth); break;
    }
    // A local that was declared inside cannot be named outside.
    ints_.resize(ints);
    bools_.resize(bools);
  }

  void declare(int depth) {
    if (depth == 0 || pick(2)) {
      ints_.push_back(w_.var(integer()));
    } else {
      bools_.push_back(w_.var(boolean()));
    }
  }

  void loop(int depth) {
    const std::uint32_t counter = w_.var(w_.i32(0));
    const int kind = pick(3);
    const auto count = [&] { w_.set(counter, w_.add(w_.get(counter), w_.i32(1))); };
    w_.b.open_loop();
    if (kind == 0) count();
    // A condition may assign, branch, and read memory.
    if (pick(5) == 0) w_.set(ints_[static_cast<std::size_t>(pick(4))], integer(1));
    if (pick(5) == 0) {
      const int outer = loops_;
      loops_ = 0;
      w_.b.open_if(boolean(1));
      w_.set(bools_[0], boolean(1));
      w_.b.close_if();
      loops_ = outer;
    }
    Id go_on = w_.lt(w_.get(counter), w_.i32(1 + pick(4)));
    if (pick(3) == 0) go_on = w_.b.pure(Op::bit_and, Type::b1, {go_on, boolean(1)});
    w_.b.loop_body(go_on);
    const std::size_t ints = ints_.size(), bools = bools_.size();
    if (kind == 1) count();
    ++loops_;
    ints_.push_back(counter);
    block(depth + 1);
    --loops_;
    ints_.resize(ints);
    bools_.resize(bools);
    if (kind == 2 || pick(3) == 0) {
      w_.b.loop_step();
      if (kind == 2) count();
      if (pick(2)) w_.set(ints_[static_cast<std::size_t>(pick(4))], integer(1));
      if (pick(3) == 0) w_.out(slot(2), integer(1));
    }
    w_.b.close_loop();
    ints_.push_back(counter);
  }

  std::mt19937 random_;
  Writer w_;
  std::vector<std::uint32_t> ints_, bools_;  ///< the first four and two may be assigned everywhere
  std::vector<Id> values_;
  std::vector<std::shared_ptr<const Module>> functions_;
  int loops_ = 0, calls_ = 0;
};

}  // namespace weft::ir
