// The trace itself: slots, literals, composite operations, memory access of elements.
#include "trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <memory_resource>

#include "../ir/evaluate.h"
#include "../support/error.h"
#include "checks.h"

namespace weft {

namespace tracing {
class Arena {
 public:
  void* allocate(std::size_t bytes, std::size_t align) { return memory_.allocate(bytes, align); }

 private:
  std::pmr::monotonic_buffer_resource memory_;
};
}  // namespace tracing

namespace {
thread_local tracing::Trace* t_current = nullptr;
std::atomic<std::uint32_t> g_traces{0};

constexpr std::uint32_t align_up(std::uint32_t n, std::uint32_t a) { return (n + a - 1) / a * a; }
}  // namespace

tracing::Trace::Trace(ir::Module& module, const ir::Variant& variant)
    : arena_(std::make_unique<tracing::Arena>()),
      builder_(module, ir::Builder::kMaxTracedDepth),
      variant_(variant),
      serial_(++g_traces),
      failures_(ir::failures()),
      outer_(t_current) {
  if (outer_)
    ir::refuse(ErrorKind::invalid_kernel, module,
               "it is launched (and so traced) inside another kernel, \"" + outer_->module().name + "\"");
  module.wide = variant.wide;
  t_current = this;
}

tracing::Trace::Trace(ir::Module& function, tracing::Trace& caller)
    : stays_function(caller.stays_function),
      arena_(std::make_unique<tracing::Arena>()),
      builder_(function, ir::Builder::kMaxTracedDepth),
      variant_(caller.variant_),
      serial_(++g_traces),
      failures_(ir::failures()),
      outer_(&caller),
      is_function_(true) {
  if (caller.builder_.rounding() == ir::kRounded) builder_.set_rounding(ir::kRounded);
  t_current = this;
}

tracing::Trace::~Trace() { t_current = outer_; }

tracing::Trace& tracing::Trace::kernel() {
  tracing::Trace* t = this;
  while (t->caller()) t = t->caller();
  return *t;
}

bool tracing::Trace::active() { return t_current != nullptr; }

tracing::Trace& tracing::Trace::current(Loc loc) {
  if (!t_current)
    throw Error(ErrorKind::invalid_kernel,
                "a traced value (Float, Vec3, ...) is used outside a kernel; on the host use float, vec3, ...", {},
                loc);
  tracing::Trace& t = *t_current;
  if (t.broken_) t.fail(loc, t.deferred_);
  if (ir::failures() != t.failures_) {
    // The kernel goes on where it should have ended.
    t.break_off(loc, "a weft::Error of this kernel is caught inside it, where it must come through to the launch");
    t.fail(loc, t.deferred_);
  }
  if (t.awaits_else_) {
    t.break_off(loc, "a native else follows an If; write Else or ElseIf");
    t.fail(loc, t.deferred_);
  }
  return t;
}

tracing::Trace* tracing::Trace::if_sound() {
  tracing::Trace* t = t_current;
  return t && !t->broken_ && ir::failures() == t->failures_ ? t : nullptr;
}

tracing::Trace::InPlace::InPlace(tracing::Trace& caller, const std::string& function)
    : trace_(caller),
      function_(caller.module().function),
      serial_(caller.serial_),
      start_(caller.start_),
      piece_(caller) {
  trace_.module().function = function;
  trace_.around_.push_back(serial_);
  trace_.serial_ = ++g_traces;
  trace_.start_ = trace_.builder_.region();
  trace_.builder_.end_chain();
}

tracing::Trace::InPlace::~InPlace() {
  trace_.builder_.end_chain();
  trace_.module().function = std::move(function_);
  trace_.around_.pop_back();
  trace_.serial_ = serial_;
  trace_.start_ = start_;
}

tracing::Trace& tracing::Trace::owner_of(std::uint32_t serial, Loc loc) {
  tracing::Trace& t = current(loc);
  if (t.serial_ == serial) return t;
  for (const tracing::Trace* around = &t; around; around = around->caller())
    if (around->serial_ == serial || std::ranges::find(around->around_, serial) != around->around_.end())
      ir::fail(t.module(), loc, "it uses a traced value of its caller that it captured: pass that as an argument");
  ir::fail(t.module(), loc,
           "a traced value of another kernel, or of another trace of this one, is used: keep no traced "
           "values outside the kernel's function");
}

bool tracing::Trace::next_param_is_strided() { return variant_.strided >> module().params.size() & 1; }
bool tracing::Trace::next_param_is_absent() { return variant_.absent >> module().params.size() & 1; }

ir::Param& tracing::Trace::add_param(ir::Param param) {
  ir::Module& m = module();
  if (m.params.size() == 64)
    ir::refuse(ErrorKind::unsupported, m, "more than 64 parameters (an indexed array takes one a dimension besides)");
  if (param.name.empty())
    param.name = fmt::format("argument {}{}{}{}", argument_, field_, part_.empty() ? "" : ", ", part_);
  std::uint32_t align = param.kind == ir::Param::Kind::value ? std::min<std::uint32_t>(param.element_align, 8) : 8;
  param.offset = align_up(m.args_bytes, align);
  m.args_bytes = param.offset + param.bytes;
  m.params.push_back(std::move(param));
  return m.params.back();
}

void tracing::Trace::defer_error(Loc loc, std::string message) {
  if (deferred_.empty()) {
    deferred_loc_ = module().place ? module().place : loc;
    deferred_ = std::move(message);
  }
}

void tracing::Trace::break_off(Loc loc, std::string message) {
  defer_error(loc, std::move(message));
  broken_ = true;
}

std::string detail::exception_leaves(const std::string& what) {
  return fmt::format("an exception leaves {}: in kernels it may not be caught, as what was traced before it stays",
                     what);
}

void tracing::Trace::require_inline() {
  if (!is_function_) return;
  break_off(module().loc,
            fmt::format("func \"{}\" catches what weft throws to trace it in place of its calls: a kernel may catch "
                        "exceptions of its own types only, not (...)",
                        module().function));
  throw InlineRequired{};
}

void tracing::Trace::fail(Loc loc, const std::string& message) {
  const bool deferred = !deferred_.empty();
  ir::fail(module(), deferred ? deferred_loc_ : loc, deferred ? deferred_ : message);
}

void tracing::refuse(Loc loc, const std::string& message) { Trace::current(loc).fail(loc, message); }

void tracing::Trace::finish() {
  current();
  if (!deferred_.empty()) ir::fail(module(), deferred_loc_, deferred_);
  if (builder_.depth() != 1) internal_error("a kernel ended inside a block");
  if (is_function_) return;
  module().args_bytes = align_up(module().args_bytes, 4);
  // What a function knows of its kernel is known only now: another function may have asked for more coordinates.
  for (Instance& instance : instances) {
    const Loc loc = instance.function->loc;
    static_cast<ir::Interface&>(*instance.function) = module().as_interface();
    instance.function->loc = loc;
    module().functions.push_back(std::move(instance.function));
  }
}

namespace tracing {

using ir::Op;
using ir::Type;

namespace {
ir::Builder& builder(Loc loc = {}) { return Trace::current(loc).builder(); }
Type type_of(Id id) { return Trace::current().module()[id].type; }

Id out_of_range(Type type, const std::string& value, Loc loc) {
  ir::fail(Trace::current(loc).module(), loc,
           fmt::format("the literal {} is out of the range of {}", value, user_name(type)));
}
}  // namespace

// ---- Slots

Slot::Slot(Id value) : value_(value), region_(builder().region()), trace_(Trace::current().serial()) {}

Slot::Slot(const Named& named, Type type)
    : value_(ir::kNone), region_(builder().region()), trace_(Trace::current().serial()), named_(named), type_(type) {}

void Slot::make_local() const {
  ir::Builder& b = builder();
  local_ = b.local(type_of(value_));
  b.local_set_in(region_, local_, value_);
}

Id Slot::read(Loc loc) const {
  Trace& t = Trace::owner_of(trace_, loc);
  ir::Builder& b = t.builder();
  if (named_.target) {
    if (named_.target->choice) return read_choice(loc);
    const Slot* self = this;
    Id value;
    tracing::read(&self, 1, &value, loc);
    return value;
  }
  if (local_ == ir::kNone) {
    if (!b.is_open(region_)) t.fail(loc, "a variable is used outside the block in which it was declared");
    if (!b.loop_since(region_)) return value_;
    make_local();
  }
  return b.local_get(local_, loc);
}

void Slot::assign(Id value, Loc loc) {
  Trace& t = Trace::owner_of(trace_, loc);
  ir::Builder& b = t.builder();
  if (named_.target) {
    if (named_.target->choice) return assign_choice(value, loc);
    return store(named_.address(), type_, 1, &value, loc);
  }
  assigned_ = true;
  if (fixed_) expect_no_assignment(loc);
  if (local_ == ir::kNone) {
    if (!b.is_open(region_)) t.fail(loc, "a variable is assigned outside the block in which it was declared");
    if (b.is_same(region_, b.region())) {
      value_ = value;
      return;
    }
    make_local();
  }
  b.local_set(local_, value, loc);
}

void Slot::expect_no_assignment(Loc loc) const {
  Trace& t = Trace::owner_of(trace_, loc);
  if (assigned_)
    ir::fail(t.module(), loc,
             "a select() of two host numbers that auto keeps is used as a variable, and as a value of another type: "
             "declare its type, as in UInt8 x = select(c, 1, 0)");
  if (!t.builder().is_open(region_)) t.fail(loc, "a variable is used outside the block in which it was declared");
  fixed_ = fixed_ || t.builder().loop_since(region_);
}

// ---- Elements

void* allocate(std::size_t bytes, std::size_t align) { return Trace::current().arena().allocate(bytes, align); }

namespace {
template <class T>
const T* keep(const T& value) {
  return std::construct_at(static_cast<T*>(allocate(sizeof(T), alignof(T))), value);
}
}  // namespace

Named name_of(const Address& at) { return {keep(Target{at, nullptr}), 0}; }

Named name_of(const Choice& choice) {
  const std::size_t n = std::size_t(choice.rows * choice.columns * choice.count);
  auto* slots = static_cast<Slot**>(allocate(n * sizeof(Slot*), alignof(Slot*)));
  std::copy_n(choice.slots, n, slots);
  Choice kept = choice;
  kept.slots = slots;
  return {keep(Target{{}, keep(kept)}), 0};
}

namespace {
// The address of part `index` of n; of a known one in the offset.
Address step_to(Address at, Id index, int n, int bytes, Loc loc) {
  const ir::Inst& inst = Trace::current(loc).module()[index];
  if (inst.op != Op::constant) return part_at(at, std::uint32_t(bytes), index, n, loc);
  const double k = std::clamp<double>(ir::to_double(inst.type, inst.imm), 0, n - 1);
  at.offset += std::uint32_t(k) * std::uint32_t(bytes);
  return at;
}
}  // namespace

Named name_of_part(const Choice& choice, int bytes, Loc loc) {
  const Named& first = choice.slots[0]->named();
  if (!first.in_memory()) return name_of(choice);
  Address at = first.address();
  at.loc = loc;
  if (choice.rows > 1) at = step_to(at, choice.row, choice.rows, choice.columns * bytes, loc);
  if (choice.columns > 1) at = step_to(at, choice.column, choice.columns, bytes, loc);
  return name_of(at);
}

Named name_of_all(Slot* const* slots, int count) {
  const Named& first = slots[0]->named();
  bool side_by_side = first.in_memory();
  const std::uint32_t bytes = side_by_side ? std::uint32_t(ir::bytes(slots[0]->type())) : 0;
  for (int k = 1; k < count && side_by_side; ++k)
    side_by_side =
        slots[k]->named().target == first.target && slots[k]->named().at == first.at + std::uint32_t(k) * bytes;
  return side_by_side ? first : name_of(Choice{slots, count});
}

Id Slot::known() const {
  ir::Builder& b = Trace::current().builder();
  if (value_ == ir::kNone || effects_ != b.effects() || !b.is_open(region_) || b.loop_since(region_)) return ir::kNone;
  return value_;
}

void Slot::remember(Id value) const {
  ir::Builder& b = Trace::current().builder();
  value_ = value;
  region_ = b.region();
  effects_ = b.effects();
}

Id Slot::read_choice(Loc loc) const {
  const Choice& c = *named_.target->choice;
  std::vector<Id> ids;
  for (int k = 0; k < c.rows * c.columns; ++k)
    ids.push_back(c.slots[std::uint32_t(k * c.count) + named_.at]->read(loc));
  return c.rows > 1 ? pick(ids.data(), c.rows, c.columns, c.row, c.column, loc)
                    : pick(ids.data(), c.columns, 1, c.column, loc);
}

// Each candidate gets its old value or the new one.
void Slot::assign_choice(Id value, Loc loc) const {
  const Choice& c = *named_.target->choice;
  if (c.rows * c.columns == 1) return c.slots[named_.at]->assign(value, loc);
  for (int i = 0; i < c.rows; ++i)
    for (int j = 0; j < c.columns; ++j) {
      Slot& slot = *c.slots[std::uint32_t((i * c.columns + j) * c.count) + named_.at];
      Id here = picks(c.column, j, c.columns, loc);
      if (c.rows > 1) here = binary(Op::bit_and, picks(c.row, i, c.rows, loc), here, loc);
      slot.assign(ternary(Op::select, here, value, slot.read(loc), loc), loc);
    }
}

bool read_without_access(const Slot* const* slots, int count, Id* out, Loc loc) {
  const bool in_memory = slots[0]->named().in_memory();
  if (in_memory) Trace::owner_of(slots[0]->named().address().trace, loc);
  for (int k = 0; k < count; ++k) {
    out[k] = in_memory ? slots[k]->known() : slots[k]->read(loc);
    if (in_memory && out[k] == ir::kNone) return false;
  }
  return true;
}

void read(const Slot* const* slots, int count, Id* out, Loc loc) {
  if (read_without_access(slots, count, out, loc)) return;
  load(slots[0]->named().address(), slots[0]->type(), count, out, loc);
  for (int k = 0; k < count; ++k) slots[k]->remember(out[k]);
}

void assign(Slot* const* slots, int count, const Id* values, Loc loc) {
  const Slot& first = *slots[0];
  if (first.named().in_memory()) return store(first.named().address(), first.type(), count, values, loc);
  for (int k = 0; k < count; ++k) slots[k]->assign(values[k], loc);
}

void update(Op op, Slot* const* slots, int count, const Id* values, int step, Loc loc) {
  const Slot& first = *slots[0];
  if (first.named().in_memory()) return update(op, first.named().address(), first.type(), count, values, step, loc);
  std::vector<Id> ids(static_cast<std::size_t>(count));
  read(slots, count, ids.data(), loc);
  each(op, ids.data(), 1, values, step, count, ids.data(), loc);
  assign(slots, count, ids.data(), loc);
}

// ---- Places

AsWritten::AsWritten(bool on) : builder_(builder()), before_(builder_.rounding()) {
  if (on) builder_.set_rounding(ir::kRounded);
}

CallPlace::CallPlace(Loc loc, Rounding rounding)
    : module_(&Trace::current(loc).module()), as_written_(rounding == Rounding::as_written) {
  if (module_->place)
    module_ = nullptr;
  else
    module_->place = loc;
}

CallPlace::~CallPlace() {
  if (module_) module_->place = {};
}

// ---- Literals

Id zero(Type type) { return builder().constant(type, 0); }

Id literal_int(Type type, std::int64_t value, Loc loc) {
  ir::Builder& b = builder(loc);
  if (is_float(type)) return b.constant_float(type, double(value));
  if (is_unsigned(type) ? (value < 0 || std::uint64_t(value) > mask(type))
                        : (bits(type) < 64 && (value < -(1ll << (bits(type) - 1)) || value >= 1ll << (bits(type) - 1))))
    if (!is_bool(type)) return out_of_range(type, fmt::format("{}", value), loc);
  return b.constant(type, std::uint64_t(value));
}

Id literal_uint(Type type, std::uint64_t value, Loc loc) {
  if (value <= std::uint64_t(std::numeric_limits<std::int64_t>::max()))
    return literal_int(type, std::int64_t(value), loc);
  if (is_float(type)) return builder(loc).constant_float(type, double(value));
  if (type != Type::u64) return out_of_range(type, fmt::format("{}", value), loc);
  return builder(loc).constant(type, value);
}

Id literal_real(Type type, double value, Loc loc) {
  std::uint64_t bits = ir::from_double(type, value);
  if (std::isfinite(value) && !std::isfinite(ir::to_double(type, bits)))
    return out_of_range(type, fmt::format("{}", value), loc);
  return builder(loc).constant(type, bits);
}

// ---- Operations

namespace {
Type result_type(Op op, Type operand) { return ir::info(op).result == ir::ResultRule::boolean ? Type::b1 : operand; }
}  // namespace

Id unary(Op op, Id a, Loc loc) { return builder(loc).pure(op, result_type(op, type_of(a)), {a}, loc); }
Id binary(Op op, Id a, Id b, Loc loc) {
  if (op == Op::div || op == Op::rem) check_divisor(op, a, b, loc);
  return builder(loc).pure(op, result_type(op, type_of(a)), {a, b}, loc);
}
Id ternary(Op op, Id a, Id b, Id c, Loc loc) { return builder(loc).pure(op, type_of(b), {a, b, c}, loc); }
Id convert(Type type, Id a, Loc loc) { return builder(loc).pure(Op::convert, type, {a}, loc); }
Id bitcast(Type type, Id a, Loc loc) { return builder(loc).pure(Op::bitcast, type, {a}, loc); }
Id logical_not(Id a, Loc loc) { return builder(loc).pure(Op::bit_not, Type::b1, {a}, loc); }

Id floor_div(Id a, Id b, Loc loc) {
  Type t = type_of(a);
  if (is_float(t)) return unary(Op::floor, binary(Op::div, a, b, loc), loc);
  Id q = binary(Op::div, a, b, loc);
  if (is_unsigned(t)) return q;
  // One less where the division was not exact and the signs differ.
  Id r = binary(Op::rem, a, b, loc), none = zero(t);
  Id differ = binary(Op::lt, binary(Op::bit_xor, r, b, loc), none, loc);
  Id lower = binary(Op::bit_and, binary(Op::ne, r, none, loc), differ, loc);
  return ternary(Op::select, lower, binary(Op::sub, q, literal_int(t, 1, loc), loc), q, loc);
}

Id sign(Id a, Loc loc) {
  Type t = type_of(a);
  Id none = zero(t), one = literal_int(t, 1, loc);
  Id positive = ternary(Op::select, binary(Op::lt, none, a, loc), one, none, loc);
  if (is_unsigned(t)) return positive;
  return ternary(Op::select, binary(Op::lt, a, none, loc), literal_int(t, -1, loc), positive, loc);
}

Id clamp(Id x, Id low, Id high, Loc loc) { return binary(Op::min, binary(Op::max, x, low, loc), high, loc); }

Id round_away(Id a, Loc loc) {
  // trunc(|a| + 0.5) would round 0.49999997 up: compare the fraction instead, which is exact.
  Type t = type_of(a);
  Id whole = unary(Op::trunc, a, loc), part = unary(Op::abs, binary(Op::sub, a, whole, loc), loc);
  Id step = ternary(Op::select, binary(Op::lt, a, zero(t), loc), literal_int(t, -1, loc), literal_int(t, 1, loc), loc);
  Id up = binary(Op::le, literal_real(t, 0.5, loc), part, loc);
  return ternary(Op::select, up, binary(Op::add, whole, step, loc), whole, loc);
}

Id is_finite(Id a, Loc loc) {
  return logical_not(binary(Op::bit_or, unary(Op::is_nan, a, loc), unary(Op::is_inf, a, loc), loc), loc);
}

// ---- Vectors

Id all_equal(const Id* a, const Id* b, int n, Loc loc) {
  Id all = binary(Op::eq, a[0], b[0], loc);
  for (int i = 1; i < n; ++i) all = binary(Op::bit_and, all, binary(Op::eq, a[i], b[i], loc), loc);
  return all;
}

void each(Op op, const Id* a, int a_step, const Id* b, int b_step, int n, Id* out, Loc loc) {
  for (int i = 0; i < n; ++i) out[i] = binary(op, a[i * a_step], b[i * b_step], loc);
}

void matmul(const Id* a, const Id* b, int rows, int inner, int columns, Id* out, Loc loc) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      Id sum = binary(Op::mul, a[i * inner], b[j], loc);
      for (int k = 1; k < inner; ++k)
        sum = binary(Op::add, sum, binary(Op::mul, a[i * inner + k], b[k * columns + j], loc), loc);
      out[i * columns + j] = sum;
    }
}

