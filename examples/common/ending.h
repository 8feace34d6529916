// How the programs end.
#pragma once
#include <functional>
#include <string>

/// Runs an example from main(). What is wrong in the end becomes a line on the standard error stream: what `body`
/// throws, or what it returns that is not empty. \return  the exit status of the program: 0 when all is well, else 1
int run_example(const char* name, const std::function<std::string()>& body);
