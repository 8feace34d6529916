// The program that the unit tests are.
#pragma once
#include <string>

namespace weft::test {

/// By which it was started.
inline std::string& program_path() {
  static std::string path;
  return path;
}

}  // namespace weft::test
