// The IR of one kernel: instructions in a tree of regions, mutable locals, and the layout of its arguments.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../support/debug.h"
#include "../support/hash.h"
#include "../support/loc.h"
#include "report.h"
#include "type.h"

namespace weft {
enum class ErrorKind;
}

namespace weft::ir {

enum class Op : std::uint8_t {
#define WEFT_OP(name, arity, operands, result, effect, derivative, spread) name,
#include "ops.def"
#undef WEFT_OP
  count
};

enum class OperandClass : std::uint8_t { any, numeric, integer, real, logical, boolean, special };
enum class ResultRule : std::uint8_t { same, boolean, given, none };
enum class Effect : std::uint8_t { pure, reads, writes, control };
enum class Derivative : std::uint8_t { differentiable, nondifferentiable, structural };
/// What decides how the values of an operation differ among threads.
enum class Spread : std::uint8_t {
  none,       ///< it has no value
  launch,     ///< nothing: all threads of a launch have the same
  workgroup,  ///< the workgroup
  subgroup,   ///< the subgroup
  number,     ///< the thread's number: the next thread has one more
  operands,   ///< its operands alone: threads that agree on them agree on it (arithmetic)
  pooled,     ///< all lanes of the subgroup get the same; if threads agree on the operands, they agree on it
  exchanged,  ///< each lane gets something else, unless all give the same
  memory,     ///< its address and what is there
  thread,     ///< it differs whatever its operands
  control     ///< the control flow that it belongs to
};

/// One row of ops.def.
struct OpInfo {
  const char* name;
  int arity;
  OperandClass operands;
  ResultRule result;
  Effect effect;
  Derivative derivative;
  Spread spread;
};
const OpInfo& info(Op op);

/// Returns whether an operation's values belong to no region and are visible everywhere.
constexpr bool is_global(Op op) { return op <= Op::kernel_array; }
constexpr bool is_atomic(Op op) { return op >= Op::atomic_add && op <= Op::atomic_cas; }
/// Inst::imm of an atomic addition whose result is not used, and to whose address many threads are likely to add at
/// once: a backend may add up their values first.
inline constexpr std::uint64_t kGather = 1;
/// Returns whether an operation is one that contract() decides about: a sum, difference or product of these types. Its
/// Inst::imm is kRounded, or the number of the piece of code in which it may be contracted: 0, or another one for a
/// function that is traced in place of its call, so that rounding does not depend on how the function is traced.
constexpr bool is_contractible(Op op, Type type) {
  return (op == Op::add || op == Op::sub || op == Op::mul) && (type == Type::f32 || type == Type::f64);
}
/// Inst::imm of such an operation that is rounded as it is written: contract() leaves it alone.
inline constexpr std::uint64_t kRounded = ~std::uint64_t{0};
/// Returns whether the operands are an address (base and index) and then values.
constexpr bool is_memory(Op op) { return op == Op::load || op == Op::store || is_atomic(op); }
/// Returns whether an instruction gives several values of one type, which `result` reads.
constexpr bool is_wide(Op op, int width) { return (op == Op::load || op == Op::trace_ray) && width > 1; }
/// Returns whether the threads of a subgroup exchange values, or meet, in an operation.
constexpr bool is_subgroup(Op op) { return op >= Op::subgroup_barrier && op <= Op::subgroup_ballot; }
/// The pure operation by which an atomic one computes the new value; `constant` for exchange and cas, which have none.
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

/// One instruction, which defines at most one value. The parts of a wide value (width 2 to 4), and the results of
/// control operations and calls, are values of their own, defined by `result`.
struct Inst {
  Op op = Op::constant;
  Type type = Type::none;       ///< of the value, or of each part of a wide one; for `store`, of the stored values
  std::uint8_t width = 1;       ///< memory operations: number of consecutive scalars
  std::uint8_t align = 0;       ///< memory operations: known alignment of the address in bytes, a power of two
  std::uint32_t num_args = 0;   ///< number of operands
  std::uint32_t first_arg = 0;  ///< place of the first one in Module::operands
  std::array<RegionId, 3> regions = {kNone, kNone, kNone};
  std::uint32_t stride = 0;    ///< memory operations: bytes per step of the index
  std::uint32_t offset = 0;    ///< memory operations: bytes added
  std::uint64_t imm = 0;       ///< see ops.def
  const char* file = nullptr;  ///< of the user's source
  std::int32_t line = 0;

