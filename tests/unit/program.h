// The path of the program of the unit tests.
#pragma once
#include <string>

namespace weft::test {

/// The path by which the program was started.
inline std::string& program_path() {
  static std::string path;
  return path;
}

}  // namespace weft::test
