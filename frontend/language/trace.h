// The kernel being traced on this thread, and the plain functions that the traced types are thin faces of.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../ir/builder.h"
#include "../support/loc.h"

namespace weft {

namespace tracing {
struct Element;
class Arena;
}  // namespace tracing

namespace tracing {

/// One tracing of a kernel: the module under construction. Opened by Kernel, one at a time per thread.
class Trace {
 public:
  Trace(ir::Module& module, const ir::Variant& variant);
  /// The trace of a function that `caller` calls.
  Trace(ir::Module& function, Trace& caller);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The trace of this thread.
  /// Errors: Error(invalid_kernel) when no kernel is being traced on this thread, or an exception has broken its trace.
  static Trace& current(Loc loc = {});
  static bool active();
  /// The current trace, for destructors: null if nothing is traced, or if the trace is broken.
  static Trace* if_sound();
  /// A number of its own for each trace of the process, and for each function while it is traced in place of a call.
  std::uint32_t serial() const { return serial_; }
  /// The trace of the kernel: this one, or, for a function, the one at the end of its callers.
  Trace& kernel();
  /// The trace from which a function is called. Null for a kernel.
  Trace* caller() const { return is_function_ ? outer_ : nullptr; }

  /// Returns the current trace, and refuses a value of another trace, by its serial().
  static Trace& owner_of(std::uint32_t serial, Loc loc);

  ir::Builder& builder() { return builder_; }
  ir::Module& module() { return builder_.module(); }

  /// Reserves space in the argument block for the next parameter and describes it.
  ir::Param& add_param(ir::Param param);
  /// The choices of the launch for the next array parameter.
  bool next_param_is_strided();
  bool next_param_is_absent();
  /// These name the next parameter. An argument of a launch may take several, which are in messages "argument 2",
  /// "argument 2.field" and "argument 2, <part>".
  void begin_argument() { ++argument_, field_.clear(), part_.clear(); }
  void begin_field(std::string field) { field_ = std::move(field), part_.clear(); }
  void begin_part(std::string part) { part_ = std::move(part); }

  Debug debug() const { return variant_.debug; }
  /// Whether the trace is for the adjoint (Variant::adjoint).
  bool adjoint() const { return variant_.adjoint; }
  /// Memory that lasts as long as the trace.
  tracing::Arena& arena() { return *arena_; }
  /// The elements that were named so far, in debug mode; Address::element is one more than a place here.
  std::vector<tracing::Element> elements;
  /// The names in messages of the arrays that elements hold, in debug mode.
  std::vector<std::string> held_arrays;
  /// The local that is true in a thread that failed where it could not return (see stop_thread); kNone: there is none.
  std::uint32_t stopped = ir::kNone;

  /// Remembers an error that was found where none may be thrown (a destructor); the first one is reported at the end.
  void defer_error(Loc loc, std::string message);
  /// Remembers an error as defer_error() does, after an exception has left the trace in a state that makes no sense: if
  /// the kernel catches the exception, the next operation that it traces throws the error.
  void break_off(Loc loc, std::string message);
  /// Says that an If is closed and that its `for` runs once more, for the code after `else`. Only an Else or ElseIf may
  /// stand there: the code of a native `else` would belong to no condition, so the next operation traced is an error.
  void await_else(bool awaits) { awaits_else_ = awaits; }
  /// Throws the deferred error, which is the cause of this one, or this one if none was deferred.
  [[noreturn]] void fail(Loc loc, const std::string& message);
  void finish();

  /// A function of the kernel, traced for one form of its arguments.
  struct Instance {
    std::uint64_t func;               ///< FuncCore::number
    std::vector<std::uint32_t> form;  ///< the other facts that decide its code: types of inputs, layouts of arrays
    std::shared_ptr<ir::Module> function;
  };
  /// The instances by number. The kernel's trace keeps them, and the calls.
  std::vector<Instance> instances;
  /// A func() whose body is being traced, or its gradient function.
  struct Call {
    std::uint64_t func;  ///< FuncCore::number; 0 for a gradient function
    std::string name;
    bool gradient = false;
  };
  /// The open calls, the innermost last.
  std::vector<Call> calls;

  /// Has the sums and products that are traced while the object lives contracted among themselves alone, as those of a
  /// function that is called (see ir::is_contractible). Where all is rounded as it is written, nothing changes.
  class Piece {
   public:
    explicit Piece(Trace& trace) : builder_(trace.builder_), before_(builder_.rounding()) {
      if (before_ != ir::kRounded) builder_.set_rounding(++trace.pieces_);
    }
    ~Piece() { builder_.set_rounding(before_); }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;

