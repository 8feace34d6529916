// Runs a kernel in normal form with all threads in step, and holds every value against the shape that is claimed of it.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "../../../frontend/ir/evaluate.h"
#include "../../../frontend/passes/shapes.h"

namespace weft::ir {

/// A launch, or the part of it that is run.
struct LaneLaunch {
  std::uint32_t first = 0, count = 0;  ///< threads
  std::uint32_t row = 0;               ///< threads in a row, where vectors lie in rows
  std::vector<std::byte> args;
  std::map<std::uint64_t, std::vector<std::byte>> memory;  ///< by address

  template <class T>
  void set(std::uint32_t at, T value) {
    if (args.size() < at + sizeof value) args.resize(at + sizeof value);
    std::memcpy(args.data() + at, &value, sizeof value);
  }
};

/// The claims that were held against values, counted once for each vector at which some lane ran.
struct LaneClaims {
  std::array<std::uint64_t, 3> kinds{};  ///< by Shape::Kind
  std::uint64_t exact = 0;
  std::uint64_t without_first = 0;  ///< uniform or affine values where lane 0 did not run
  std::uint64_t parted = 0;         ///< branches and loops in which lanes of a vector did not stay together
  std::array<std::uint64_t, 3> addresses{};
};

/// The values of each thread are computed by themselves. Beside them there is the base of each vector, computed as a
/// scalar from other bases, as an emitter does it: this is what the values of the threads that run are compared with.
class LaneMachine {
 public:
  LaneMachine(const Module& module, const Shapes& shapes, LaneLaunch& launch)
      : m_(module), shapes_(shapes), launch_(launch), values_(module.insts.size()), bases_(module.insts.size()) {
    place();
    for (const KernelArray& array : m_.arrays) own_.emplace_back(launch.count * array.bytes());
    for (Id id = 0; id < m_.insts.size(); ++id)
      if (is_global(m_[id].op)) source(id);
  }

  /// The first broken claim; empty without one.
  std::string run() {
    region(0, Mask(launch_.count, 1));
    return failure_;
  }
  const LaneClaims& claims() const { return claims_; }

 private:
  using Mask = std::vector<char>;             ///< by thread: whether it runs
  using Values = std::vector<std::uint64_t>;  ///< by thread, or by vector
  using Parts = std::vector<Values>;
  using Kind = Shape::Kind;
  static constexpr std::uint64_t kGarbage = 0xabadcafe5eed1234;

  // ---- Threads and vectors

  void place() {
    const std::uint32_t lanes = shapes_.lanes;
    for (std::uint32_t t = 0; t < launch_.count; ++t) {
      const std::uint32_t number = launch_.first + t;
      const std::uint32_t unit = shapes_.rows ? launch_.row : shapes_.groups ? m_.block : 0;
      const std::uint32_t lane = (unit ? number % unit : number) % lanes;
      if (lane == 0) first_.push_back(t);
      ASSERT_FALSE(first_.empty()) << "the part of the launch begins inside a vector";
      lane_.push_back(lane);
      vector_.push_back(static_cast<std::uint32_t>(first_.size() - 1));
    }
  }

  Values garbage_by_thread() const { return Values(launch_.count, kGarbage); }
  Values garbage_by_vector() const { return Values(first_.size(), kGarbage); }

  /// By vector: its first thread that runs, or kNone.
  std::vector<std::uint32_t> first_running(const Mask& mask) const {
    std::vector<std::uint32_t> first(first_.size(), kNone);
    for (std::uint32_t t = launch_.count; t-- > 0;)
      if (mask[t]) first[vector_[t]] = t;
    return first;
  }

  static bool any(const Mask& mask) {
    for (char runs : mask)
      if (runs) return true;
    return false;
  }

  // ---- Checks

  void fail(Id id, const std::string& what) {
    if (failure_.empty()) failure_ = "instruction " + std::to_string(id) + " (" + info(m_[id].op).name + "): " + what;
  }

  static __int128 number(Type type, std::uint64_t bits) {
    const int unused = 64 - ir::bits(type);
    if (!is_signed(type)) return bits & mask(type);
    return static_cast<std::int64_t>(bits << unused) >> unused;
  }

