// Variables of the environment that a test sets.
#pragma once
#include <optional>
#include <string>

#include "../../frontend/support/platform.h"

namespace weft::test {

/// Sets a variable, or unsets it (null), and puts the old value back.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name), old_(platform::environment(name)) {
    platform::set_environment(name, value);
  }
  ~Variable() { platform::set_environment(name_, old_ ? old_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace weft::test
