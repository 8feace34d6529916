// The programs that kernels were compiled to on one device. Internal to the runtime.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../../backends/backend.h"
#include "pacer.h"

namespace weft::detail {

/// A kernel as a device runs it.
struct LoadedProgram {
  std::shared_ptr<backend::Program> program;
  std::shared_ptr<const ir::Interface> call;  ///< shared with reports, which may outlive the program
  bool together = false;                      ///< threads of a workgroup work together: launches need whole workgroups
  std::uint64_t reals = 0;                    ///< see ir::real_arrays
  std::uint64_t kept = 0;                     ///< see ir::kept_from_access

  std::shared_ptr<Pace> pace = std::make_shared<Pace>();

  std::string key;
  int users = 0;  ///< number of kernels that name the program
};

/// The programs of a device. Thread-safe.
///
/// Kernels that are traced to the same IR share a program, because a lambda in a function makes a new kernel at each
/// call. A program therefore outlives its kernels, until `most_idle_` other programs have lost theirs after it.
class Programs {
 public:
  /// Returns the program of this key to one more kernel; `make` compiles it if there is none.
  template <class F>
  LoadedProgram* take(const std::string& key, F make) {
    std::lock_guard lock(mutex_);
    auto known = by_key_.find(key);
    if (known == by_key_.end()) {
      std::unique_ptr<LoadedProgram> made = make();
      made->key = key;
      known = by_key_.emplace(key, std::move(made)).first;
    }
    LoadedProgram* program = known->second.get();
    if (program->users++ == 0) std::erase(idle_, program);
    return program;
  }
  /// Gives back the program of a kernel that is gone.
  void give_back(LoadedProgram* program);
  void clear();

  std::size_t size();
  /// Sets how many programs without a kernel are kept. Tests lower it.
  void keep_idle(std::size_t most);

 private:
  void drop_idle();

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<LoadedProgram>> by_key_;
  std::vector<LoadedProgram*> idle_;  // without a kernel; the longest unused first
  std::size_t most_idle_ = 256;
};

}  // namespace weft::detail
