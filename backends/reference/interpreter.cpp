// The interpreter's loop, and the checks of memory accesses with their messages.
#include "interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "../../frontend/support/error.h"
#include "atomic_word.h"

namespace weft::backend {

namespace {

using Code = Step::Code;

/// Reads a scalar from the argument block or from device memory; the bytes beyond the scalar are zero.
std::uint64_t read_scalar(const void* from, int bytes) {
  switch (bytes) {
    case 1: {
      std::uint8_t value;
      std::memcpy(&value, from, 1);
      return value;
    }
    case 2: {
      std::uint16_t value;
      std::memcpy(&value, from, 2);
      return value;
    }
    case 4: {
      std::uint32_t value;
      std::memcpy(&value, from, 4);
      return value;
    }
    default: {
      std::uint64_t value;
      std::memcpy(&value, from, 8);
      return value;
    }
  }
}

void write_scalar(void* to, int bytes, std::uint64_t bits) {
  switch (bytes) {
    case 1: {
      const auto value = static_cast<std::uint8_t>(bits);
      std::memcpy(to, &value, 1);
      return;
    }
    case 2: {
      const auto value = static_cast<std::uint16_t>(bits);
      std::memcpy(to, &value, 2);
      return;
    }
    case 4: {
      const auto value = static_cast<std::uint32_t>(bits);
      std::memcpy(to, &value, 4);
      return;
    }
    default: std::memcpy(to, &bits, 8); return;
  }
}

/// Is atomic against other streams too, which run on other host threads. Returns the value before.
template <class Word>
std::uint64_t exchange(std::uint64_t address, const MemoryAccess& access, const std::uint64_t* values) {
  const AtomicWord<Word> word(*reinterpret_cast<Word*>(address));
  Word before = word.load(std::memory_order_relaxed);
  const std::uint64_t given = values[access.values[0]];
  for (;;) {
    if (access.compares && before != static_cast<Word>(given)) return before;
    const std::uint64_t after = access.compares  ? values[access.values[2]]
                                : access.combine ? access.combine(before, given, 0)
                                                 : given;
    if (word.compare_exchange_weak(before, static_cast<Word>(after), std::memory_order_relaxed)) return before;
  }
}

std::uint64_t exchange(std::uint64_t address, const MemoryAccess& access, const std::uint64_t* values) {
  switch (access.scalar_bytes) {
    case 1: return exchange<std::uint8_t>(address, access, values);
    case 2: return exchange<std::uint16_t>(address, access, values);
    case 4: return exchange<std::uint32_t>(address, access, values);
    default: return exchange<std::uint64_t>(address, access, values);
  }
}

class Interpreter {
 public:
  Interpreter(const Plan& plan, const HostMemory& memory, Scratch& scratch, std::uint64_t shared)
      : plan_(plan),
        memory_(memory),
        block_(plan.module().block),
        values_(scratch.values.data()),
        extents_(scratch.extents.data()),
        shared_(shared),
        written_(scratch.written.data()),
        first_values_(scratch.values.data()),
        places_(scratch.places.data()) {}

  void run_thread(std::uint32_t thread) {
    begin(thread, 0);
    run(plan_.steps.data());
  }

  /// Runs the threads of a workgroup, in turns.
  void run_group(std::uint32_t group) {
    std::fill_n(written_, plan_.shared_bytes, std::uint8_t{0});
    for (std::uint32_t t = 0; t < block_; ++t) {
      enter(t);
      begin(group * block_ + t, t);
      places_[t] = plan_.steps.data();
    }
    for (;;) {
      for (std::uint32_t first = 0; first < block_; first += plan_.subgroup_size)
        run_subgroup(first, std::min(plan_.subgroup_size, block_ - first));
      if (together(0, block_)->code == Code::end) return;
      for (std::uint32_t t = 0; t < block_; ++t) ++places_[t];
    }
  }

 private:
  void enter(std::uint32_t t) { values_ = first_values_ + std::size_t{t} * plan_.initial.size(); }

