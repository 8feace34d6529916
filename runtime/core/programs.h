// The programs that kernels were compiled to on one device, and how long they are kept. Internal to the runtime.
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
  bool together = false;                      ///< threads of a workgroup work together: launched over whole ones only
  std::uint64_t reals = 0;                    ///< see ir::real_arrays
  std::uint64_t kept = 0;                     ///< see ir::kept_from_access

  std::shared_ptr<Pace> pace = std::make_shared<Pace>();

  std::string key;
  int users = 0;  ///< kernels that name it
};

/// The programs of a device. Thread-safe.
///
/// Kernels that are traced to the same IR share a program: a lambda in a function makes a new kernel each call. So a
/// program outlives its kernels, until `most_idle` others have been left by theirs after it.
class Programs {
 public:
  /// The program of this key for one more kernel; `make` compiles it when it is not there.
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
  /// A kernel is gone.
  void give_back(LoadedProgram* program);
  void clear();

  std::size_t size();
  /// How many programs without a kernel are kept. Tests lower it.
  void keep_idle(std::size_t most);

 private:
  void drop_idle();

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<LoadedProgram>> by_key_;
  std::vector<LoadedProgram*> idle_;  // the longest unused first
  std::size_t most_idle_ = 256;
};

}  // namespace weft::detail
