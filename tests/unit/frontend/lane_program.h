// Random kernels whose threads go together: what they compute depends on numbers of threads, workgroups and subgroups.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

#include "../../../frontend/ir/builder.h"
#include "../../../frontend/passes/shapes.h"
#include "lane_machine.h"

namespace weft::ir {

// The argument block: threads, a word, two arrays, a 64-bit integer, then what tid() needs.
inline constexpr std::uint32_t kWord = 4, kTable = 8, kOwn = 24, kLong = 40, kTid = 48;
inline constexpr std::uint32_t kTableWords = 256, kOwnWords = 4;
inline constexpr std::uint64_t kTableAt = 1ull << 40, kOwnAt = 1ull << 41;

/// Writes kernels in normal form: integers of all types, tid<N>(), branches and loops with results, arrays of the
/// launch, of a workgroup and of a thread. No two threads touch the same element, unless one of them only reads it.
class LaneProgram {
 public:
  LaneProgram(std::uint32_t seed, std::uint32_t lanes) : random_(seed), lanes_(lanes), b_(m_) {
    m_.name = "lanes";
    m_.loc = Loc::here();
    m_.params = {array("table", kTable), array("own", kOwn)};
    groups_ = pick(3) == 0;
    m_.block = lanes * (groups_ ? 1u + std::uint32_t(pick(3)) : 4u);
    if (groups_ && pick(4) == 0) m_.block = 1;
    m_.tid_rank = 1 + std::uint32_t(pick(4));
    m_.wide = pick(4) == 0;
    m_.tid_offset = kTid;
    m_.args_bytes = kTid + (m_.wide ? 8 : 0) + 12 * (m_.tid_rank - 1);
    writes_table_ = pick(4) == 0;
  }

  Module run() {
    sources();
    for (int k = 4 + pick(12); k > 0; --k) statement(0);
    return std::move(m_);
  }

 private:
  static Param array(const char* name, std::uint32_t offset) {
    Param p;
    p.name = name;
    p.kind = Param::Kind::array;
    p.ndim = 1;
    p.offset = offset;
    p.bytes = 12;
    p.element_bytes = p.element_align = 4;
    return p;
  }

  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Type integer_type() {
    constexpr Type kTypes[] = {Type::i32, Type::u32, Type::i32, Type::u32, Type::i64,
                               Type::u64, Type::i16, Type::u16, Type::i8,  Type::u8};
    return kTypes[pick(10)];
  }

  void keep(Id id) { pool_.push_back(id); }

  void sources() {
    for (int k = 0; k < 2; ++k) keep(b_.thread_id());
    keep(b_.arg(Type::u32, kWord));
    keep(b_.arg(Type::i64, kLong));
    if (groups_) {
      for (Op op : {Op::local_id, Op::local_id, Op::workgroup_id, Op::subgroup_lane, Op::subgroup_id})
        keep(b_.source(op, Type::u32));
      shared_ = own_array(m_.block, false);
    }
    private_ = own_array(8, true);
    const Id zero = b_.constant(Type::i32, 0);
    for (int k = 0; k < 8; ++k)
      b_.store(Type::i32, {&zero, 1}, {private_, b_.constant(Type::i32, std::uint64_t(k)), 4, 0, 4});
    coordinates();
  }

  Id own_array(std::uint32_t count, bool is_private) {
    m_.arrays.push_back({Type::i32, count, false, Loc::here(), is_private});
    return b_.source(Op::kernel_array, Type::u64, m_.arrays.size() - 1);
  }

