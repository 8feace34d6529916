// Drops programs that no kernel names any more.
#include "programs.h"

namespace weft::detail {

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
