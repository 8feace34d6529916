// Keeps programs for further kernels, and drops those that no kernel names any more.
#include "programs.h"

namespace weft::detail {

LoadedProgram* Programs::Held::take(const std::string& key) {
  const auto known = all_.by_key_.find(key);
  if (known == all_.by_key_.end()) return nullptr;
  LoadedProgram* const program = known->second.get();
  if (program->users++ == 0) std::erase(all_.idle_, program);
  return program;
}

LoadedProgram* Programs::Held::add(std::unique_ptr<LoadedProgram> made) {
  LoadedProgram* const program = made.get();
  program->users = 1;
  all_.by_key_.emplace(program->key, std::move(made));
  return program;
}

void Programs::give_back(LoadedProgram* program) {
  std::lock_guard lock(mutex_);
  if (--program->users > 0) return;
  idle_.push_back(program);
  drop_idle();
}

void Programs::drop_idle() {
  if (idle_.size() <= most_idle_) return;
  const auto end = idle_.end() - static_cast<std::ptrdiff_t>(most_idle_);
  for (auto p = idle_.begin(); p != end; ++p) by_key_.erase(by_key_.find((*p)->key));
  idle_.erase(idle_.begin(), end);
}

void Programs::clear() {
  std::lock_guard lock(mutex_);
  idle_.clear();
  by_key_.clear();
}

std::size_t Programs::size() {
  std::lock_guard lock(mutex_);
  return by_key_.size();
}

void Programs::keep_idle(std::size_t most) {
  std::lock_guard lock(mutex_);
  most_idle_ = most;
  drop_idle();
}

}  // namespace weft::detail