// ---- Parts by traced index

namespace {
// Wide enough for the number of any part.
Id wide_index(Id index, Loc loc) {
  const Type t = type_of(index);
  return bits(t) < 32 ? convert(Type::i32, index, loc) : index;
}
}  // namespace

Id pick(const Id* values, int n, int step, Id index, Loc loc) {
  if (n == 1) return values[0];
  index = wide_index(index, loc);
  Id r = values[(n - 1) * step];
  for (int k = n - 2; k >= 0; --k) {
    const Id here = binary(Op::le, index, literal_int(type_of(index), k, loc), loc);
    r = ternary(Op::select, here, values[k * step], r, loc);
  }
  return r;
}

Id pick(const Id* values, int rows, int columns, Id row, Id column, Loc loc) {
  std::vector<Id> picked(static_cast<std::size_t>(rows));
  for (int i = 0; i < rows; ++i) picked[std::size_t(i)] = pick(values + i * columns, columns, 1, column, loc);
  return pick(picked.data(), rows, 1, row, loc);
}

Id picks(Id index, int k, int n, Loc loc) {
  if (n == 1) return literal_int(Type::b1, 1, loc);
  index = wide_index(index, loc);
  const Id here = literal_int(type_of(index), k, loc);
  if (k == 0) return binary(Op::le, index, here, loc);
  if (k == n - 1) return binary(Op::le, here, index, loc);
  return binary(Op::eq, index, here, loc);
}

