// Branches and loops of the kernel that Python traces.
#include "../../../frontend/language/control.h"

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "../../../frontend/ir/module.h"
#include "../../../frontend/language/checks.h"
#include "../module.h"
#include "ids.h"

namespace weft::python {

using ir::Type;

namespace {

ir::Builder& builder() { return tracing::Trace::current(here()).builder(); }

void check_condition(Id condition) {
  check_id(condition);
  expect_type(condition, Type::b1, "a condition");
}

void while_body(Id condition) {
  check_condition(condition);
  ir::Builder& b = builder();
  b.loop_body(tracing::unless_stopped(condition, here()));
  const ir::Inst& known = b.module()[condition];
  if (known.op == ir::Op::constant && known.imm == 0) b.mark_dead();
}

void close_while() {
  builder().close_loop();
  tracing::return_if_stopped(here());
}

/// An open counted loop. The destructor of a RangeLoop takes a body that was left for a mistake of C++ code, and works
/// on whatever is traced at that moment; an exception of Python's leaves a body without any destructor being due. The
/// object is therefore dropped without it, which it needs for nothing else.
class OpenRange {
 public:
  OpenRange(Id lo, Id hi, Id step) : trace_(tracing::Trace::current(here()).serial()) {
    new (memory_.get()) detail::RangeLoop(lo, hi, step, here());
  }
  std::uint32_t trace() const { return trace_; }
  detail::RangeLoop& loop() { return *std::launder(reinterpret_cast<detail::RangeLoop*>(memory_->bytes)); }

 private:
  struct Memory {
    alignas(detail::RangeLoop) std::byte bytes[sizeof(detail::RangeLoop)];
  };
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  std::uint32_t trace_;
};

/// The open loops of this thread, the innermost last. Those of traces that an exception has ended are left over.
std::vector<OpenRange>& open_ranges() {
  thread_local std::vector<OpenRange> ranges;
  return ranges;
}

Id open_range(Id lo, Id hi, Id step) {
  for (const Id id : {lo, hi, step}) check_id(id);
  const Type type = type_of(lo);
  if (!ir::is_int(type)) throw nb::type_error("the bounds of a range are integers");
  for (const Id id : {hi, step}) expect_type(id, type, "a bound or the step of a range");
  auto& ranges = open_ranges();
  if (!tracing::Trace::current(here()).caller() && builder().depth() == 1) ranges.clear();
  ranges.emplace_back(lo, hi, step);
  return ranges.back().loop().open();
}

void close_range() {
  auto& ranges = open_ranges();
  const std::uint32_t trace = tracing::Trace::current(here()).serial();
  while (!ranges.empty() && ranges.back().trace() != trace) ranges.pop_back();
  if (ranges.empty()) throw nb::value_error("no range is open");
  OpenRange range = std::move(ranges.back());
  ranges.pop_back();
  range.loop().close();
}

}  // namespace

void add_control(nb::module_& m) {
  m.def("open_if", [](Id condition) {
    check_condition(condition);
    builder().open_if(condition, here());
  });
  m.def("open_else", [] { builder().open_else(); });
  m.def("close_if", [] { builder().close_if(); });
  m.def("open_while", [] { builder().open_loop({}, here()); });
  m.def("while_body", &while_body, nb::arg("condition"),
        "Ends the condition of the loop that open_while() has begun, and opens its body.");
  m.def("close_while", &close_while, "Closes a while loop.");
  m.def("open_range", &open_range, nb::arg("lo"), nb::arg("hi"), nb::arg("step"),
        "Opens a loop over lo, lo + step, ... before hi; gives the counter. Errors: Error for a step of 0.");
  m.def("close_range", &close_range, "Closes the innermost range.");
  m.def(
      "break_", [] { Break(here()); }, "Leaves the innermost loop.");
  m.def(
      "continue_", [] { Continue(here()); }, "Goes on with the next round of the innermost loop.");
  m.def(
      "return_", [] { Return(here()); }, "Ends the thread. Errors: Error in a function.");
  m.def("in_dead_block", [] { return builder().in_dead_block(); });
}

}  // namespace weft::python