  void check(Id id, const Shape& shape, const Values& values, const Values& base, const Mask& runs) {
    const std::vector<std::uint32_t> first = first_running(runs);
    for (std::uint32_t t : first) {
      if (t == kNone || is_global(m_[id].op)) continue;
      ++claims_.kinds[std::size_t(shape.kind)];
      claims_.exact += shapes_.exact[id];
      claims_.without_first += lane_[t] != 0 && shape.kind != Kind::varying;
    }
    if (shape.kind == Kind::varying) return;
    for (std::uint32_t t = 0; t < launch_.count; ++t) {
      if (!runs[t]) continue;
      const Type type = m_[id].type;
      const std::uint64_t offset = static_cast<std::uint64_t>(shape.step) * lane_[t];
      if (((base[vector_[t]] + offset - values[t]) & mask(type)) != 0)
        fail(id, "thread " + std::to_string(t) + " has another value than its vector's base says");
      if (shapes_.exact[id] &&
          number(type, values[t]) != number(type, base[vector_[t]]) + static_cast<__int128>(shape.step) * lane_[t])
        fail(id, "thread " + std::to_string(t) + " has wrapped");
    }
  }

  void define(Id id, Parts values, Parts bases, const Mask& runs) {
    for (std::size_t k = 0; k < values.size(); ++k) check(id, shapes_.of[id], values[k], bases[k], runs);
    values_[id] = std::move(values);
    bases_[id] = std::move(bases);
  }

  const Values& value(Id id) const { return values_[id].at(0); }
  /// The bases of a value that is not varying.
  const Values& base(Id id, Id user) {
    if (shapes_.of[id].kind == Kind::varying) fail(user, "a base is computed from a varying value");
    return bases_[id].at(0);
  }

  // ---- Instructions

  void source(Id id) {
    const Inst& inst = m_[id];
    Values values = garbage_by_thread();
    for (std::uint32_t t = 0; t < launch_.count; ++t) {
      const std::uint32_t number = launch_.first + t, local = number % m_.block;
      switch (inst.op) {
        case Op::constant: values[t] = inst.imm; break;
        case Op::arg:
          values[t] = 0;
          std::memcpy(&values[t], launch_.args.data() + inst.imm, std::size_t(bytes(inst.type)));
          break;
        case Op::thread_id: values[t] = number; break;
        case Op::local_id: values[t] = local; break;
        case Op::workgroup_id: values[t] = number / m_.block; break;
        case Op::subgroup_size: values[t] = shapes_.lanes; break;
        case Op::subgroup_lane: values[t] = local % shapes_.lanes; break;
        case Op::subgroup_id: values[t] = local / shapes_.lanes; break;
        default: values[t] = 0;
      }
    }
    Values bases;
    for (std::uint32_t t : first_) bases.push_back(values[t]);
    define(id, {values}, {bases}, Mask(launch_.count, 1));
  }

  /// The values that the region yields.
  std::vector<Id> region(RegionId id, const Mask& mask) {
    if (id == kNone || !any(mask) || !failure_.empty()) return {};
    for (Id inst : m_.regions[id].insts) {
      if (m_[inst].op == Op::yield) return {m_.args(inst).begin(), m_.args(inst).end()};
      instruction(inst, mask);
      if (!failure_.empty()) return {};
    }
    return {};
  }

  void instruction(Id id, const Mask& mask) {
    const Inst& inst = m_[id];
    if (is_memory(inst.op)) return memory(id, mask);
    switch (inst.op) {
      case Op::barrier:
      case Op::subgroup_barrier:
      case Op::fence:
      case Op::param: return;
      case Op::if_: return branch(id, mask);
      case Op::loop: return loop(id, mask);
      case Op::result: return result(id, mask);
      case Op::subgroup_reduce:
      case Op::subgroup_inclusive:
      case Op::subgroup_exclusive:
      case Op::subgroup_broadcast:
      case Op::subgroup_shuffle:
      case Op::subgroup_ballot: return collective(id, mask);
      case Op::running_lanes: return running_lanes(id, mask);
      default: return pure(id, mask);
    }
  }

