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
  /// The programs while this thread has the lock, so that no two threads compile one.
  class Held {
   public:
    explicit Held(Programs& all) : all_(all), lock_(all.mutex_) {}
    /// Gives the program of this key to one more kernel; null if there is none.
    LoadedProgram* take(const std::string& key);
    /// Adds the program of `made->key`, and gives it to one kernel.
    LoadedProgram* add(std::unique_ptr<LoadedProgram> made);

   private:
    Programs& all_;
    const std::lock_guard<std::mutex> lock_;
  };
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