  /// \param t  the thread's number among those that run in turns
  void begin(std::uint32_t thread, std::uint32_t t) {
    if (plan_.private_bytes) {
      const std::uint64_t own = plan_.shared_bytes + t * plan_.private_bytes;
      std::fill_n(written_ + own, plan_.private_bytes, std::uint8_t{0});
      for (const KernelArrayPlace& place : plan_.arrays)
        if (place.is_private && place.slot != ir::kNone) values_[place.slot] = shared_ + own + place.offset;
    }
    values_[plan_.thread_slot] = thread;
    std::fill_n(values_ + plan_.first_local, plan_.num_locals, 0);
    for (const ThreadNumber& number : plan_.numbers) {
      std::uint64_t& value = values_[number.slot];
      switch (number.op) {
        case ir::Op::local_id: value = thread % block_; break;
        case ir::Op::workgroup_id: value = thread / block_; break;
        case ir::Op::subgroup_lane: value = thread % block_ % plan_.subgroup_size; break;
        default: value = thread % block_ / plan_.subgroup_size;
      }
    }
  }

  /// Runs all threads of a subgroup up to the next barrier, or to their end.
  void run_subgroup(std::uint32_t first, std::uint32_t count) {
    for (;;) {
      bool exchanges = false;
      for (std::uint32_t t = first; t < first + count; ++t) {
        enter(t);
        places_[t] = run(places_[t]);
        exchanges = exchanges || places_[t]->code == Code::collective;
      }
      if (!exchanges) return;
      collective(plan_.collectives[together(first, count)->a], first, count);
      for (std::uint32_t t = first; t < first + count; ++t) ++places_[t];
    }
  }

  /// The step at which all these threads stopped.
  const Step* together(std::uint32_t first, std::uint32_t count) {
    const Step* const at = places_[first];
    for (std::uint32_t t = first + 1; t < first + count; ++t) {
      if (places_[t] == at || (places_[t]->code == Code::end && at->code == Code::end)) continue;
      apart(first, t);
    }
    return at;
  }

  /// Refuses two threads that should have met and have not.
  [[noreturn]] void apart(std::uint32_t a, std::uint32_t b) {
    if (places_[a]->code == Code::end) std::swap(a, b);
    const Step& waits = *places_[a];
    const ir::Inst& inst = plan_.module()[waits.code == Code::barrier ? waits.a : plan_.collectives[waits.a].inst];
    enter(a);
    const std::uint64_t waiting = values_[plan_.thread_slot];
    enter(b);
    throw Error(ErrorKind::invalid_argument,
                fmt::format("thread {} waits here for thread {}, which {}", waiting, values_[plan_.thread_slot],
                            places_[b]->code == Code::end ? "has ended" : "waits elsewhere"),
                plan_.module().name, inst.loc() ? inst.loc() : plan_.module().loc);
  }

  void collective(const Collective& what, std::uint32_t first, std::uint32_t count) {
    if (what.op == ir::Op::subgroup_barrier) return;  // the threads have met
    std::uint64_t given[128] = {}, lanes[128] = {};
    for (std::uint32_t k = 0; k < count; ++k) {
      enter(first + k);
      given[k] = values_[what.value];
      lanes[k] = values_[what.lane] % count;
    }
    std::uint64_t all = given[0], ballot = 0;
    if (what.op == ir::Op::subgroup_reduce)
      for (std::uint32_t k = 1; k < count; ++k) all = what.combine(all, given[k], 0);
    for (std::uint32_t k = what.word * 32; k < std::min(count, what.word * 32 + 32); ++k)
      ballot |= given[k] << (k - what.word * 32);
    std::uint64_t before = what.neutral;
    for (std::uint32_t k = 0; k < count; ++k) {
      enter(first + k);
      std::uint64_t& to = values_[what.to];
      const std::uint64_t next = !what.combine ? 0 : k == 0 ? given[0] : what.combine(before, given[k], 0);
      switch (what.op) {
        case ir::Op::subgroup_reduce: to = all; break;
        case ir::Op::subgroup_inclusive: to = next; break;
        case ir::Op::subgroup_exclusive: to = before; break;
        case ir::Op::subgroup_ballot: to = ballot; break;
        default: to = given[lanes[k]];  // broadcast and shuffle
      }
      before = next;
    }
  }

