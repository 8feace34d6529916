// The IR of one kernel: instructions in a tree of regions, mutable locals, and the layout of its arguments.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../support/debug.h"
#include "../support/loc.h"
#include "report.h"
#include "type.h"

namespace weft {
enum class ErrorKind;
}

namespace weft::ir {

enum class Op : std::uint8_t {
#define WEFT_OP(name, arity, operands, result, effect, derivative) name,
#include "ops.def"
#undef WEFT_OP
  count
};

enum class OperandClass : std::uint8_t { any, numeric, integer, real, logical, boolean, special };
enum class ResultRule : std::uint8_t { same, boolean, given, none };
enum class Effect : std::uint8_t { pure, reads, writes, control };
enum class Derivative : std::uint8_t { differentiable, nondifferentiable, structural };

/// One row of ops.def.
struct OpInfo {
  const char* name;
  int arity;
  OperandClass operands;
  ResultRule result;
  Effect effect;
  Derivative derivative;
};
const OpInfo& info(Op op);

/// Values that belong to no region and are visible everywhere.
constexpr bool is_global(Op op) { return op <= Op::kernel_array; }
constexpr bool is_atomic(Op op) { return op >= Op::atomic_add && op <= Op::atomic_cas; }
/// Inst::imm of an atomic addition whose result nobody uses and to whose address, likely, many threads add at once: a
/// backend may add up their values first.
inline constexpr std::uint64_t kGather = 1;
/// Operations on an address: base, index, then values.
constexpr bool is_memory(Op op) { return op == Op::load || op == Op::store || is_atomic(op); }
/// Does an instruction give several values of one type, which `result` reads?
constexpr bool is_wide(Op op, int width) { return (op == Op::load || op == Op::trace_ray) && width > 1; }
/// Operations in which the threads of a subgroup exchange values.
constexpr bool is_subgroup(Op op) { return op >= Op::subgroup_barrier && op <= Op::subgroup_ballot; }
/// The pure operation by which an atomic one computes the new value; `constant` for exchange and cas, which do not.
constexpr Op combination(Op atomic) {
  switch (atomic) {
    case Op::atomic_add: return Op::add;
    case Op::atomic_min: return Op::min;
    case Op::atomic_max: return Op::max;
    case Op::atomic_and: return Op::bit_and;
    case Op::atomic_or: return Op::bit_or;
    case Op::atomic_xor: return Op::bit_xor;
    default: return Op::constant;
  }
}

/// An instruction's number, and the name of the value that it defines. Stable for the life of the module.
using Id = std::uint32_t;
using RegionId = std::uint32_t;
inline constexpr Id kNone = ~0u;

/// One instruction. Values are defined once; those of width 2 to 4 (wide loads) and of control operations are
/// read through `result`.
struct Inst {
  Op op = Op::constant;
  Type type = Type::none;       ///< of the value, or of each part of a wide one; of the stored values for `store`
  std::uint8_t width = 1;       ///< memory operations: number of consecutive scalars
  std::uint8_t align = 0;       ///< memory operations: known alignment of the address in bytes, a power of two
  std::uint32_t num_args = 0;   ///< operands, in Module::operands
  std::uint32_t first_arg = 0;  //
  std::array<RegionId, 3> regions = {kNone, kNone, kNone};
  std::uint32_t stride = 0;    ///< memory operations: bytes per step of the index
  std::uint32_t offset = 0;    ///< memory operations: bytes added
  std::uint64_t imm = 0;       ///< see ops.def
  const char* file = nullptr;  ///< where the user wrote it
  std::int32_t line = 0;