  std::uint64_t evaluated(const Inst& inst, std::span<const std::uint64_t> args) const {
    return evaluate(inst.op, m_[m_.operands[inst.first_arg + (inst.op == Op::select)]].type, inst.type, args);
  }

  void pure(Id id, const Mask& mask) {
    const Inst& inst = m_[id];
    Values values = garbage_by_thread(), bases = garbage_by_vector(), args(inst.num_args);
    // Threads that do not run have whatever was there: nothing may depend on it.
    for (std::uint32_t t = 0; t < launch_.count; ++t) {
      for (std::uint32_t k = 0; k < inst.num_args; ++k) {
        const Id from = m_.arg(id, int(k));
        args[k] = value(from)[t] & ir::mask(m_[from].type);
      }
      values[t] = evaluated(inst, args);
    }
    const bool placed = std::ranges::count(shapes_.row, id) || std::ranges::count(shapes_.column, id);
    for (std::size_t v = 0; v < bases.size(); ++v) {
      if (placed) bases[v] = values[first_[v]];
      if (placed || shapes_.of[id].kind == Kind::varying) continue;
      for (std::uint32_t k = 0; k < inst.num_args; ++k) {
        const Id from = m_.arg(id, int(k));
        args[k] = base(from, id)[v] & ir::mask(m_[from].type);
      }
      bases[v] = evaluated(inst, args);
    }
    define(id, {values}, {bases}, mask);
  }

  void result(Id id, const Mask& mask) {
    const Id from = m_.arg(id, 0);
    const std::size_t k = m_[id].imm;
    define(id, {values_[from].at(k)}, {bases_[from].at(k)}, mask);
  }

  void running_lanes(Id id, const Mask& mask) {
    Values values = garbage_by_thread(), bases = garbage_by_vector();
    std::vector<std::uint64_t> running(first_.size(), 0);
    for (std::uint32_t t = 0; t < launch_.count; ++t) running[vector_[t]] += mask[t];
    for (std::uint32_t t = 0; t < launch_.count; ++t) values[t] = bases[vector_[t]] = running[vector_[t]];
    define(id, {values}, {bases}, mask);
  }

  void collective(Id id, const Mask& mask) {
    const Inst& inst = m_[id];
    Values values = garbage_by_thread(), bases = garbage_by_vector();
    for (std::size_t v = 0; v < first_.size(); ++v) {
      if (!mask[first_[v]]) continue;
      Values given;
      for (std::uint32_t t = first_[v]; t < launch_.count && vector_[t] == v; ++t)
        given.push_back(value(m_.arg(id, 0))[t]);
      for (std::uint32_t t = first_[v]; t < first_[v] + given.size(); ++t) {
        if (!mask[t]) return fail(id, "not all lanes come to an operation of subgroups");
        values[t] = collected(id, given, t);
      }
      bases[v] = values[first_[v]];
    }
    (void)inst;
    define(id, {values}, {bases}, mask);
  }

  std::uint64_t collected(Id id, const Values& given, std::uint32_t t) const {
    const Inst& inst = m_[id];
    if (inst.num_args > 1) return given[value(m_.arg(id, 1))[t] % given.size()];
    if (inst.op == Op::subgroup_ballot) {
      std::uint64_t word = 0;
      for (std::size_t k = inst.imm * 32; k < std::min<std::size_t>(given.size(), inst.imm * 32 + 32); ++k)
        word |= given[k] << (k % 32);
      return word;
    }
    std::size_t count = given.size();
    if (inst.op == Op::subgroup_inclusive) count = lane_[t] + 1;
    if (inst.op == Op::subgroup_exclusive) count = lane_[t];
    std::uint64_t all = 0;  // the neutral value of additions, which the tests use
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint64_t both[] = {all, given[k]};
      all = k ? evaluate(Op(inst.imm), inst.type, inst.type, both) : given[k];
    }
    return all;
  }

  // ---- Memory

