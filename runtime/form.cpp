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

void FormCell::set(const Form& form) {
  const std::lock_guard lock(mutex_);
  device_ = form;
  ++version_;
}

void FormCell::set_unknown() {
  const std::lock_guard lock(mutex_);
  device_.kind = Form::Kind::unknown;
  ++version_;
}

void FormCell::check(const Form& host) const {
  const std::lock_guard lock(mutex_);
  if (device_ == host) return;
  invalid(
      fmt::format("{} is not what the device holds: what builds it so was captured and has not run, or captured work "
                  "has built it otherwise since. Let the graph run before, or build it",
                  host.what));
}

void Forms::use(FormUse use) { coming_.push_back(std::move(use)); }

void Forms::launched(std::size_t launch, const std::shared_ptr<const ir::Interface>& kernel) {
  for (FormUse& use : std::exchange(coming_, {})) need(std::move(use), launch, kernel);
}

void Forms::refit(FormUse use) { need(std::move(use), SIZE_MAX, nullptr); }

void Forms::need(FormUse use, std::size_t launch, const std::shared_ptr<const ir::Interface>& kernel) {
  if (made_before(launch, *use.cell)) return;
  const bool or_none =
      std::ranges::any_of(made_, [&](const Made& m) { return m.first && m.cell == use.cell && m.launches <= launch; });
  needs_.push_back({std::move(use), or_none, launch, kernel});
}

void Forms::make(const std::shared_ptr<FormCell>& cell, const Form& before, const Form& after, std::size_t launches,
                 bool maybe) {
  const bool first = before.kind == Form::Kind::none;
  if (maybe && !first && before != after)
    invalid(
        fmt::format("{} is made {} in a condition of a graph, of another size or in other memory: behind that nobody "
                    "could tell which it is. Do it outside of the condition, or to another one",
                    before.what, after.what));
  made_.push_back({cell, after, launches, maybe, first});
}

void Forms::back_to(const Mark& mark) {
  needs_.erase(needs_.begin() + std::ptrdiff_t(mark.needs), needs_.end());
  made_.erase(made_.begin() + std::ptrdiff_t(mark.made), made_.end());
}

const Form* Forms::made_before(std::size_t launch, const FormCell& cell) const {
  const Form* found = nullptr;
  for (const Made& m : made_)
    if (m.cell.get() == &cell && !m.maybe && m.launches <= launch) found = &m.form;
  return found;
}

void Forms::check_given(std::size_t launch, const std::vector<FormUse>& uses) const {
  for (const FormUse& use : uses)
    if (const Form* made = made_before(launch, *use.cell); made && *made != use.form)
      invalid(
          fmt::format("arguments are set with {}, which the graph makes {} before, of another size or in other memory",
                      use.form.what, made->what));
}

void Forms::give(std::size_t launch, const std::vector<FormUse>& uses,
                 const std::shared_ptr<const ir::Interface>& kernel) {
  std::erase_if(needs_, [&](const Need& n) { return n.launch == launch; });
  for (const FormUse& use : uses) need(use, launch, kernel);
}

std::vector<FormCell*> Forms::cells() const {
  std::vector<FormCell*> all;
  for (const Need& n : needs_) all.push_back(n.use.cell.get());
  for (const Made& m : made_) all.push_back(m.cell.get());
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

std::vector<std::unique_lock<std::mutex>> Forms::lock() const {
  std::vector<std::unique_lock<std::mutex>> locks;
  for (FormCell* cell : cells()) locks.emplace_back(cell->mutex_);
  return locks;
}

std::vector<std::uint64_t> Forms::versions() const {
  std::vector<std::uint64_t> all;
  for (const FormCell* cell : cells()) all.push_back(cell->version_);
  return all;
}

void Forms::check(const char* what, const char* again) const {
  // What it leaves was told when it was recorded, and it comes for the first time now.
  if (!recorded_.empty() && recorded_ == versions()) return;
  for (const Need& n : needs_) {
    const Form& device = n.use.cell->device_;
    const bool right = n.use.refit ? device.is_built_as(n.use.form) : device == n.use.form;
    if (right || (n.or_none && device.kind == Form::Kind::none)) continue;
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} works on {}, which was built otherwise since, or in other memory: {} again", what,
                            n.use.form.what, again),
                n.kernel ? n.kernel->name : "", n.kernel ? n.kernel->loc : Loc());
  }
}

void Forms::made(bool submitted) {
  for (const Made& m : made_) {
    Form& device = m.cell->device_;
    if (!m.maybe || device.kind == Form::Kind::none)
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
