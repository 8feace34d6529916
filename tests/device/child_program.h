// Parts of this program that its tests run as processes of their own, whose end is what is looked at.
#pragma once
#include <string>
#include <vector>

namespace weft::test {

/// A function that main() hands over to, and returns the result of: `PROGRAM --child NAME ARGUMENT...`. Made at the top
/// level of a file.
struct ChildProgram {
  using Main = int (*)(const std::vector<std::string>& arguments);
  ChildProgram(const char* name, Main run);
};
/// Runs the one that the command line names, if it names any. \return whether it does
bool run_child_program(int argc, char** argv, int& code);

struct ChildResult {
  int code = 0;        ///< of its end; 128 + the signal that ended it; 124 after 100 seconds
  std::string output;  ///< on both streams
};
/// Runs one and waits; not on Windows. \param environment  "NAME=value" of further variables
ChildResult run_child(const std::string& name, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment = {});

}  // namespace weft::test
