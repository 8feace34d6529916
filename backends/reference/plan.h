// A kernel made ready for the interpreter: a flat list of steps over numbered slots, control flow as jumps.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "../../frontend/ir/evaluate.h"
#include "../../frontend/ir/module.h"
#include "../backend.h"

namespace weft::backend {

/// The number of a place that holds one value's bits while a thread runs.
using Slot = std::uint32_t;

/// One step. Its code says what `a`, `b`, `c` and `to` mean.
struct Step {
  enum class Code : std::uint8_t {
    pure,         ///< to = function(a, b, c)
    move,         ///< to = a
    jump,         ///< go on at step `to`
    jump_unless,  ///< go on at step `to` when a is false
    load,         ///< accesses[a]
    store,        ///< accesses[a]
    atomic,       ///< accesses[a]
    load_own,     ///< accesses[a]
    store_own,    ///< accesses[a]
    // A thread stops at these until the others have come, or for good.
    barrier,     ///< a: the instruction
    collective,  ///< collectives[a]
    end          ///< the thread ends
  };
  Code code = Code::end;
  std::uint32_t to = 0, a = 0, b = 0, c = 0;
  ir::Evaluator function = nullptr;
};

/// One memory operation: address = base + index * stride + offset.
struct MemoryAccess {
  Slot base = 0, index = 0;
  std::array<Slot, 4> values{};  ///< loaded into, stored from; atomic: operand or expected, result, desired
  std::uint32_t stride = 0, offset = 0;
  std::uint32_t align = 1;  ///< in bytes, a power of two
  std::uint8_t width = 1;   ///< scalars
  std::uint8_t scalar_bytes = 0;
  std::uint8_t index_shift = 0;  ///< left and arithmetically right again: sign extension; 0 for unsigned indices
  bool compares = false;         ///< atomic: stores only if the value is the expected one
  ir::Evaluator combine =
      nullptr;                    ///< atomic: combines the value before and the operand; null: the operand replaces it
  std::uint32_t own = ir::kNone;  ///< number of the kernel array, or kNone
  const ir::Param* array = nullptr;  ///< the array argument whose address is the base, or null
  ir::Id inst = ir::kNone;

  std::uint32_t bytes() const { return std::uint32_t(width) * scalar_bytes; }
};

/// One operation of a subgroup.
struct Collective {
  ir::Op op = ir::Op::count;
  Slot value = 0, lane = 0, to = 0;
  ir::Evaluator combine = nullptr;  ///< reductions and scans
  std::uint64_t neutral = 0;        ///< exclusive scans
  std::uint32_t word = 0;           ///< ballots
  ir::Id inst = ir::kNone;
};

/// An array of the kernel.
struct KernelArrayPlace {
  std::uint64_t offset = 0;  ///< in the workgroup's memory, or in the thread's
  std::uint64_t bytes = 0;
  bool is_private = false;
  Slot slot = ir::kNone;  ///< holds its address; kNone when nothing uses it
};

/// One of a thread's numbers other than its linear index.
struct ThreadNumber {
  ir::Op op = ir::Op::count;
  Slot slot = 0;
};

/// A value read from the argument block once per launch.
struct ArgumentRead {
  Slot slot = 0;
  std::uint32_t offset = 0;
  ir::Type type = ir::Type::none;
};

/// A program of the reference device. Constant once made, so several streams may run it at the same time.
class Plan : public Program {
 public:
  /// Keeps a copy of the module, in which every call is replaced by the function's body. Errors: internal_error() on a
  /// module that breaks the rules of the IR.
  Plan(const ir::Module& module, std::uint32_t subgroup_size, FusedTypes fused = {});
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const ir::Module& module() const { return module_; }
  const std::string& name() const override { return module_.name; }

  std::vector<Step> steps;
  std::vector<MemoryAccess> accesses;
  std::vector<Collective> collectives;
  std::vector<KernelArrayPlace> arrays;
  std::uint64_t shared_bytes = 0, private_bytes = 0;  ///< of a workgroup and of a thread; multiples of 16
  std::vector<ThreadNumber> numbers;                  ///< only those that the kernel uses
  std::uint32_t subgroup_size = 0;
  bool together = false;  ///< threads of a workgroup wait for each other
  std::vector<ArgumentRead> arguments;
  std::vector<std::uint64_t> initial;  ///< by slot: constants, else 0
  Slot thread_slot = 0;
  Slot first_local = 0;  ///< locals lie side by side; each thread starts with zeros there
  std::uint32_t num_locals = 0;

 private:
  ir::Module module_;
};

}  // namespace weft::backend