  std::int64_t index(Id memory, std::uint64_t bits) const {
    return static_cast<std::int64_t>(number(m_[m_.arg(memory, 1)].type, bits));
  }
  std::uint64_t address(Id memory, std::uint64_t base, std::uint64_t index_bits) const {
    return base + static_cast<std::uint64_t>(index(memory, index_bits)) * m_[memory].stride + m_[memory].offset;
  }

  /// The bytes at an address of device memory or in a thread's view of an array of the kernel; null if there are none.
  std::byte* find(Id memory, std::uint64_t at, std::uint32_t thread) {
    const std::size_t size = std::size_t(m_[memory].width) * std::size_t(bytes(m_[memory].type));
    if (const KernelArray* array = m_.kernel_array_of(m_.arg(memory, 0))) {
      if (at + size > array->bytes()) return nullptr;
      const std::uint64_t number = array->is_private ? thread : (launch_.first + thread) / m_.block;
      const std::uint64_t first = array->is_private ? 0 : launch_.first / m_.block;
      return own_[m_[m_.arg(memory, 0)].imm].data() + (number - first) * array->bytes() + at;
    }
    const auto it = launch_.memory.upper_bound(at);
    if (it == launch_.memory.begin()) return nullptr;
    auto& [start, content] = *std::prev(it);
    return at - start + size <= content.size() ? content.data() + (at - start) : nullptr;
  }