  Loc loc() const { return {file, line}; }
  void set_loc(Loc loc) {
    file = loc.file;
    line = loc.line;
  }
};
static_assert(sizeof(Inst) <= 64, "an instruction fits a cache line");

/// An instruction with the fields that are not about memory; Module::add() gives it operands.
inline Inst instruction(Op op, Type type = Type::none, std::uint64_t imm = 0, Loc loc = {}) {
  Inst inst;
  inst.op = op;
  inst.type = type;
  inst.imm = imm;
  inst.set_loc(loc);
  return inst;
}

/// A list of instructions that run in order, inside at most one control operation.
struct Region {
  std::vector<Id> insts;
  RegionId parent = kNone;
};

/// What a kernel does to the memory behind one of its arguments.
enum class Access : std::uint8_t { none = 0, read = 1, write = 2, atomic = 4 };
constexpr Access operator|(Access a, Access b) { return Access(int(a) | int(b)); }
constexpr bool any(Access a, Access b) { return (int(a) & int(b)) != 0; }
inline constexpr Access kChanges = Access::write | Access::atomic;

/// One parameter of a kernel and its place in the argument block.
///
/// The block starts with the u32 number of threads. Values follow at their natural alignment. An array is u64 address,
/// then for a contiguous one i32 shape[N], for a strided one i64 shape[N], i64 stride[N] in bytes. At the end stand, in
/// a wide launch, the i64 first coordinate at which the dispatch begins, and for tid<N>() with N > 1, for each
/// dimension but the first: u32 extent, u32 multiplier, u32 shift (the reciprocal that turns a division into a
/// multiplication).
struct Param {
  enum class Kind : std::uint8_t {
    value,
    array,
    absent  ///< an array that the launch leaves out (see Variant): it takes no place
  };
  std::string name;       ///< "x"; by position ("argument 2") when the kernel gives none
  std::string type_name;  ///< "float32", "vec3", "Array<vec3, 2>": for messages
  Kind kind = Kind::value;
  std::uint8_t ndim = 0;     ///< of an array
  bool strided = false;      ///< layout of an array
  bool read_only = false;    ///< Arr<const T>
  std::uint32_t offset = 0;  ///< in the argument block, bytes
  std::uint32_t bytes = 0;   ///< there
  std::uint32_t element_bytes = 0;
  std::uint32_t element_align = 0;  ///< alignment in bytes that the address must have
  Access access = Access::none;     ///< what the kernel does there, or would if it did not fail for certain before
};

struct Local {
  Type type = Type::none;
  bool failure = false;  ///< true in a thread that failed where it could not return: see outlive_failures()
};

/// Where a kernel asks for a size in 32 bits that the argument block holds in 64.
struct NarrowShape {
  std::uint32_t at = 0;  ///< of the size in the argument block; kNone: computed
  Loc loc;
};

/// What the launches decide about a kernel's code: each combination is traced and compiled by itself.
struct Variant {
  std::uint64_t strided = 0;  ///< by parameter: an array that is not contiguous, or too large for 32-bit sizes
  std::uint64_t absent = 0;   ///< by parameter: an array that is left out
  bool wide = false;          ///< more threads than 32 bits count, in several dispatches
  Debug debug;                ///< what it checks
  bool adjoint = false;       ///< for ir::adjoint: calls of functions with derivatives of their own stay calls, with
                              ///< these functions (Derivatives); nothing is reported
  bool operator==(const Variant&) const = default;
};

/// An array that a kernel declares: in the memory that the threads of a workgroup share, or for each thread one of its
/// own. Its content is undefined when the workgroup starts.
struct KernelArray {
  Type type = Type::none;   ///< of its scalars; no other type is accessed there
  std::uint32_t count = 0;  ///< scalars
  bool words = false;       ///< scalars narrower than 32 bits lie in a word each: atomic operations work on them
  Loc loc;
  bool is_private = false;  ///< each thread's own: no atomic operations

  std::uint64_t bytes() const { return std::uint64_t{count} * static_cast<std::uint64_t>(words ? 4 : ir::bytes(type)); }
};

/// What a kernel is called by: the same whatever a pass does to its body.
struct Interface {
  std::string name;
  Loc loc;
  std::vector<Param> params;
  std::uint32_t args_bytes = 4;  ///< size of the argument block
  std::uint32_t tid_rank = 0;    ///< N of tid<N>(); 0 when the kernel never asks
  std::uint32_t tid_offset = 0;  ///< in the argument block: start of a wide dispatch, extents and reciprocals for N > 1
  bool wide = false;             ///< see Variant
  Loc narrow_tid;                ///< where tid() was asked for in 32 bits, or empty
  std::vector<NarrowShape> narrow_shapes;
  std::uint32_t block = 256;  ///< threads per workgroup
  bool fixed_block = false;   ///< the body was built for workgroups of this very block, numbered through the launch
  bool by_handles = false;    ///< it reads structures that it finds by the 64-bit values of their handles
  std::vector<KernelArray> arrays;  ///< named by the operation `kernel_array`
  std::uint32_t report_offset = 0;  ///< in the argument block: see report::kArgumentBytes; 0 when nothing is reported
  std::vector<Message> messages;    ///< what may be reported; a record names its message by its place here
};

/// What the user says about the derivatives of a function, by numbers in the kernel's table.
struct Derivatives {
  /// Of a function: the one that computes its gradient; kNone: that is derived from the body. It takes the inputs, then
  /// a gradient for each real output; it returns a gradient for each real input.
  std::uint32_t gradient = kNone;
  /// Of a function: the one, of the same inputs and outputs, that stands for it when the adjoint runs the kernel again.
  std::uint32_t replay = kNone;
  /// Of a kernel: a function has derivatives of its own, which are not here; see Variant::adjoint.
  bool left_out = false;