Address part_at(Address at, std::uint32_t step, Id index, int n, Loc loc) {
  // In 64 bits: the scalars of an array may be more than a 32-bit index counts.
  index = wide_index(index, loc);
  const Type t = type_of(index);
  Id part = binary(Op::min, index, literal_int(t, n - 1, loc), loc);
  if (is_signed(t)) part = binary(Op::max, part, zero(t), loc);
  const auto times = [&](Id i, std::uint32_t scale) {
    if (type_of(i) != Type::i64) i = convert(Type::i64, i, loc);
    return binary(Op::mul, i, literal_int(Type::i64, scale, loc), loc);
  };
  // Whole parts where they divide the stride, as they always do in shared memory, which has no addresses of bytes.
  const std::uint32_t unit = at.stride % step == 0 ? step : 1;
  at.index = binary(Op::add, times(at.index, at.stride / unit), times(part, step / unit), loc);
  at.stride = unit;
  at.align = std::min(at.align, step & (~step + 1));
  at.loc = loc;
  return at;
}

int index_out_of_range(std::int64_t index, int n, Loc loc) {
  if (builder(loc).in_dead_block()) return 0;
  ir::fail(Trace::current(loc).module(), loc, fmt::format("index {} is out of range: there are {}, from 0", index, n));
}