  /// See tracing::thread_coordinate().
  void coordinates() {
    Id rest = b_.thread_id();
    for (int d = int(m_.tid_rank) - 1; d > 0; --d) {
      const std::uint32_t at = kTid + (m_.wide ? 8 : 0) + 12 * std::uint32_t(d - 1);
      const Id doubled = b_.pure(Op::shl, Type::u32, {rest, b_.constant(Type::u32, 1)});
      const Id high = b_.pure(Op::mul_hi, Type::u32, {doubled, b_.arg(Type::u32, at + 4)});
      const Id quotient = b_.pure(Op::shr, Type::u32, {high, b_.arg(Type::u32, at + 8)});
      const Id whole = b_.pure(Op::mul, Type::u32, {quotient, b_.arg(Type::u32, at)});
      const Id coordinate = b_.pure(Op::sub, Type::u32, {rest, whole});
      keep(b_.pure(Op::bitcast, Type::i32, {coordinate}));
      keep(pick(2) ? coordinate : b_.pure(Op::convert, Type::i64, {coordinate}));
      rest = quotient;
    }
    if (m_.tid_rank > 1) keep(rest);
    if (m_.wide) keep(b_.pure(Op::add, Type::i64, {b_.pure(Op::convert, Type::i64, {rest}), b_.arg(Type::i64, kTid)}));
  }

  Id constant(Type type) {
    if (is_bool(type)) return b_.constant(type, std::uint64_t(pick(2)));
    if (is_float(type)) return b_.constant_float(type, pick(9) - 4);
    switch (pick(6)) {
      case 0: return b_.constant(type, random_() * 0x100000001ull);
      case 1: return b_.constant_int(type, std::int64_t{1} << pick(bits(type)));
      case 2: return b_.constant_int(type, (std::int64_t{1} << pick(std::min(bits(type), 62))) - 1);
      default: return b_.constant_int(type, pick(9) - 4);
    }
  }

  /// A value of this type that is visible here, or one that is converted to it.
  Id any(Type type, int depth = 0) {
    if (pick(5) == 0) return constant(type);
    Id other = kNone;
    for (int tries = 0; tries < 12; ++tries) {
      const Id id = pool_[std::size_t(pick(int(pool_.size())))];
      if (!b_.is_visible(id)) continue;
      if (m_[id].type == type) return id;
      if (is_numeric(m_[id].type) || is_bool(m_[id].type)) other = id;
    }
    if (is_bool(type)) return depth < 3 ? condition(depth + 1) : constant(type);
    return other == kNone ? constant(type) : b_.pure(Op::convert, type, {other});
  }

  Id condition(int depth = 0) {
    const Type type = integer_type();
    if (pick(6) == 0)
      return b_.pure(pick(2) ? Op::bit_and : Op::bit_or, Type::b1, {any(Type::b1, 3), any(Type::b1, 3)});
    constexpr Op kOps[] = {Op::eq, Op::ne, Op::lt, Op::le};
    return b_.pure(kOps[pick(4)], Type::b1, {any(type, depth), any(type, depth)});
  }

  Id arithmetic() {
    const Type type = integer_type();
    constexpr Op kBinary[] = {Op::add, Op::sub, Op::add, Op::sub,     Op::mul,    Op::mul,     Op::div,
                              Op::rem, Op::min, Op::max, Op::bit_and, Op::bit_or, Op::bit_xor, Op::shl,
                              Op::shr, Op::shr, Op::div, Op::bit_and, Op::rem};
    switch (pick(10)) {
      case 0: return b_.pure(Op::convert, integer_type(), {any(type)});
      case 1: return b_.pure(Op::bitcast, pick(2) ? to_signed(type) : to_unsigned(type), {any(type)});
      case 2: return b_.pure(Op::select, type, {any(Type::b1), any(type), any(type)});
      case 3: {
        constexpr Op kUnary[] = {Op::neg, Op::bit_not, Op::abs, Op::popcount};
        return b_.pure(kUnary[pick(4)], type, {any(type)});
      }
      case 4: return condition();
      case 5: {
        constexpr Op kReal[] = {Op::add, Op::mul, Op::min, Op::sub};
        return b_.pure(kReal[pick(4)], Type::f32, {any(Type::f32), any(Type::f32)});
      }
      default: {
        // Many rules are about constants.
        const Id right = pick(2) ? constant(type) : any(type);
        return b_.pure(kBinary[pick(19)], type, {any(type), right});
      }
    }
  }

