// The unit tests; and a program that they start, which writes down its arguments.
#include <gtest/gtest.h>

#include <fstream>

#include "program.h"

int main(int argc, char** argv) {
  weft::test::program_path() = argv[0];
  // --arguments-to FILE ...: writes the other arguments, each on a line.
  if (argc > 2 && std::string(argv[1]) == "--arguments-to") {
    std::ofstream file(argv[2]);
    for (int k = 3; k < argc; ++k) file << argv[k] << '\n';
    return file ? 7 : 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