   private:
    ir::Builder& builder_;
    const std::uint64_t before_;
  };

  /// Marks code that is traced while the object lives as the body of a function, traced in place of its call. Messages
  /// name the function. Values and loops of the caller are refused there as in a function that is called, no Else
  /// continues an If on the other side of the call, and no product of one side is contracted with a sum of the other:
  /// neither whether a call is valid nor how its values are rounded must depend on how it is traced.
  class InPlace {
   public:
    InPlace(Trace& caller, const std::string& function);
    ~InPlace();
    InPlace(const InPlace&) = delete;
    InPlace& operator=(const InPlace&) = delete;

   private:
    Trace& trace_;
    std::string function_;
    std::uint32_t serial_;
    ir::RegionId start_;
    Piece piece_;
  };

  /// Thrown out of a function's trace: the call is traced in its place instead.
  struct InlineRequired {};
  /// Whether the current place is in a loop of the kernel, or of the function that is being traced.
  bool in_loop() const { return builder_.loop_since(start_); }
  /// Has the current function traced in place of its call, for operations that only code of the kernel itself can do,
  /// such as to end the thread.
  void require_inline();
  /// Whether a function, with all that it calls, is never traced in place of its call. Threads that fail go on in it.
  bool stays_function = false;

 private:
  std::unique_ptr<tracing::Arena> arena_;
  ir::Builder builder_;
  ir::Variant variant_;
  int argument_ = 0;
  std::string field_, part_;
  std::uint32_t serial_;
  ir::RegionId start_ = 0;             ///< the region in which the kernel or function began
  std::uint64_t pieces_ = 0;           ///< so far
  std::vector<std::uint32_t> around_;  ///< serials of the callers of functions that are traced in place
  Loc deferred_loc_;
  std::string deferred_;
  bool broken_ = false;
  std::uint64_t failures_;  ///< ir::failures() when the trace began
  Trace* outer_;
  bool is_function_ = false;
  bool awaits_else_ = false;
};

}  // namespace tracing

namespace detail {
/// The message about an exception that leaves a part of a kernel.
std::string exception_leaves(const std::string& what);
}  // namespace detail

namespace tracing {

using ir::Id;

/// The place of an element of an array, and the properties of accesses there.
struct Address {
  Id base = ir::kNone;
  Id index = ir::kNone;
  std::uint32_t stride = 0;
  std::uint32_t offset = 0;
  std::uint32_t align = 1;    ///< of base + index * stride; the offset is taken into account by the functions below
  Loc loc;                    ///< the place where the element was named: for accesses without a place of their own
  std::uint32_t element = 0;  ///< debug mode: one more than the place in Trace::elements
  std::uint32_t trace = Trace::current().serial();  ///< the trace in which it was named
};

class Slot;

/// One of rows * columns variables, chosen by traced indices. An index out of range chooses the nearest.
struct Choice {
  Slot* const* slots;  ///< `count` scalars for each
  int count = 1;
  Id row = ir::kNone;
  int rows = 1;
  Id column = ir::kNone;
  int columns = 1;
};

/// The target of a name: a place in memory, or a choice. Lives as long as the trace.
struct Target {
  Address memory;
  const Choice* choice = nullptr;  ///< in place of memory
};

/// A part of a target, `at` bytes after its start, or `at` scalars for a choice. Without a target it names nothing.
struct Named {
  const Target* target = nullptr;
  std::uint32_t at = 0;

  Named part(std::size_t bytes, std::size_t scalars) const {
    return {target, at + std::uint32_t(target->choice ? scalars : bytes)};
  }
  bool in_memory() const { return target && !target->choice; }
  Address address() const {
    Address a = target->memory;
    a.offset += at;
    return a;
  }
};

/// Memory that lasts as long as the present trace.
void* allocate(std::size_t bytes, std::size_t align);
/// The name for the value at an address.
Named name_of(const Address& at);
/// The name for one of rows * columns candidates of `count` scalars, which lie in `slots` one after the other.
Named name_of(const Choice& choice);
/// The name for one of candidates of one scalar each, of `bytes` bytes, which lie side by side if they are in memory.
Named name_of_part(const Choice& choice, int bytes, Loc loc);
/// The name for `count` scalars as one value.
Named name_of_all(Slot* const* slots, int count);

/// A scalar of the kernel being traced: a variable of its own, or another name for an element.
///
/// C++ assigns to a variable; the trace must see the assignments that happen under traced control. Its slot therefore
/// starts as a name for a value, and is turned into a local of the module when it is first assigned in a block deeper
/// than its own, or read inside a loop that began after its declaration (a later line of that loop may assign it).
/// Locals that turn out to be assigned once are removed again by the `forward` pass.
class Slot {
 public:
  explicit Slot(Id value);
  /// Another name for a scalar that lies elsewhere.
  Slot(const Named& named, ir::Type type);
  /// Takes the present value, as C++ does; so do moves, or std::swap would make two names for one variable.
  Slot(const Slot& other) : Slot(other.read()) {}
  Slot& operator=(const Slot& other) {
    assign(other.read(), {});
    return *this;
  }

