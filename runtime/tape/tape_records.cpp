// Records of copies, fills and the caller's functions on a tape.
#include <fmt/format.h>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"
#include "../work/capture.h"
#include "tape_core.h"

namespace weft::detail {

namespace {

/// Records `to = from`.
class CopyRecord : public TapeRecord {
 public:
  CopyRecord(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves, bool flows)
      : to_(to), from_(from), leaves_(leaves), flows_(flows) {}

  void backward(TapeCore& tape) override {
    if (!tape.nonzero(to_)) return;
    View to = tape.gradient(to_);
    if (!flows_) return to.zero();
    const View from = tape.gradient(from_);
    tape.mark_nonzero(from_);
    const bool apart = to.device() == from.device() && !may_overlap(to, from);
    if (apart) {
      accumulate(from, to, leaves_);
      return to.zero();
    }
    // The gradient goes through a copy: what one element passes on must be gone before another adds to it.
    View passed = View::like(from);
    passed.copy(to);
    to.zero();
    accumulate(from, passed, leaves_);
  }

 private:
  const View to_, from_;
  const std::span<const Leaf> leaves_;
  const bool flows_;
};

/// Records elements replaced by numbers of the host.
class FillRecord : public TapeRecord {
 public:
  explicit FillRecord(const ArrayBase& to) : to_(to) {}
  void backward(TapeCore& tape) override {
    if (tape.nonzero(to_)) tape.gradient(to_).zero();
  }

 private:
  const View to_;
};

/// Records elements that the caller replaced between two recorded operations.
class ReplacedRecord : public TapeRecord {
 public:
  explicit ReplacedRecord(const ArrayBase& elements) : elements_(elements) {}
  void backward(TapeCore& tape) override {
    if (tape.nonzero(elements_)) tape.end_gradient(elements_);
  }

 private:
  const View elements_;
};

/// Records a call of Tape::record_func.
class FunctionRecord : public TapeRecord {
 public:
  FunctionRecord(std::function<void()> function, std::vector<View> arrays,
                 std::vector<std::shared_ptr<Version>> versions)
      : function_(std::move(function)), arrays_(std::move(arrays)), versions_(std::move(versions)) {}

  void backward(TapeCore& tape) override {
    // The function sees only the arrays themselves: those that have changed since get their former elements back while
    // it runs.
    std::vector<View> now(arrays_.size());
    std::vector<std::optional<View>> then(arrays_.size());
    for (std::size_t k = 0; k < arrays_.size(); ++k) {
      then[k] = versions_[k]->copy();
      if (!then[k]) continue;
      now[k] = View::like(arrays_[k]);
      now[k].copy(arrays_[k]);
    }
    const auto put = [&](std::size_t k, const View& elements) {
      const Within taken_back(&Context::part_of_change, true);
      before_write(arrays_[k], current_stream(*arrays_[k].storage()->device), {.by = "backward()"});
      arrays_[k].copy(elements);
    };
    const auto put_back = [&] {
      for (std::size_t k = arrays_.size(); k-- > 0;)
        if (!now[k].is_null()) put(k, now[k]);
    };
    try {
      for (std::size_t k = 0; k < arrays_.size(); ++k)
        if (then[k]) put(k, *then[k]);
      call_back(function_);
    } catch (...) {
      put_back();
      throw;
    }
    put_back();
    for (const View& a : arrays_) tape.mark_nonzero(a);
  }

 private:
  const std::function<void()> function_;
  std::vector<View> arrays_;
  const std::vector<std::shared_ptr<Version>> versions_;
};

}  // namespace

TapeCore::CopyPassage TapeCore::passage(const ArrayBase& to, const ArrayBase& from,
                                        std::span<const Leaf> leaves) const {
  const bool flows = named_carries(from);
  if (flows && !holds_real(leaves))
    throw Error(ErrorKind::not_differentiable,
                "a copy of an array that carries gradients as elements of another type, which have none: copy it "
                "as what it is, or outside record()");
  if (flows)
    if (const auto by = unknown_change(from)) invalid(about_unknown_change("the source of a copy", *by));
  return {flows || named_carries(to), flows};
}

void TapeCore::copying(const ArrayBase& to, const ArrayBase& from, std::span<const Leaf> leaves) {
  const auto [any, flows] = passage(to, from, leaves);
  if (!any) return;
  if (flows) taped(from), note_replaced(from);
  mark_replaced(to);
  add(std::make_unique<CopyRecord>(to, from, leaves, flows));
}

void TapeCore::check_exposed(const HeardOperation& exposing) const {
  if (!carries(*exposing.from)) return;
  unsupported(
      "{} of an array that carries gradients while a tape records: the tape would not see what becomes of the "
      "elements; read them by to_vector(), write them by assign()",
      exposing.what);
}

void TapeCore::deriving(const ArrayBase& to, std::span<const ArrayBase* const> from, const MakeRecord& record) {
  const bool carried = named_carries(to);
  bool flows = false;
  for (const ArrayBase* a : from) flows = named_carries(*a) || flows;
  if (!carried && !flows) return;
  for (const ArrayBase* a : from) check_derived(*a);
  std::unique_ptr<TapeRecord> made = flows ? record(*this) : std::make_unique<FillRecord>(to);
  if (flows)
    for (const ArrayBase* a : from) taped(*a), note_replaced(*a);
  mark_replaced(to);
  add(std::move(made));
}

void TapeCore::check_untaped(const HeardOperation& o) const {
  if (!carries(*o.to) && !carries(*o.from)) return;
  throw Error(ErrorKind::not_differentiable,
              fmt::format("{} that carries gradients, while a tape records: {}", o.what, o.instead));
}

void TapeCore::check_derived(const ArrayBase& from) const {
  if (const auto by = unknown_change(from)) invalid(about_unknown_change("the input of a sum", *by));
}

void TapeCore::note_replaced(const ArrayBase& a) {
  OutsideChanges* changes = outside_changes(a);
  // On the way back, only the step that is being reversed has records of its own.
  if (!changes || (walking_ && sink_ == &records_)) return;
  for (const View& elements : changes->take_replaced())
    add(std::make_unique<ReplacedRecord>(View(elements, a.storage(), elements.address())));
}

void TapeCore::calling(const std::function<void()>& backward, std::span<const ArrayBase* const> arrays) {
  std::vector<View> views;
  std::vector<std::shared_ptr<Version>> versions;
  for (const ArrayBase* a : arrays) {
    (void)named_carries(*a);
    note_function_of(*a);
    views.emplace_back(*a);
    versions.push_back(version(*a));
  }
  add(std::make_unique<FunctionRecord>(backward, std::move(views), std::move(versions)));
}

void TapeCore::hear(const HeardOperation& o) {
  trace(o);
  switch (o.kind) {
    case OperationKind::launch: return launching(*o.launch);
    case OperationKind::copy: return copying(*o.to, *o.from, o.leaves);
    case OperationKind::overwrite:
      if (!named_carries(*o.to)) return;
      mark_replaced(*o.to);
      return add(std::make_unique<FillRecord>(*o.to));
    case OperationKind::expose: return check_exposed(o);
    case OperationKind::untaped: return check_untaped(o);
    case OperationKind::derive: return deriving(*o.to, o.others, *o.record);
    case OperationKind::call: return calling(*o.backward, o.others);
    case OperationKind::read: return;
    case OperationKind::replay:
      unsupported(
          "{} while a tape records, which does not see what the graph does: let that contain the tape's record() and "
          "backward(), or call it outside of record() or in Tape::unrecorded()",
          o.what);
  }
}

}  // namespace weft::detail