  /// Runs the present thread until it ends or has to wait; returns the step at which it stopped.
  const Step* run(const Step* step) {
    const Step* const steps = plan_.steps.data();
    std::uint64_t* const values = values_;
    for (;; ++step) {
      switch (step->code) {
        case Code::pure: values[step->to] = step->function(values[step->a], values[step->b], values[step->c]); break;
        case Code::move: values[step->to] = values[step->a]; break;
        case Code::jump: step = steps + step->to - 1; break;
        case Code::jump_unless:
          if (!values[step->a]) step = steps + step->to - 1;
          break;
        case Code::load: {
          const MemoryAccess& access = plan_.accesses[step->a];
          auto* from = reinterpret_cast<const std::byte*>(checked_address(step->a));
          for (int k = 0; k < access.width; ++k) {
            values[access.values[k]] = read_scalar(from + k * access.scalar_bytes, access.scalar_bytes);
          }
          break;
        }
        case Code::store: {
          const MemoryAccess& access = plan_.accesses[step->a];
          auto* to = reinterpret_cast<std::byte*>(checked_address(step->a));
          for (int k = 0; k < access.width; ++k) {
            write_scalar(to + k * access.scalar_bytes, access.scalar_bytes, values[access.values[k]]);
          }
          break;
        }
        case Code::atomic: {
          const MemoryAccess& access = plan_.accesses[step->a];
          const std::uint64_t at = checked_address(step->a);
          if (access.own != ir::kNone) require_written(access, at);
          values[access.values[1]] = exchange(at, access, values);
          break;
        }
        case Code::load_own: {
          const MemoryAccess& access = plan_.accesses[step->a];
          const std::uint64_t at = checked_address(step->a);
          require_written(access, at);
          auto* from = reinterpret_cast<const std::byte*>(at);
          for (int k = 0; k < access.width; ++k) {
            values[access.values[k]] = read_scalar(from + k * access.scalar_bytes, access.scalar_bytes);
          }
          break;
        }
        case Code::store_own: {
          const MemoryAccess& access = plan_.accesses[step->a];
          const std::uint64_t at = checked_address(step->a);
          auto* to = reinterpret_cast<std::byte*>(at);
          for (int k = 0; k < access.width; ++k) {
            write_scalar(to + k * access.scalar_bytes, access.scalar_bytes, values[access.values[k]]);
          }
          std::fill_n(written_ + (at - shared_), access.bytes(), std::uint8_t{1});
          break;
        }
        case Code::barrier:
        case Code::collective:
        case Code::end: return step;
      }
    }
  }

  void require_written(const MemoryAccess& access, std::uint64_t at) const {
    const std::uint8_t* const first = written_ + (at - shared_);
    if (std::find(first, first + access.bytes(), 0) != first + access.bytes())
      fail(access, at,
           plan_.arrays[access.own].is_private ? "the thread has not written there"
                                               : "no thread of the workgroup has written there");
  }

  std::int64_t index_of(const MemoryAccess& access) const {
    return static_cast<std::int64_t>(values_[access.index] << access.index_shift) >> access.index_shift;
  }

  std::uint64_t checked_address(std::uint32_t number) {
    const MemoryAccess& access = plan_.accesses[number];
    const std::uint64_t address =
        values_[access.base] + static_cast<std::uint64_t>(index_of(access)) * access.stride + access.offset;
    // If the base is not an argument, each thread may find another array.
    if (!extents_[number].holds(address, access.bytes()) ||
        (!access.array && !extents_[number].holds(values_[access.base], 0)))
      extents_[number] = locate(access, address);
    if (address & (access.align - 1)) misaligned(access, address);
    return address;
  }

  /// The allocation that the access lies in.
  Extent locate(const MemoryAccess& access, std::uint64_t address) const {
    if (access.own != ir::kNone) {
      const Extent own{values_[access.base], plan_.arrays[access.own].bytes};
      if (own.holds(address, access.bytes())) return own;
      outside(access, address, own);
    }
    // An array lies in one allocation: an access past its end must not pass for one to its neighbour in memory.
    const Extent own = memory_.find(values_[access.base]);
    const Extent extent = own.address || values_[access.base] == 0 ? own : memory_.find(address);
    if (extent.holds(address, access.bytes())) return extent;
    outside(access, address, own);
  }

  [[noreturn]] void outside(const MemoryAccess& access, std::uint64_t address, const Extent& own) const {
    std::string place = "outside device memory";
    if (own.address) place = fmt::format("outside the array's {} bytes at {:#x}", own.bytes, own.address);
    if (values_[access.base] == 0) place = access.array ? "in an empty array" : "in a null or empty array of a struct";
    fail(access, address, place);
  }