  Id read(Loc loc = {}) const;
  void assign(Id value, Loc loc);
  const Named& named() const { return named_; }
  ir::Type type() const { return type_; }
  /// Whether a variable was assigned so far.
  bool is_assigned() const { return assigned_; }
  /// Requires that a variable which stands for a choice of host numbers (HostChoice) has its first value here.
  /// Errors: Error(invalid_kernel) when it was assigned; in a loop, which may come back, also by a later assignment.
  void expect_no_assignment(Loc loc) const;
  /// The place where an element was named.
  Loc loc() const { return named_.in_memory() ? named_.target->memory.loc : Loc{}; }

  /// The value of an element that was read last, as long as a read would give the same; else kNone.
  Id known() const;
  void remember(Id value) const;

 private:
  void make_local() const;
  Id read_choice(Loc loc) const;
  void assign_choice(Id value, Loc loc) const;

  mutable Id value_;             ///< for an element: see known()
  mutable ir::RegionId region_;  ///< the region in which value_ was given
  mutable std::uint32_t local_ = ir::kNone;
  std::uint32_t trace_;  ///< the trace to which it belongs: a captured container may keep it longer
  mutable std::uint64_t effects_ = 0;
  Named named_;
  ir::Type type_ = ir::Type::none;  ///< for an element
  bool assigned_ = false;
  mutable bool fixed_ = false;  ///< see expect_no_assignment()
};

/// These read, assign and update scalars of one type, in one access if they are elements side by side.
void read(const Slot* const* slots, int count, Id* out, Loc loc);
/// Reads them unless they are parts of an element that is yet to be loaded. Returns whether it did.
bool read_without_access(const Slot* const* slots, int count, Id* out, Loc loc);
void assign(Slot* const* slots, int count, const Id* values, Loc loc);
/// Does `x op= values` to each of the scalars; `step` is 0 for one value for all.
void update(ir::Op op, Slot* const* slots, int count, const Id* values, int step, Loc loc);

/// The rounding of a library function's sums and products.
enum class Rounding {
  contracted,  ///< as that of the code around it
  as_written   ///< each by itself (ir::kRounded): for results that are decisions, or the same on all devices
};

/// Has sums and products that are recorded while the object lives rounded as they are written.
class AsWritten {
 public:
  /// \param on  false: the object does nothing
  explicit AsWritten(bool on = true);
  ~AsWritten() { builder_.set_rounding(before_); }
  AsWritten(const AsWritten&) = delete;
  AsWritten& operator=(const AsWritten&) = delete;

 private:
  ir::Builder& builder_;
  std::uint64_t before_;
};

/// Makes all operations and errors recorded while the object lives name one place: the user's call of a library
/// function instead of the lines inside it. Of nested objects the outermost counts.
class CallPlace {
 public:
  explicit CallPlace(Loc loc, Rounding rounding = Rounding::contracted);
  ~CallPlace();
  CallPlace(const CallPlace&) = delete;
  CallPlace& operator=(const CallPlace&) = delete;