  Loc loc() const { return {file, line}; }
  void set_loc(Loc loc) {
    file = loc.file;
    line = loc.line;
  }
};
static_assert(sizeof(Inst) <= 64, "an instruction fits a cache line");

/// Makes an instruction from the fields that are not about memory; Module::add() gives it operands.
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

/// The accesses of a kernel to the memory of one of its arguments.
enum class Access : std::uint8_t { none = 0, read = 1, write = 2, atomic = 4 };
constexpr Access operator|(Access a, Access b) { return Access(int(a) | int(b)); }
constexpr bool any(Access a, Access b) { return (int(a) & int(b)) != 0; }
inline constexpr Access kChanges = Access::write | Access::atomic;

/// One parameter of a kernel and its place in the argument block.
///
/// The block starts with the u32 number of threads. Values follow at their natural alignment. An array is a u64
/// address, followed by i32 shape[N] if it is contiguous, and by i64 shape[N], i64 stride[N] in bytes if it is strided.
/// The block ends with what tid<N>() needs. In a wide launch this is the i64 first coordinate at which the dispatch
/// begins; for N > 1, each dimension but the first has a u32 extent, u32 multiplier and u32 shift (the reciprocal that
/// turns a division into a multiplication).
struct Param {
  enum class Kind : std::uint8_t {
    value,
    array,
    absent  ///< an array that the launch leaves out (see Variant), without a place in the block
  };
  std::string name;       ///< "x", or "argument 2" by its position if the kernel gives none
  std::string type_name;  ///< "float32", "vec3", "Array<vec3, 2>": for messages
  Kind kind = Kind::value;
  std::uint8_t ndim = 0;     ///< of an array
  bool strided = false;      ///< layout of an array
  bool read_only = false;    ///< Arr<const T>
  std::uint32_t offset = 0;  ///< in the argument block, in bytes
  std::uint32_t bytes = 0;   ///< in the argument block
  std::uint32_t element_bytes = 0;
  std::uint32_t element_align = 0;  ///< alignment in bytes that the address must have
  Access access = Access::none;     ///< includes accesses after a certain failure, whose code forward() removes
};

struct Local {
  Type type = Type::none;
  bool failure = false;  ///< it is true in a thread that failed where it could not return: see outlive_failures()
};

/// A place in a kernel that asks in 32 bits for a size which the argument block holds in 64.
struct NarrowShape {
  std::uint32_t at = 0;  ///< of the size in the argument block; kNone: computed
  Loc loc;
};

/// The decisions of a launch about a kernel's code. Each combination is traced and compiled by itself.
struct Variant {
  std::uint64_t strided = 0;  ///< by parameter: an array that is not contiguous, or too large for 32-bit sizes
  std::uint64_t absent = 0;   ///< by parameter: an array that is left out
  bool wide = false;          ///< more threads than 32 bits count, in several dispatches
  Debug debug;                ///< the checks that it makes
  bool adjoint = false;       ///< for ir::adjoint: functions with derivatives of their own stay functions, with these
                              ///< derivatives (Derivatives); nothing is reported
  bool operator==(const Variant&) const = default;
};

/// An array that a kernel declares, in the memory that the threads of a workgroup share, or one for each thread. Its
/// content is undefined when the workgroup starts.
struct KernelArray {
  Type type = Type::none;   ///< of its scalars; no other type is accessed there
  std::uint32_t count = 0;  ///< scalars
  bool words = false;       ///< scalars narrower than 32 bits lie in a word each, for atomic operations on them
  Loc loc;
  bool is_private = false;  ///< each thread has its own, without atomic operations

  std::uint64_t bytes() const { return std::uint64_t{count} * static_cast<std::uint64_t>(words ? 4 : ir::bytes(type)); }
};

/// The part of a kernel by which it is launched. Passes keep it, whatever they do to the body.
struct Interface {
  std::string name;
  Loc loc;
  std::vector<Param> params;
  std::uint32_t args_bytes = 4;  ///< size of the argument block
  std::uint32_t tid_rank = 0;    ///< N of tid<N>(); 0 if the kernel never calls it
  std::uint32_t tid_offset = 0;  ///< in the argument block: start of a wide dispatch, and then extent_offset()
  bool wide = false;             ///< see Variant
  Loc narrow_tid;                ///< the first place that asks for tid() in 32 bits, or empty
  std::vector<NarrowShape> narrow_shapes;
  std::uint32_t block = 256;  ///< threads per workgroup
  bool fixed_block = false;   ///< the body was built for workgroups of exactly `block`, numbered through the launch
  bool by_handles = false;    ///< it reads structures that it finds by the 64-bit values of their handles
  bool contracts = true;      ///< contract() makes fused operations, of its adjoint too; else all is rounded as written
  std::vector<KernelArray> arrays;  ///< named by the operation `kernel_array`
  std::uint32_t report_offset = 0;  ///< in the argument block: see report::kArgumentBytes; 0 if nothing is reported
  std::vector<Message> messages;    ///< those that may be reported; a record names its message by its place here