  bool any() const { return gradient != kNone || replay != kNone; }
};

/// A kernel in traced form (locals, break, continue, return) or in normal form (results, loop-carried values), with the
/// functions that it calls; or one of these functions.
///
/// A function is a module of its own with the interface of its kernel, so that it reads the kernel's arguments and the
/// thread's number. Its body starts with a `param` for each input, ends with a `yield` of its results if it has any,
/// and holds no `return_`. It calls functions that stand before it in the kernel's table: there is no recursion. The
/// functions that compute its gradient and replay it may stand anywhere.
struct Module : Interface {
  std::vector<Inst> insts;
  std::vector<Id> operands;
  std::vector<Region> regions{Region{}};  ///< regions[0] is the body
  std::vector<Local> locals;
  std::vector<std::shared_ptr<const Module>> functions;  ///< of a kernel; numbered by `call`, also inside functions
  std::string function;                                  ///< the name of a function; empty for a kernel
  std::uint32_t num_inputs = 0;                          ///< of a function
  Derivatives derivatives;
  /// While the body of a library function is recorded: the user's call, which then stands in every instruction and
  /// every error instead of a line of the library.
  Loc place;

  const Interface& as_interface() const { return *this; }

  std::span<const Id> args(Id id) const { return {operands.data() + insts[id].first_arg, insts[id].num_args}; }
  Id arg(Id id, int k) const { return operands[insts[id].first_arg + k]; }
  const Inst& operator[](Id id) const { return insts[id]; }

  /// Adds an instruction that no region has yet. The operands given must not lie in `operands`.
  Id add(const Inst& inst, std::span<const Id> args);

  /// What a function returns: the operands of the `yield` that ends its body.
  std::span<const Id> outputs() const;

  /// The array parameter whose address `base` is, or null when the address is computed.
  const Param* array_of(Id base) const;
  /// The array of the kernel that `base` names, or null when it is an address of device memory.
  const KernelArray* kernel_array_of(Id base) const;
};

/// What a kernel asks of its workgroups.
struct GroupUse {
  bool together = false;           ///< threads exchange values: every workgroup must be whole
  bool fences = false;             ///< orders what its threads write for others
  bool subgroups = false;          ///< uses subgroups: the block must be a multiple of their size
  std::uint64_t shared_bytes = 0;  ///< of workgroup memory, alignment included
  Loc loc;                         ///< of the first operation that makes threads work together
  Loc subgroup_loc;                ///< of the first operation on subgroups

  /// May a thread read what another one writes in the same launch?
  bool hands_over() const { return together || fences; }
};
GroupUse group_use(const Module& module);

/// Printed form, one instruction a line; the same for equal kernels. Numbers follow the order of execution.
/// With `lines`, each instruction ends with its place in the user's source.
std::string print(const Module& module, bool lines = false);

/// Hash of all that decides a kernel's behaviour: not of its name nor, its messages apart, of source lines.
struct Hash {
  std::uint64_t lo = 0, hi = 0;
  bool operator==(const Hash&) const = default;
};
Hash hash(const Module& module);

/// 32 hexadecimal digits.
std::string to_string(Hash hash);

/// Checks every rule of the IR.
/// Errors: internal_error() with the first broken rule: a module that fails was built wrongly by the library.
void verify(const Module& module);

/// The first broken rule as text, or empty.
std::string first_violation(const Module& module);

/// By function of a kernel's table: does a call do more than compute values, does it write to memory, for one?
std::vector<char> have_effects(std::span<const std::shared_ptr<const Module>> functions);

/// Throws Error: names the kernel, and the place given or, without one, the kernel's.
[[noreturn]] void refuse(ErrorKind kind, const Module& module, const std::string& message, Loc loc = {});
/// Throws Error: where in the kernel (at `place` where that is set; in which of its functions), and what.
[[noreturn]] void fail(const Module& module, Loc loc, const std::string& message);
/// How often this thread has called fail(): whoever works on a module sees by it that an error was caught on its way.
std::uint64_t failures();

}  // namespace weft::ir
