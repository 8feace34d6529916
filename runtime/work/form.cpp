// What captured work needs of the structures that it is given by value, and what it makes of them.
#include "form.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "../../frontend/support/error.h"

namespace weft::detail {

namespace {
[[noreturn]] void invalid(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }
}  // namespace

std::uint64_t FormCell::begin() {
  const std::lock_guard lock(mutex_);
  return ++version_;
}

void FormCell::fail() {
  const std::lock_guard lock(mutex_);
  device_.kind = Form::Kind::unknown;
  ++version_;
}

void FormCell::set(const Form& form, std::uint64_t begun) {
  const std::lock_guard lock(mutex_);
  if (version_ == begun)
    device_ = form;
  else
    device_.kind = Form::Kind::unknown;
  ++version_;
}

void refuse_held(const Form& host) {
  invalid(fmt::format(
      "{} is not what the device holds: what builds it so was captured and has not run, its build failed, or "
      "it was built otherwise since, by captured work or behind this copy of its data (of which no array is "
      "exchanged for another). Let the graph run before, build it, or take the data anew",
      host.what()));
}

bool FormCell::holds(const Form& form) const {
  const std::lock_guard lock(mutex_);
  return device_ == form;
}

bool FormCell::check_built(const Form& host) const {
  const std::lock_guard lock(mutex_);
  if (!device_.is_built_as(host)) refuse_held(host);
  return device_ == host;
}

const Form& FormCell::found_by(std::uint64_t recording) const {
  const Form* found = &device_;
  for (const Told& told : told_)
    if (told.recording < recording) found = &told.form;
  return *found;
}

void Forms::launched(std::size_t launch, const std::shared_ptr<const ir::Interface>& kernel,
                     std::span<const FormUse> uses) {
  for (const FormUse& use : uses) need(use, launch, kernel);
}

void Forms::need(const FormUse& use, std::size_t launch, const std::shared_ptr<const ir::Interface>& kernel) {
  if (made_before(launch, *use.cell, conditions_)) return;
  const bool or_none = std::ranges::any_of(made_, [&](const Made& m) {
    return m.before.kind == Form::Kind::none && m.cell == use.cell && m.launches <= launch;
  });
  needs_.push_back({use, or_none, launch, kernel});
}

void Forms::make(const std::shared_ptr<FormCell>& cell, const Form& before, const Form& after, std::size_t launches) {
  made_.push_back({cell, before, after, launches, conditions_});
}

void Forms::begin_condition() {
  conditions_.push_back(num_conditions_++);
  begun_.push_back(made_.size());
}

void Forms::end_condition(bool again) {
  for (std::size_t k = begun_.back(); k < made_.size(); ++k) {
    const Made& first = made_[k];
    const auto same = [&](const Made& m) { return m.cell == first.cell; };
    const bool is_first =
        std::none_of(made_.begin() + std::ptrdiff_t(begun_.back()), made_.begin() + std::ptrdiff_t(k), same);
    if (!is_first) continue;
    const Made& last = *std::find_if(made_.rbegin(), made_.rend(), same);
    // Nothing was there, and whoever finds nothing is right; but the second round finds what the first one left where a
    // condition inside builds it first, and does not then.
    const bool or_none = first.before.kind == Form::Kind::none;
    const auto inside = [&](const Made& m) {
      return same(m) && m.conditions.size() >= first.conditions.size() &&
             std::equal(first.conditions.begin(), first.conditions.end(), m.conditions.begin());
    };
    const Made& left = *std::find_if(made_.rbegin(), made_.rend(), inside);
    if (or_none && again && first.conditions.size() > conditions_.size() && left.form != last.form)
      invalid(
          fmt::format("{} is made in a condition inside of graph_while(), and {} behind it, of another size or in "
                      "other memory: the next round would find that. Make it first outside of the condition",
                      left.form.what(), last.form.what()));
    if (!or_none && first.before != last.form)
      invalid(
          fmt::format("{} is made {} in a condition of a graph, of another size or in other memory: behind that nobody "
                      "could tell which it is. Do it outside of the condition, or to another one",
                      first.before.what(), last.form.what()));
  }
  conditions_.pop_back();
  begun_.pop_back();
}

void Forms::back_to(const Mark& mark) {
  needs_.erase(needs_.begin() + std::ptrdiff_t(mark.needs), needs_.end());
  made_.erase(made_.begin() + std::ptrdiff_t(mark.made), made_.end());
  conditions_.resize(mark.conditions);
  begun_.resize(mark.conditions);
}

const Form* Forms::made_before(std::size_t launch, const FormCell& cell, const Conditions& conditions) const {
  const Form* found = nullptr;
  for (const Made& m : made_) {
    const bool around = m.conditions.size() <= conditions.size() &&
                        std::equal(m.conditions.begin(), m.conditions.end(), conditions.begin());
    if (m.cell.get() == &cell && around && m.launches <= launch) found = &m.form;
  }
  return found;
}

void Forms::check_given(std::size_t launch, std::span<const FormUse> uses, const char* what) const {
  for (const FormUse& use : uses) {
    // What a condition makes counts as well: behind it the structure has the form that it had before.
    const auto last = std::find_if(made_.rbegin(), made_.rend(),
                                   [&](const Made& m) { return m.cell == use.cell && m.launches <= launch; });
    if (last == made_.rend() || last->form == use.form) continue;
    const char* const differs =
        last->form.is_built_as(use.form) ? "with other arrays of boxes" : "of another size or in other memory";
    invalid(
        fmt::format("{} {}, which the graph makes {} before, {}", what, use.form.what(), last->form.what(), differs));
  }
}

void Forms::give(std::size_t launch, const std::vector<FormUse>& uses,
                 const std::shared_ptr<const ir::Interface>& kernel) {
  std::erase_if(needs_, [&](const Need& n) { return n.launch == launch; });
  for (const FormUse& use : uses) need(use, launch, kernel);
  settle();
}

void Forms::settle() {
  asked_.clear();
  cells_.clear();
  makes_.clear();
  for (const Need& n : needs_) {
    if (!std::ranges::count(asked_, n)) asked_.push_back(n);
    cells_.push_back(n.use.cell.get());
  }
  for (const Made& m : made_) makes_.push_back(m.cell.get());
  cells_.insert(cells_.end(), makes_.begin(), makes_.end());
  for (std::vector<FormCell*>* list : {&cells_, &makes_}) {
    std::ranges::sort(*list);
    list->erase(std::ranges::unique(*list).begin(), list->end());
  }
}

std::vector<std::unique_lock<std::mutex>> Forms::lock() const {
  std::vector<std::unique_lock<std::mutex>> locks;
  for (FormCell* cell : cells_) locks.emplace_back(cell->mutex_);
  return locks;
}

void Forms::check(const char* what, const char* again) const {
  for (const Need& n : asked_) {
    const Form& device = n.use.cell->found_by(recording_);
    const bool right = n.use.refit ? device.is_built_as(n.use.form) : device == n.use.form;
    if (right || (n.or_none && device.kind == Form::Kind::none)) continue;
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{} works on {}, and the device holds another one: it was built otherwise since, or in other "
                    "memory ({} again), or what builds it so has not run",
                    what, n.use.form.what(), again),
        n.kernel ? n.kernel->name : "", n.kernel ? n.kernel->loc : Loc());
  }
}