  /// A constant that an affine value might be combined with: near a power of two, often one near the lanes.
  Id near(Type type) {
    const int digits = std::min(bits(type), pick(3) ? int(std::bit_width(lanes_)) + 3 : 64);
    const std::uint64_t power = std::uint64_t{1} << pick(digits);
    switch (pick(4)) {
      case 0: return b_.constant(type, power - 1);
      case 1: return b_.constant(type, power * (1 + std::uint64_t(pick(3))));
      case 2: return b_.constant(type, ~power + 1);
      default: return b_.constant(type, power);
    }
  }

  /// Arithmetic of a number of the thread and constants, most of which keeps it affine or makes it uniform.
  Id chain() {
    Id value = any(Type::u32);
    for (int tries = 0; tries < 20 && (info(m_[value].op).spread != Spread::number && m_[value].op != Op::sub); ++tries)
      value = any(Type::u32);
    Id before = value;
    for (int k = 1 + pick(7); k > 0; --k) {
      const Type type = m_[value].type;
      const Id last = value;
      constexpr Op kOps[] = {Op::add, Op::add, Op::sub, Op::mul, Op::mul,
                             Op::shl, Op::shr, Op::div, Op::rem, Op::bit_and};
      constexpr Op kPairs[] = {Op::min, Op::max, Op::add, Op::sub};
      switch (pick(9)) {
        case 0: value = b_.pure(Op::convert, integer_type(), {value}); break;
        case 1: {
          constexpr Op kUnary[] = {Op::neg, Op::bit_not, Op::abs};
          value = b_.pure(kUnary[pick(3)], type, {value});
          break;
        }
        case 2:
          if (m_[before].type == type) value = b_.pure(kPairs[pick(4)], type, {value, before});
          break;
        case 3:
          if (m_[before].type == type) keep(b_.pure(pick(2) ? Op::eq : Op::lt, Type::b1, {value, before}));
          break;
        default: value = b_.pure(kOps[pick(10)], type, {value, near(type)});
      }
      if (pick(2)) before = last;
      if (pick(2)) keep(value);
    }
    return value;
  }

  /// Loads the elements that are there.
  void guarded_load() {
    const Id index = pick(2) ? chain() : any(integer_type());
    const Type type = m_[index].type;
    const std::int64_t count = type == Type::i8 ? 127 : kTableWords - 1;
    Id inside = b_.pure(Op::le, Type::b1, {index, b_.constant_int(type, count)});
    if (is_signed(type))
      inside = b_.pure(Op::bit_and, Type::b1, {b_.pure(Op::le, Type::b1, {b_.constant_int(type, 0), index}), inside});
    b_.open_if(inside);
    Id out = b_.load(Type::u32, 1, {b_.arg(Type::u64, kTable), index, 4, 0, 4});
    b_.yield({&out, 1});
    b_.open_else();
    out = b_.constant(Type::u32, 7);
    b_.yield({&out, 1});
    keep(b_.result(b_.close_if(), 0, Type::u32));
  }

  /// The value as an index below `count`, a power of two.
  Id below(Id value, std::uint32_t count) {
    const Type type = m_[value].type;
    return b_.pure(Op::bit_and, type, {value, b_.constant_int(type, std::int64_t(count) - 1)});
  }
  Id index(std::uint32_t count) {
    Type type = integer_type();
    if (type == Type::i8 && count > 128) type = Type::u8;
    return below(any(type), count);
  }

  MemoryRef own(Id word) {
    const Type wide = m_[word].type;
    const Id first =
        b_.pure(Op::mul, wide, {b_.pure(Op::convert, wide, {b_.thread_id()}), b_.constant(wide, kOwnWords)});
    return {b_.arg(Type::u64, kOwn), b_.pure(Op::add, wide, {first, word}), 4, 0, 4};
  }