// ---- Memory

namespace {
ir::MemoryRef part(const Address& at, Type type, int first, Loc loc) {
  Trace::owner_of(at.trace, loc);
  ir::MemoryRef ref{at.base, at.index, at.stride, at.offset + std::uint32_t(first * bytes(type)), at.align};
  // The greatest power of two that divides the offset as well.
  if (ref.offset) ref.align = std::min(ref.align, ref.offset & (~ref.offset + 1));
  return ref;
}
}  // namespace

void load(const Address& from, Type type, int count, Id* out, Loc loc) {
  if (!loc) loc = from.loc;
  ir::Builder& b = builder(loc);
  Guard guard(from, loc);
  // A boolean is a byte in memory.
  Type stored = is_bool(type) ? Type::u8 : type;
  for (int k = 0; k < count; k += 4) {
    int width = std::min(4, count - k);
    Id wide = b.load(stored, width, part(from, stored, k, loc), loc);
    for (int j = 0; j < width; ++j) {
      Id value = width == 1 ? wide : b.result(wide, std::uint32_t(j), stored);
      out[k + j] = is_bool(type) ? binary(Op::ne, value, zero(stored), loc) : value;
    }
  }
  guard.close(out, count);
}

void store(const Address& to, Type type, int count, const Id* values, Loc loc) {
  if (!loc) loc = to.loc;
  ir::Builder& b = builder(loc);
  Guard guard(to, loc);
  FiniteGuard finite(to, type, {values, std::size_t(count)}, loc);
  Type stored = is_bool(type) ? Type::u8 : type;
  for (int k = 0; k < count; k += 4) {
    int width = std::min(4, count - k);
    Id group[4];
    for (int j = 0; j < width; ++j) group[j] = is_bool(type) ? convert(stored, values[k + j], loc) : values[k + j];
    b.store(stored, {group, std::size_t(width)}, part(to, stored, k, loc), loc);
  }
  finite.close();
  guard.close();
}

