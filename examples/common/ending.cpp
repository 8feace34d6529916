// The exit status and the last words.
#include "ending.h"

#include <fmt/core.h>

#include <cstdio>
#include <exception>

int run_example(const char* name, const std::function<std::string()>& body) {
  std::string wrong;
  try {
    wrong = body();
    if (wrong.empty()) return 0;
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  std::fflush(stdout);
  fmt::print(stderr, "{}: {}\n", name, wrong);
  return 1;
}
