// The table of child programs, and running one by a shell.
#include "child_program.h"

#include <array>
#include <cstdio>
#include <map>

#include "device_test.h"

namespace weft::test {

namespace {
std::map<std::string, ChildProgram::Main>& programs() {
  static std::map<std::string, ChildProgram::Main> all;
  return all;
}

}  // namespace

ChildProgram::ChildProgram(const char* name, Main run) { programs()[name] = run; }

bool run_child_program(int argc, char** argv, int& code) {
  if (argc < 3 || std::string(argv[1]) != "--child") return false;
  const auto known = programs().find(argv[2]);
  code = known == programs().end() ? 127 : known->second({argv + 3, argv + argc});
  return true;
}

#ifndef _WIN32
ChildResult run_child(const std::string& name, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment) {
  const auto quoted = [](const std::string& text) { return "'" + text + "'"; };
  // The layers are not under test here, and processes that have lost their threads would call them.
  std::string command = "env WEFT_VALIDATION=0";
  for (const std::string& variable : environment) command += " " + quoted(variable);
  command += " timeout 100 " + quoted(program_path()) + " --child " + quoted(name);
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  ChildResult result;
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return {-1, "no process can be started"};
  std::array<char, 4096> part;
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe)) result.output.append(part.data(), n);
  const int status = pclose(pipe);
  result.code = status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff;
  return result;
}
#endif

}  // namespace weft::test