void update(Op op, const Address& at, Type type, int count, const Id* values, int step, Loc loc) {
  const auto value = [&](int k) { return values[k * step]; };
  std::vector<Id> ids(static_cast<std::size_t>(count));
  if ((op == Op::add || op == Op::sub) && builder(loc).module()[at.base].op == Op::gradient_base) {
    std::vector<Id> added;
    for (int k = 0; k < count; ++k) added.push_back(op == Op::add ? value(k) : unary(Op::neg, value(k), loc));
    return atomic(Op::atomic_add, at, type, count, added.data(), nullptr, ids.data(), loc);
  }
  load(at, type, count, ids.data(), loc);
  for (int k = 0; k < count; ++k) ids[std::size_t(k)] = binary(op, ids[std::size_t(k)], value(k), loc);
  store(at, type, count, ids.data(), loc);
}

void atomic(Op op, const Address& to, Type type, int count, const Id* values, const Id* expected, Id* out, Loc loc) {
  if (!loc) loc = to.loc;
  ir::Builder& b = builder(loc);
  Guard guard(to, loc);
  FiniteGuard finite(to, type, {values, std::size_t(count)}, loc);
  const Type stored = is_bool(type) ? Type::u8 : type;
  if (b.module()[to.base].op == Op::kernel_array) {
    ir::KernelArray& array = Trace::current(loc).kernel().module().arrays[b.module()[to.base].imm];
    if (array.is_private)
      ir::fail(b.module(), loc, "an atomic operation on a private array, which no other thread sees: use = or +=");
    if (bytes(stored) < 4) array.words = true;
  }
  auto in = [&](Id x) { return is_bool(type) ? convert(stored, x, loc) : x; };
  for (int k = 0; k < count; ++k) {
    const Id value = in(values[k]);
    const ir::MemoryRef at = part(to, stored, k, loc);
    const Id before =
        expected ? b.atomic(op, stored, {in(expected[k]), value}, at, loc) : b.atomic(op, stored, {value}, at, loc);
    out[k] = is_bool(type) ? binary(Op::ne, before, zero(stored), loc) : before;
  }
  finite.close(out, count);
  guard.close(out, count);
}