  Id load() {
    switch (pick(4)) {
      case 0: return b_.load(Type::i32, 1, {private_, index(8), 4, 0, 4});
      case 1: return b_.load(Type::i32, 1, own(below(any(Type::i64), kOwnWords)));
      default: {
        const int width = 1 << pick(2);
        const Id made = b_.load(Type::u32, width, {b_.arg(Type::u64, kTable), index(kTableWords), 4, 0, 4});
        return width == 1 ? made : b_.result(made, std::uint32_t(pick(width)), Type::u32);
      }
    }
  }

  void store() {
    const Id value = any(Type::i32);
    if (pick(2)) return b_.store(Type::i32, {&value, 1}, {private_, index(8), 4, 0, 4});
    b_.store(Type::i32, {&value, 1}, own(below(any(Type::i64), kOwnWords)));
    if (writes_table_)
      keep(b_.atomic(Op::atomic_add, Type::u32, {any(Type::u32)},
                     {b_.arg(Type::u64, kTable), index(kTableWords), 4, 0, 4}));
  }

  void block(int depth) {
    for (int k = pick(4); k > 0; --k) statement(depth);
  }

  void statement(int depth) {
    switch (pick(depth > 2 ? 7 : 10)) {
      case 0: keep(load()); break;
      case 1: store(); break;
      case 2:
        if (groups_ && depth == 0) together();
        break;
      case 3: guarded_load(); break;
      case 4: keep(chain()); break;
      case 5:
      case 6: keep(arithmetic()); break;
      case 7: loop(depth); break;
      default: branch(depth);
    }
  }

  /// Operations that all threads of a workgroup reach.
  void together() {
    const Id value = any(Type::i32), lane = any(Type::u32);
    const auto subgroup = [&](Op op, Type type, std::initializer_list<Id> args, std::uint64_t imm = 0) {
      keep(b_.subgroup(op, type, {args.begin(), args.size()}, imm));
    };
    switch (m_.block == 1 ? 6 : pick(7)) {  // a workgroup of one thread is no subgroup
      case 0: return subgroup(Op::subgroup_reduce, Type::i32, {value}, std::uint64_t(Op::add));
      case 1: return subgroup(Op::subgroup_inclusive, Type::i32, {value}, std::uint64_t(Op::add));
      case 2: return subgroup(Op::subgroup_exclusive, Type::i32, {value}, std::uint64_t(Op::add));
      case 3: return subgroup(Op::subgroup_shuffle, Type::i32, {value, lane});
      case 4: return subgroup(Op::subgroup_ballot, Type::u32, {any(Type::b1)}, 0);
      case 5: return subgroup(Op::subgroup_broadcast, Type::i32, {value, constant(Type::u32)});
      default: {
        b_.barrier();
        b_.store(Type::i32, {&value, 1}, {shared_, b_.source(Op::local_id, Type::u32), 4, 0, 4});
        b_.barrier();
        keep(b_.load(Type::i32, 1, {shared_, index(std::bit_floor(m_.block)), 4, 0, 4}));
        keep(b_.load(Type::i32, 1, {shared_, index(std::bit_floor(m_.block)), 4, 0, 4}));
      }
    }
  }

  std::vector<Type> types() {
    std::vector<Type> all;
    for (int k = pick(4); k > 0; --k) all.push_back(pick(5) == 0 ? Type::b1 : integer_type());
    return all;
  }
  std::vector<Id> values(const std::vector<Type>& types) {
    std::vector<Id> all;
    for (Type type : types) all.push_back(any(type));
    return all;
  }

  void branch(int depth) {
    const std::vector<Type> results = types();
    const std::size_t seen = pool_.size();
    b_.open_if(any(Type::b1));
    for (int side = 0; side < 2; ++side) {
      if (side) b_.open_else();
      block(depth + 1);
      const std::vector<Id> out = values(results);
      if (!out.empty()) b_.yield(out);
      pool_.resize(seen);
    }
    const Id made = b_.close_if();
    for (std::uint32_t k = 0; k < results.size(); ++k) keep(b_.result(made, k, results[k]));
  }

