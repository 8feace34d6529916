// The interpreter's loop, and the checks of memory accesses with their messages.
#include "interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "../../frontend/support/error.h"

namespace weft::backend {

namespace {

using Code = Step::Code;

/// A place in the argument block or in device memory; the bytes beyond the scalar are zero.
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

/// Atomic also against other streams, which run on other host threads. Returns the value before.
template <class Word>
std::uint64_t add_atomically(std::uint64_t address, ir::Evaluator add, std::uint64_t value) {
  std::atomic_ref<Word> word(*reinterpret_cast<Word*>(address));
  Word before = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(before, static_cast<Word>(add(before, value, 0)), std::memory_order_relaxed)) {
  }
  return before;
}

class Interpreter {
 public:
  Interpreter(const Plan& plan, const HostMemory& memory, Scratch& scratch)
      : plan_(plan), memory_(memory), values_(scratch.values.data()), extents_(scratch.extents.data()) {}

  void run_thread(std::uint32_t thread) {
    const Step* const steps = plan_.steps.data();
    std::uint64_t* const values = values_;
    values[plan_.thread_slot] = thread;
    std::fill_n(values + plan_.first_local, plan_.num_locals, 0);

    for (const Step* step = steps;; ++step) {
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
        case Code::atomic_add: {
          const MemoryAccess& access = plan_.accesses[step->a];
          const std::uint64_t at = checked_address(step->a), value = values[access.values[0]];
          values[access.values[1]] = access.scalar_bytes == 4 ? add_atomically<std::uint32_t>(at, access.add, value)
                                                              : add_atomically<std::uint64_t>(at, access.add, value);
          break;
        }
        case Code::end: return;
      }
    }
  }

 private:
  std::int64_t index_of(const MemoryAccess& access) const {
    return static_cast<std::int64_t>(values_[access.index] << access.index_shift) >> access.index_shift;
  }

  std::uint64_t checked_address(std::uint32_t number) {
    const MemoryAccess& access = plan_.accesses[number];
    const std::uint64_t address =
        values_[access.base] + static_cast<std::uint64_t>(index_of(access)) * access.stride + access.offset;
    // Where the base is not an argument, each thread may find another array.
    if (!extents_[number].holds(address, access.bytes()) ||
        (!access.array && !extents_[number].holds(values_[access.base], 0)))
      extents_[number] = locate(access, address);
    if (address & (access.align - 1)) misaligned(access, address);
    return address;
  }

  /// The allocation that the access lies in.
  Extent locate(const MemoryAccess& access, std::uint64_t address) const {
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
    const char* verb = inst.op == ir::Op::load ? "reads" : inst.op == ir::Op::store ? "writes" : "adds to";
    std::string element;
    if (access.array) {
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
  std::uint64_t* const values_;
  Extent* const extents_;
};

}  // namespace

void interpret(const Plan& plan, std::span<const std::byte> args, const HostMemory& memory, Scratch& scratch) {
  const ir::Module& module = plan.module();
  if (args.size() < std::max<std::size_t>(module.args_bytes, 4)) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the argument block has {} bytes, the kernel takes {}", args.size(), module.args_bytes),
                module.name, module.loc);
  }
  scratch.values.assign(plan.initial.begin(), plan.initial.end());
  scratch.extents.assign(plan.accesses.size(), Extent{});
  for (const ArgumentRead& read : plan.arguments) {
    const std::uint64_t bits = read_scalar(args.data() + read.offset, ir::bytes(read.type));
    scratch.values[read.slot] = ir::is_bool(read.type) ? bits != 0 : bits;
  }
  const auto count = static_cast<std::uint32_t>(read_scalar(args.data(), 4));
  Interpreter interpreter(plan, memory, scratch);
  for (std::uint32_t thread = 0; thread < count; ++thread) interpreter.run_thread(thread);
}

}  // namespace weft::backend
