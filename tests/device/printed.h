// Lines that kernels print, for tests to compare.
#pragma once
#include <weft/weft.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace weft::test {

using Lines = std::vector<std::string>;

/// Gathers what kernels print while it lives.
class Printed {
 public:
  Printed() : before_(set_print_sink({&take, this})) {}
  ~Printed() { set_print_sink(before_); }
  Printed(const Printed&) = delete;

  /// The lines since the last call.
  std::vector<std::string> lines() {
    std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  static void take(void* self, std::string_view line) {
    auto& p = *static_cast<Printed*>(self);
    std::lock_guard lock(p.mutex_);
    p.lines_.emplace_back(line);
  }
  std::mutex mutex_;
  std::vector<std::string> lines_;
  PrintSink before_;
};

}  // namespace weft::test