  /// A loop that ends by a counter, perhaps earlier.
  void loop(int depth) {
    std::vector<Type> carried = types();
    std::vector<Id> initial = values(carried);
    carried.push_back(Type::i32);
    initial.push_back(b_.constant_int(Type::i32, 0));
    const std::size_t seen = pool_.size();
    const Id bound = pick(2) ? constant(Type::i32) : any(Type::i32);
    const Id few = below(bound, 4);
    b_.open_loop(initial);
    std::vector<Id> params;
    for (std::uint32_t k = 0; k < carried.size(); ++k) params.push_back(b_.loop_param(k));
    for (Id param : params) keep(param);
    for (int k = pick(3); k > 0; --k) keep(pick(4) ? arithmetic() : load());
    Id go_on = b_.pure(Op::lt, Type::b1, {params.back(), few});
    if (pick(3) == 0) go_on = b_.pure(Op::bit_and, Type::b1, {go_on, any(Type::b1)});
    b_.loop_body(go_on);
    block(depth + 1);
    std::vector<Id> next;
    for (std::size_t k = 0; k + 1 < carried.size(); ++k) {
      // Counters of all kinds are as likely as other values.
      const bool counts = is_int(carried[k]) && pick(2);
      next.push_back(counts ? b_.pure(Op::add, carried[k], {params[k], constant(carried[k])}) : any(carried[k]));
    }
    next.push_back(b_.pure(Op::add, Type::i32, {params.back(), b_.constant_int(Type::i32, 1)}));
    b_.yield(next);
    const Id made = b_.close_loop();
    pool_.resize(seen);
    for (std::uint32_t k = 0; k < carried.size(); ++k) keep(b_.result(made, k, carried[k]));
  }

  std::mt19937 random_;
  std::uint32_t lanes_;
  Module m_;
  Builder b_;
  std::vector<Id> pool_;
  Id shared_ = kNone, private_ = kNone;
  bool groups_ = false, writes_table_ = false;
};

/// A launch of the kernel, or, if it may be that, its end where it has nearly 2^31 threads.
inline LaneLaunch launch_of(const Module& m, const Shapes& shapes, std::mt19937& random, bool may_end_high = true) {
  const auto pick = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  LaneLaunch launch;
  launch.args.resize(m.args_bytes);
  const bool ends_high = pick(3) == 0 && may_end_high;
  const std::uint32_t last = 1 + pick(3 * shapes.lanes);
  const std::uint32_t unit = shapes.rows ? last : shapes.groups ? m.block : shapes.lanes;
  const std::uint32_t units = 1 + pick(3), most = ((1u << 31) - 1) / unit;
  launch.first = ends_high ? (most - units) * unit : 0;
  launch.count = units * unit;
  if (!shapes.rows && !shapes.groups) launch.count -= pick(shapes.lanes);
  launch.row = last;
  launch.set(0, launch.first + launch.count);
  launch.set(kWord, pick(2) ? pick(9) : std::uint32_t(random()));
  launch.set(kTable, kTableAt);
  launch.set(kOwn, kOwnAt);
  launch.set(kLong, std::int64_t(random()) - (1ll << 31));
  if (m.wide) launch.set(kTid, std::int64_t(pick(1000)));
  for (std::uint32_t d = 1; d < m.tid_rank; ++d) {
    const std::uint32_t extent = d + 1 == m.tid_rank ? last : 1 + pick(5);
    const auto shift = std::uint32_t(std::bit_width(extent - 1));
    const std::uint32_t at = kTid + (m.wide ? 8 : 0) + 12 * (d - 1);
    launch.set(at, extent);
    launch.set(at + 4, std::uint32_t(((1ull << (31 + shift)) + extent - 1) / extent));
    launch.set(at + 8, shift);
  }
  std::vector<std::byte>& table = launch.memory[kTableAt];
  for (std::uint32_t k = 0; k < (kTableWords + 4) * 4; ++k) table.push_back(std::byte(random() & (k % 4 ? 0u : 15u)));
  launch.memory[kOwnAt + std::uint64_t{launch.first} * kOwnWords * 4].resize(launch.count * kOwnWords * 4);
  return launch;
}

}  // namespace weft::ir