Form Forms::left(const FormCell& cell, Form device) const {
  for (auto at = made_.begin(); at != made_.end(); ++at) {
    const Made& m = *at;
    if (m.cell.get() != &cell) continue;
    // What a condition has made counts by its end.
    const auto goes_on = [&](const Made& later) {
      return later.cell == m.cell && !later.conditions.empty() && later.conditions.front() == m.conditions.front();
    };
    if (!m.conditions.empty() && std::any_of(at + 1, made_.end(), goes_on)) continue;
    if (m.conditions.empty() || device.kind == Form::Kind::none)
      device = m.form;
    else if (device != m.form)
      device.kind = Form::Kind::unknown;
  }
  return device;
}

void Forms::made() {
  for (FormCell* cell : makes_) {
    cell->device_ = left(*cell, std::move(cell->device_));
    ++cell->version_;
  }
}

void Forms::record() {
  static std::atomic<std::uint64_t> count = 0;
  recording_ = ++count;
}

void Forms::recorded() {
  for (FormCell* cell : makes_) cell->told_.push_back({recording_, left(*cell, cell->found_by(recording_))});
}

void Forms::forget() {
  if (recording_ == 0) return;
  for (FormCell* cell : makes_)
    std::erase_if(cell->told_, [&](const FormCell::Told& told) { return told.recording == recording_; });
  recording_ = 0;
}

}  // namespace weft::detail