 private:
  ir::Module* module_;  ///< null inside another CallPlace
  AsWritten as_written_;
};

Id zero(ir::Type type);
/// Throws Error(invalid_kernel), which names the kernel that is traced.
[[noreturn]] void refuse(Loc loc, const std::string& message);
Id literal_int(ir::Type type, std::int64_t value, Loc loc);
Id literal_uint(ir::Type type, std::uint64_t value, Loc loc);
Id literal_real(ir::Type type, double value, Loc loc);
Id unary(ir::Op op, Id a, Loc loc);
Id binary(ir::Op op, Id a, Id b, Loc loc);
Id ternary(ir::Op op, Id a, Id b, Id c, Loc loc);
/// An operation of the IR, called like the composite ones.
struct Operation {
  ir::Op op;
  Id operator()(Id a, Loc loc) const { return unary(op, a, loc); }
  Id operator()(Id a, Id b, Loc loc) const { return binary(op, a, b, loc); }
  Id operator()(Id a, Id b, Id c, Loc loc) const { return ternary(op, a, b, c, loc); }
};
Id convert(ir::Type type, Id a, Loc loc);
Id bitcast(ir::Type type, Id a, Loc loc);
/// Composite operations, written once here for every type.
Id logical_not(Id a, Loc loc);
Id floor_div(Id a, Id b, Loc loc);
Id sign(Id a, Loc loc);
Id clamp(Id x, Id low, Id high, Loc loc);
Id round_away(Id a, Loc loc);
Id is_finite(Id a, Loc loc);

/// Operations of vectors and matrices, component by component; sums run from the first to the last term.
Id all_equal(const Id* a, const Id* b, int n, Loc loc);
/// Sets out[i] = op(a[i * a_step], b[i * b_step]).
void each(ir::Op op, const Id* a, int a_step, const Id* b, int b_step, int n, Id* out, Loc loc);
/// Multiplies a (rows by inner) by b (inner by columns), row-major.
void matmul(const Id* a, const Id* b, int rows, int inner, int columns, Id* out, Loc loc);

/// The value at a traced index, by selection; an index out of range gives the nearest value.
Id pick(const Id* values, int n, int step, Id index, Loc loc);
/// The element of a matrix at a traced row and column, likewise.
Id pick(const Id* values, int rows, int columns, Id row, Id column, Loc loc);
/// Whether k is the nearest of 0 .. n-1 to the traced index.
Id picks(Id index, int k, int n, Loc loc);
/// The address of part `index` of n parts of `step` bytes, one after the other. Out of range it is the nearest part.
Address part_at(Address at, std::uint32_t step, Id index, int n, Loc loc);
/// An index to use instead of this one in code that no thread reaches (Builder::in_dead_block).
/// Errors: Error(invalid_kernel) everywhere else.
int index_out_of_range(std::int64_t index, int n, Loc loc);

/// Reads or writes `count` scalars of one element; accesses are as wide as four scalars.
void load(const Address& from, ir::Type type, int count, Id* out, Loc loc);
void store(const Address& to, ir::Type type, int count, const Id* values, Loc loc);
/// Does `element op= values` to each scalar; `step` is 0 for one value for all of them. Other threads add to gradients
/// at the same time, so additions to and subtractions from these are atomic.
void update(ir::Op op, const Address& at, ir::Type type, int count, const Id* values, int step, Loc loc);
/// Does one of the atomic_* operations on each scalar of an element, one after the other.
/// \param expected  for atomic_cas, else null
/// \param out       receives the values before
void atomic(ir::Op op, const Address& to, ir::Type type, int count, const Id* values, const Id* expected, Id* out,
            Loc loc);

/// The address of the element of an atomic operation. Errors: Error(invalid_kernel) for a variable.
Address atomic_address(const Slot& element, Loc loc);

/// Coordinate k of the n coordinates of the thread, as i32 or i64.
Id thread_coordinate(ir::Type type, int k, int n, Loc loc);

/// The value of local_id, workgroup_id or one of the numbers of subgroups, as i32.
Id thread_number(ir::Op op, Loc loc);
/// The number of threads of a workgroup, and of workgroups of the launch, as i32.
Id block_dim(Loc loc);
Id workgroup_count(Loc loc);
void barrier(Loc loc);
void subgroup_barrier(Loc loc);
void fence(Loc loc);
/// The threads that run here in step with this one, itself included; 1 where the device doesn't say. A program may let
/// it decide when something is done, not what comes out.
Id running_lanes(Loc loc);
/// These make an array of the workgroup, and of the thread, and return its base.
Id shared_array(ir::Type type, std::int64_t count, Loc loc);
Id private_array(ir::Type type, std::int64_t count, Loc loc);
/// Does one of the subgroup_* operations on each of `count` values.
/// \param lane  any integer; kNone for operations that take none
void subgroup(ir::Op op, const Id* values, int count, Id lane, std::uint64_t imm, Id* out, Loc loc);
/// The lane `delta` before this one (lane_behind(): after it), or this one if there is none.
Id lane_before(Id delta, Loc loc);
Id lane_behind(Id delta, Loc loc);
Id lane_across(Id mask, Loc loc);

/// Takes the left operand of && or ||, and opens the region in which the right operand is then evaluated.
void begin_short_circuit(Id left, bool or_else, Loc loc);
/// Breaks the trace off if an exception ends the evaluation of the right operand.
void leave_short_circuit(int exceptions, Loc loc);
/// The number of exceptions on their way.
int exceptions();
Id end_short_circuit(Id left, Id right, bool or_else, Loc loc);

}  // namespace tracing
}  // namespace weft