  [[noreturn]] void misaligned(const MemoryAccess& access, std::uint64_t address) const {
    fail(access, address, fmt::format("not a multiple of {} bytes", access.align));
  }

  [[noreturn]] void fail(const MemoryAccess& access, std::uint64_t address, const std::string& what) const {
    const ir::Module& module = plan_.module();
    const ir::Inst& inst = module[access.inst];
    const char* verb = inst.op == ir::Op::load         ? "reads"
                       : inst.op == ir::Op::store      ? "writes"
                       : inst.op == ir::Op::atomic_add ? "adds to"
                                                       : "changes";
    std::string element;
    if (access.own != ir::kNone) {
      element = fmt::format(", index {} of {} array {}", index_of(access),
                            plan_.arrays[access.own].is_private ? "private" : "shared", access.own + 1);
    } else if (access.array) {
      // Unsigned 64-bit indices above 2^63 are negative ones that lost their sign: the signed form tells more.
      element = fmt::format(", index {} of {}", index_of(access), access.array->name);
    }
    throw Error(ErrorKind::invalid_argument,
                fmt::format("thread {} {} {} bytes at address {:#x}{}: {}", values_[plan_.thread_slot], verb,
                            access.bytes(), address, element, what),
                module.name, inst.loc() ? inst.loc() : module.loc);
  }

  const Plan& plan_;
  const HostMemory& memory_;
  const std::uint32_t block_;
  std::uint64_t* values_;  ///< of the present thread
  Extent* const extents_;
  const std::uint64_t shared_;   ///< address of the workgroup's memory; that of its threads follows
  std::uint8_t* const written_;  ///< see Scratch
  std::uint64_t* const first_values_;
  const Step** const places_;
};

}  // namespace

void interpret(const Plan& plan, const Grid& grid, std::span<const std::byte> args, const HostMemory& memory,
               Scratch& scratch) {
  const ir::Module& module = plan.module();
  if (args.size() < std::max<std::size_t>(module.args_bytes, 4)) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the argument block has {} bytes, the kernel takes {}", args.size(), module.args_bytes),
                module.name, module.loc);
  }
  const auto count = static_cast<std::uint32_t>(read_scalar(args.data(), 4));
  const std::uint32_t block = plan.together ? module.block : 1;
  if (count % block != 0) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} threads are no whole number of workgroups of {}", count, block), module.name,
                module.loc);
  }
  scratch.values.assign(plan.initial.begin(), plan.initial.end());
  scratch.extents.assign(plan.accesses.size(), Extent{});
  for (const ArgumentRead& read : plan.arguments) {
    const std::uint64_t bits = read_scalar(args.data() + read.offset, ir::bytes(read.type));
    scratch.values[read.slot] = ir::is_bool(read.type) ? bits != 0 : bits;
  }
  const std::uint64_t bytes = plan.shared_bytes + block * plan.private_bytes;
  scratch.shared.resize(bytes / 8 + 3);
  scratch.written.resize(bytes);
  if (plan.together) scratch.places.resize(block);
  // The memory of the workgroup begins at a multiple of 16 bytes, as on devices. That of its threads follows.
  std::uint64_t shared = reinterpret_cast<std::uint64_t>(scratch.shared.data());
  shared = (shared + 15) / 16 * 16;
  for (const KernelArrayPlace& place : plan.arrays)
    if (place.slot != ir::kNone) scratch.values[place.slot] = shared + place.offset;
  const std::size_t slots = plan.initial.size();
  scratch.values.resize(slots * block);
  for (std::uint32_t t = 1; t < block; ++t)
    std::copy_n(scratch.values.data(), slots, scratch.values.data() + slots * t);
  Interpreter interpreter(plan, memory, scratch, shared);
  std::uint64_t first = 0, end = count;
  if (grid.part) {
    first = std::uint64_t{grid.first_y} * grid.x * module.block;
    end = std::min<std::uint64_t>(first + std::uint64_t{grid.x} * grid.y * module.block, count);
  }
  if (plan.together) {
    for (std::uint64_t group = first / block; group < end / block; ++group)
      interpreter.run_group(static_cast<std::uint32_t>(group));
  } else {
    for (std::uint64_t thread = first; thread < end; ++thread)
      interpreter.run_thread(static_cast<std::uint32_t>(thread));
  }
}

}  // namespace weft::backend