  /// The place in the argument block of an extent of tid<N>(), from dimension 1 on, with its reciprocal: a divisor, a
  /// multiplier and a shift (see tracing::thread_coordinate()). The extents of all dimensions follow each other.
  std::uint32_t extent_offset(int dimension) const {
    return tid_offset + (wide ? 8 : 0) + kExtentBytes * static_cast<std::uint32_t>(dimension - 1);
  }
  static constexpr std::uint32_t kExtentBytes = 12;
};

/// The derivatives that the user gives for a function, by numbers in the kernel's table.
struct Derivatives {
  /// The function that computes the gradient of this one; kNone: the gradient is derived from the body. It takes the
  /// inputs, then a gradient for each real output; it returns a gradient for each real input.
  std::uint32_t gradient = kNone;
  /// The function, of the same inputs and outputs, that replaces this one when the adjoint runs the kernel again.
  std::uint32_t replay = kNone;
  /// For a kernel: some function has derivatives of its own that this module lacks, because it was not traced with
  /// Variant::adjoint.
  bool left_out = false;

  bool any() const { return gradient != kNone || replay != kNone; }
};

/// A kernel with the functions that it calls, or one of these functions. It is in traced form (locals, break, continue,
/// return) or in normal form (results, loop-carried values).
///
/// A function is a module of its own with the interface of its kernel, so that it reads the kernel's arguments and the
/// thread's number. Its body starts with a `param` for each input, ends with a `yield` of its results if it has any,
/// and holds no `return_`. It calls only functions that stand before it in the kernel's table, so there is no
/// recursion. The functions that compute its gradient and replay it may stand anywhere.
struct Module : Interface {
  std::vector<Inst> insts;
  std::vector<Id> operands;
  std::vector<Region> regions{Region{}};  ///< regions[0] is the body
  std::vector<Local> locals;
  std::vector<std::shared_ptr<const Module>> functions;  ///< of a kernel; `call` names them by number, in functions too
  std::string function;                                  ///< the name of a function; empty for a kernel
  std::uint32_t num_inputs = 0;                          ///< of a function
  Derivatives derivatives;
  /// The user's call of a library function, while the body of that function is recorded. It stands in every instruction
  /// and every error instead of a line of the library.
  Loc place;

  const Interface& as_interface() const { return *this; }

  std::span<const Id> args(Id id) const { return {operands.data() + insts[id].first_arg, insts[id].num_args}; }
  Id arg(Id id, int k) const { return operands[insts[id].first_arg + k]; }
  const Inst& operator[](Id id) const { return insts[id]; }

  /// Adds an instruction, which no region has yet. `args` must not lie in `operands`.
  Id add(const Inst& inst, std::span<const Id> args);

  /// The values that a function returns: the operands of the `yield` that ends its body.
  std::span<const Id> outputs() const;

  /// The array parameter whose address `base` is; null if the address is computed.
  const Param* array_of(Id base) const;
  /// The array of the kernel that `base` names; null if it is an address of device memory.
  const KernelArray* kernel_array_of(Id base) const;
};

/// The demands of a kernel on its workgroups.
struct GroupUse {
  bool together = false;           ///< threads exchange values, so that every workgroup must be whole
  bool fences = false;             ///< fences order what threads write for others
  bool subgroups = false;          ///< it uses subgroups, so that the block must be a multiple of their size
  std::uint64_t shared_bytes = 0;  ///< of workgroup memory, alignment included
  Loc loc;                         ///< of the first operation that makes threads work together
  Loc subgroup_loc;                ///< of the first operation on subgroups

  /// Returns whether a thread may read what another one writes in the same launch.
  bool hands_over() const { return together || fences; }
};
GroupUse group_use(const Module& module);

/// The printed form, one instruction a line; equal kernels print equally, because values are numbered in the order of
/// execution. With `lines`, each instruction ends with its place in the user's source.
std::string print(const Module& module, bool lines = false);

/// A hash of everything that decides a kernel's behaviour. Its name has no part in it, and neither have source lines
/// except those of messages.
detail::Hash128 hash(const Module& module);

/// Checks every rule of the IR.
/// Errors: internal_error() with the first broken rule, because only a fault of the library breaks one.
void verify(const Module& module);

/// The first broken rule as text; empty if the module keeps all.
std::string first_violation(const Module& module);

/// By function of a kernel's table: whether a call does more than compute values, such as write to memory.
std::vector<char> have_effects(std::span<const std::shared_ptr<const Module>> functions);

/// Throws an Error that names the kernel, and the place given or, without one, the kernel's.
[[noreturn]] void refuse(ErrorKind kind, const Module& module, const std::string& message, Loc loc = {});
/// Throws an Error(invalid_kernel) that names the kernel, the function in it, and the place (Module::place if that is
/// set).
[[noreturn]] void fail(const Module& module, Loc loc, const std::string& message);
/// The number of calls of fail() by this host thread. A trace sees by it that an error of its kernel was caught on the
/// way to the launch.
std::uint64_t failures();

}  // namespace weft::ir
