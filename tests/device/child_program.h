// Parts of this program that its tests run as processes of their own, in order to see how these end.
#pragma once
#include <string>
#include <vector>

namespace weft::test {

/// A function to which main() hands over if the command line is `PROGRAM --child NAME ARGUMENT...`, and whose result it
/// returns. Made at the top level of a file.
struct ChildProgram {
  using Main = int (*)(const std::vector<std::string>& arguments);
  ChildProgram(const char* name, Main run);
};
/// Runs the child program that the command line names, if it names one. \return whether it does
bool run_child_program(int argc, char** argv, int& code);

struct ChildResult {
  int code = 0;        ///< of its end; 128 + the signal that ended it; 124 after 100 seconds
  std::string output;  ///< on both streams
};
/// Runs a child program and waits; not on Windows. \param environment  "NAME=value" of further variables
ChildResult run_child(const std::string& name, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment = {});

}  // namespace weft::test