  void memory(Id id, const Mask& mask) {
    const Inst& inst = m_[id];
    Parts values(inst.width, garbage_by_thread()), bases(inst.width, garbage_by_vector());
    check_addresses(id, mask);
    const auto size = static_cast<std::size_t>(bytes(inst.type));
    for (std::uint32_t t = 0; t < launch_.count && failure_.empty(); ++t) {
      if (!mask[t]) continue;
      std::byte* at = find(id, address(id, value(m_.arg(id, 0))[t], value(m_.arg(id, 1))[t]), t);
      if (!at) return fail(id, "thread " + std::to_string(t) + " leaves the memory");
      for (std::size_t k = 0; k < inst.width; ++k) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, at + k * size, size);
        values[k][t] = bits;
        if (inst.op == Op::store) bits = value(m_.arg(id, int(2 + k)))[t];
        if (is_atomic(inst.op)) {
          const std::uint64_t both[] = {bits, value(m_.arg(id, 2))[t]};
          bits = evaluate(combination(inst.op), inst.type, inst.type, both);
        }
        std::memcpy(at + k * size, &bits, size);
      }
    }
    if (inst.op == Op::store) return;
    const std::vector<std::uint32_t> first = first_running(mask);
    for (std::size_t v = 0; v < first.size() && shapes_.of[id].is_uniform(); ++v) {
      if (first[v] == kNone) continue;
      const std::byte* at = find(id, address(id, base(m_.arg(id, 0), id)[v], base(m_.arg(id, 1), id)[v]), first[v]);
      for (std::size_t k = 0; k < inst.width; ++k) {
        bases[k][v] = 0;
        if (!at) return fail(id, "the base leaves the memory");
        if (is_atomic(inst.op))  // of a workgroup's only thread: what it has found is the base
          bases[k][v] = values[k][first[v]];
        else
          std::memcpy(&bases[k][v], at + k * size, size);
      }
    }
    define(id, values, bases, mask);
  }

  void check_addresses(Id id, const Mask& mask) {
    const Shape shape = address_shape(m_, shapes_, id);
    const Id base_id = m_.arg(id, 0), index_id = m_.arg(id, 1);
    const bool from_base = shape.kind != Kind::varying && (shapes_.of[index_id].is_uniform() ||
                                                           shapes_.exact[index_id] || bits(m_[index_id].type) == 64);
    const std::vector<std::uint32_t> first = first_running(mask);
    for (std::uint32_t t = 0; t < launch_.count; ++t) {
      const std::uint32_t f = first[vector_[t]];
      if (!mask[t]) continue;
      if (t == f) ++claims_.addresses[std::size_t(shape.kind)];
      if (shape.kind == Kind::varying) continue;
      const std::uint64_t at = address(id, value(base_id)[t], value(index_id)[t]);
      const std::uint64_t at_first = address(id, value(base_id)[f], value(index_id)[f]);
      if (at != at_first + static_cast<std::uint64_t>(shape.step) * (lane_[t] - lane_[f]))
        fail(id, "the address of thread " + std::to_string(t) + " is not where its vector's first says");
      if (!from_base) continue;
      const std::uint64_t at_base = address(id, base(base_id, id)[vector_[t]], base(index_id, id)[vector_[t]]);
      if (at != at_base + static_cast<std::uint64_t>(shape.step) * lane_[t])
        fail(id, "the address of thread " + std::to_string(t) + " is not where the base says");
    }
  }

  // ---- Control flow

  /// Splits a mask by a condition; checks that lanes stay together if they are claimed to.
  Mask part(Id control, Id condition, const Mask& mask, bool wanted) {
    Mask taken = mask;
    bool parted = false;
    const std::vector<std::uint32_t> first = first_running(mask);
    for (std::uint32_t t = 0; t < launch_.count; ++t) {
      if (!mask[t]) continue;
      taken[t] = (value(condition)[t] != 0) == wanted;
      parted = parted || value(condition)[t] != value(condition)[first[vector_[t]]];
    }
    claims_.parted += parted;
    if (parted && !shapes_.divergent[control]) fail(control, "lanes part");
    if (shapes_.divergent[control] == shapes_.of[condition].is_uniform())
      fail(control, "it is divergent against its condition's shape");
    return taken;
  }

  void branch(Id id, const Mask& mask) {
    const Inst& inst = m_[id];
    const Id condition = m_.arg(id, 0);
    Parts values, bases;
    for (int side = 0; side < 2; ++side) {
      const Mask taken = part(id, condition, mask, side == 0);
      const std::vector<Id> yielded = region(inst.regions[std::size_t(side)], taken);
      for (std::size_t k = 0; k < yielded.size(); ++k) {
        if (values.size() <= k) values.push_back(garbage_by_thread());
        if (bases.size() <= k) bases.push_back(garbage_by_vector());
        for (std::uint32_t t = 0; t < launch_.count; ++t) {
          if (!taken[t]) continue;
          values[k][t] = value(yielded[k])[t];
          // A scalar branch: the vector takes the base of the side that it runs.
          if (!shapes_.divergent[id]) bases[k][vector_[t]] = bases_[yielded[k]].at(0)[vector_[t]];
        }
      }
    }
    values_[id] = std::move(values);
    bases_[id] = std::move(bases);
  }

  void loop(Id id, const Mask& mask) {
    const Inst& inst = m_[id];
    const std::vector<Id>& head = m_.regions[inst.regions[0]].insts;
    Parts values, bases;
    for (Id initial : m_.args(id)) {
      values.push_back(value(initial));
      bases.push_back(bases_[initial].at(0));
    }
    Mask live = mask;
    while (any(live) && failure_.empty()) {
      for (std::size_t k = 0; k < values.size(); ++k) define(head[k], {values[k]}, {bases[k]}, live);
      const std::vector<Id> condition = region(inst.regions[0], live);
      if (!failure_.empty()) return;
      live = part(id, condition.at(0), live, true);
      const std::vector<Id> next = region(inst.regions[1], live);
      for (std::size_t k = 0; k < next.size(); ++k) {
        for (std::uint32_t t = 0; t < launch_.count; ++t) {
          if (!live[t]) continue;
          values[k][t] = value(next[k])[t];
          bases[k][vector_[t]] = bases_[next[k]].at(0)[vector_[t]];
        }
      }
    }
    values_[id] = std::move(values);
    bases_[id] = std::move(bases);
  }

  const Module& m_;
  const Shapes& shapes_;
  LaneLaunch& launch_;
  std::vector<Parts> values_, bases_;         ///< by instruction and part
  std::vector<std::vector<std::byte>> own_;   ///< by array of the kernel
  std::vector<std::uint32_t> first_;          ///< by vector: the thread in lane 0
  std::vector<std::uint32_t> lane_, vector_;  ///< by thread
  std::string failure_;
  LaneClaims claims_;
};

}  // namespace weft::ir
