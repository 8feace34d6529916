// The two refusals of host calls that are by far the most common, each said in one call.
#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>

#include "error.h"

namespace weft {

/// Throws Error(invalid_argument).
[[noreturn]] inline void invalid(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }
/// Throws Error(unsupported).
[[noreturn]] inline void unsupported(const std::string& message) { throw Error(ErrorKind::unsupported, message); }

/// These throw the same errors with a message that fmt::format makes.
template <class First, class... Rest>
[[noreturn]] void invalid(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  invalid(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
}
template <class First, class... Rest>
[[noreturn]] void unsupported(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  unsupported(fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
}

}  // namespace weft