Address atomic_address(const Slot& element, Loc loc) {
  if (!element.named().in_memory())
    ir::fail(Trace::current(loc).module(), loc,
             "an atomic operation on a variable, which no other thread sees: its first operand is an element of an "
             "array, as in atomic_add(a[i], x), or a name for one (auto& e = a[i])");
  return element.named().address();
}

// ---- Threads

namespace {
std::string count_of_coordinates(int n) { return fmt::format("{} coordinate{}", n, n == 1 ? "" : "s"); }
}  // namespace

Id thread_coordinate(Type type, int k, int n, Loc loc) {
  ir::Module& m = Trace::current(loc).kernel().module();
  if (m.tid_rank == 0) {
    m.tid_rank = std::uint32_t(n);
    m.tid_offset = align_up(m.args_bytes, m.wide ? 8 : 4);
    m.args_bytes = m.extent_offset(n);
  }
  if (k == 0 && type == Type::i32 && !m.narrow_tid) m.narrow_tid = loc;
  if (int(m.tid_rank) != n)
    ir::fail(m, loc,
             fmt::format("tid() is asked for {} here, but for {} before", count_of_coordinates(n),
                         count_of_coordinates(int(m.tid_rank))));
  ir::Builder& b = builder(loc);
  // The last dimension runs fastest. Division by an extent is a multiplication by its reciprocal, which the host puts
  // into the argument block: q = mul_hi(2 n, multiplier) >> shift (Granlund and Montgomery 1994), exact for n < 2^31.
  Id rest = b.thread_id();
  for (int d = n - 1; d > k; --d) {
    const std::uint32_t at = m.extent_offset(d);
    Id doubled = binary(Op::shl, rest, literal_int(Type::u32, 1, loc), loc);
    Id high = binary(Op::mul_hi, doubled, b.arg(Type::u32, at + 4), loc);
    rest = binary(Op::shr, high, b.arg(Type::u32, at + 8), loc);
  }
  if (k > 0) {
    const std::uint32_t at = m.extent_offset(k);
    Id extent = b.arg(Type::u32, at);
    Id doubled = binary(Op::shl, rest, literal_int(Type::u32, 1, loc), loc);
    Id high = binary(Op::mul_hi, doubled, b.arg(Type::u32, at + 4), loc);
    Id quotient = binary(Op::shr, high, b.arg(Type::u32, at + 8), loc);
    rest = binary(Op::sub, rest, binary(Op::mul, quotient, extent, loc), loc);
  }
  if (k == 0 && m.wide) {
    Id whole = binary(Op::add, convert(Type::i64, rest, loc), b.arg(Type::i64, m.tid_offset), loc);
    return type == Type::i64 ? whole : convert(type, whole, loc);
  }
  return type == Type::i64 ? convert(type, rest, loc) : bitcast(type, rest, loc);
}

// ---- Short circuit

void begin_short_circuit(Id left, bool or_else, Loc loc) {
  builder(loc).open_if(or_else ? logical_not(left, loc) : left, loc);
}

int exceptions() { return std::uncaught_exceptions(); }

void leave_short_circuit(int exceptions, Loc loc) {
  Trace* t = Trace::if_sound();
  if (t && std::uncaught_exceptions() != exceptions)
    t->break_off(loc, detail::exception_leaves("an operand of && or ||"));
}

Id end_short_circuit(Id left, Id right, bool or_else, Loc loc) {
  return builder(loc).close_short_circuit(left, right, or_else, loc);
}

}  // namespace tracing
}  // namespace weft
