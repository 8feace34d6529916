// What captured work needs of the structures that it is given by value, and what it makes of them.
#include "form.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "../frontend/support/error.h"

namespace weft::detail {

namespace {
[[noreturn]] void invalid(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }
}  // namespace

std::uint64_t FormCell::set_unknown() {
  const std::lock_guard lock(mutex_);
  device_.kind = Form::Kind::unknown;
  return ++version_;
}

void FormCell::set(const Form& form, std::uint64_t begun) {
  const std::lock_guard lock(mutex_);
  if (version_ == begun)
    device_ = form;
  else
    device_.kind = Form::Kind::unknown;
  ++version_;
}

namespace {
[[noreturn]] void refuse_held(const Form& host) {
  invalid(
      fmt::format("{} is not what the device holds: what builds it so was captured and has not run, or captured work "
                  "has built it otherwise since. Let the graph run before, or build it",
                  host.what));
}
}  // namespace

void FormCell::check(const Form& host) const {
  const std::lock_guard lock(mutex_);
  if (device_ != host) refuse_held(host);
}

bool FormCell::check_built(const Form& host) const {
  const std::lock_guard lock(mutex_);
  if (!device_.is_built_as(host)) refuse_held(host);
  return device_ == host;
}

namespace given_forms {
namespace {
thread_local std::vector<FormUse> t_uses;
}
void note(FormUse use) { t_uses.push_back(std::move(use)); }
std::vector<FormUse> take() { return t_uses.empty() ? std::vector<FormUse>() : std::exchange(t_uses, {}); }
}  // namespace given_forms

void Forms::launched(std::size_t launch, const std::shared_ptr<const ir::Interface>& kernel) {
  for (FormUse& use : std::exchange(coming_, {})) need(std::move(use), launch, kernel);
}

void Forms::refit(FormUse use) { need(std::move(use), SIZE_MAX, nullptr); }

void Forms::need(FormUse use, std::size_t launch, const std::shared_ptr<const ir::Interface>& kernel) {
  if (made_before(launch, *use.cell, conditions_)) return;
  const bool or_none = std::ranges::any_of(made_, [&](const Made& m) {
    return m.before.kind == Form::Kind::none && m.cell == use.cell && m.launches <= launch;
  });
  needs_.push_back({std::move(use), or_none, launch, kernel});
}

void Forms::make(const std::shared_ptr<FormCell>& cell, const Form& before, const Form& after, std::size_t launches) {
  made_.push_back({cell, before, after, launches, conditions_});
}

void Forms::begin_condition() {
  conditions_.push_back(num_conditions_++);
  begun_.push_back(made_.size());
}

void Forms::end_condition() {
  for (std::size_t k = begun_.back(); k < made_.size(); ++k) {
    const Made& first = made_[k];
    const auto same = [&](const Made& m) { return m.cell == first.cell; };
    const bool is_first =
        std::none_of(made_.begin() + std::ptrdiff_t(begun_.back()), made_.begin() + std::ptrdiff_t(k), same);
    if (!is_first || first.before.kind == Form::Kind::none) continue;
    const Made& last = *std::find_if(made_.rbegin(), made_.rend(), same);
    if (first.before != last.form)
      invalid(
          fmt::format("{} is made {} in a condition of a graph, of another size or in other memory: behind that nobody "
                      "could tell which it is. Do it outside of the condition, or to another one",
                      first.before.what, last.form.what));
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

void Forms::check_given(std::size_t launch, const std::vector<FormUse>& uses) const {
  for (const FormUse& use : uses) {
    // What a condition makes counts as well: behind it the structure has the form that it had before.
    const auto last = std::find_if(made_.rbegin(), made_.rend(),
                                   [&](const Made& m) { return m.cell == use.cell && m.launches <= launch; });
    if (last != made_.rend() && last->form != use.form)
      invalid(
          fmt::format("arguments are set with {}, which the graph makes {} before, of another size or in other memory",
                      use.form.what, last->form.what));
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
  for (const Need& n : needs_) {
    if (!std::ranges::count(asked_, n)) asked_.push_back(n);
    cells_.push_back(n.use.cell.get());
  }
  for (const Made& m : made_) cells_.push_back(m.cell.get());
  std::ranges::sort(cells_);
  cells_.erase(std::ranges::unique(cells_).begin(), cells_.end());
}

std::vector<std::unique_lock<std::mutex>> Forms::lock() const {
  std::vector<std::unique_lock<std::mutex>> locks;
  for (FormCell* cell : cells_) locks.emplace_back(cell->mutex_);
  return locks;
}

std::vector<std::uint64_t> Forms::versions() const {
  std::vector<std::uint64_t> all;
  for (const FormCell* cell : cells_) all.push_back(cell->version_);
  return all;
}

void Forms::check(const char* what, const char* again) const {
  // What it leaves was told when it was recorded, and it comes for the first time now.
  if (!recorded_.empty() && recorded_ == versions()) return;
  for (const Need& n : asked_) {
    const Form& device = n.use.cell->device_;
    const bool right = n.use.refit ? device.is_built_as(n.use.form) : device == n.use.form;
    if (right || (n.or_none && device.kind == Form::Kind::none)) continue;
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{} works on {}, and the device holds another one: it was built otherwise since, or in other "
                    "memory ({} again), or what builds it so has not run",
                    what, n.use.form.what, again),
        n.kernel ? n.kernel->name : "", n.kernel ? n.kernel->loc : Loc());
  }
}

void Forms::made(bool submitted) {
  for (auto at = made_.begin(); at != made_.end(); ++at) {
    const Made& m = *at;
    // What a condition has made counts by its end.
    const auto goes_on = [&](const Made& later) {
      return later.cell == m.cell && !later.conditions.empty() && later.conditions.front() == m.conditions.front();
    };
    if (!m.conditions.empty() && std::any_of(at + 1, made_.end(), goes_on)) continue;
    Form& device = m.cell->device_;
    if (m.conditions.empty() || device.kind == Form::Kind::none)
      device = m.form;
    else if (device != m.form)
      device.kind = Form::Kind::unknown;
    ++m.cell->version_;
  }
  recorded_ = submitted || made_.empty() ? std::vector<std::uint64_t>() : versions();
}

void Forms::forget() {
  if (recorded_.empty() || recorded_ != versions()) return;
  for (const Made& m : made_) m.cell->device_.kind = Form::Kind::unknown;
}

}  // namespace weft::detail
