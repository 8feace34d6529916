// Words the messages of Error, and ends the program on a broken invariant.
#include "error.h"

#include <cstdio>
#include <cstdlib>

namespace weft {

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument: return "invalid argument";
    case ErrorKind::invalid_kernel: return "invalid kernel";
    case ErrorKind::unsupported: return "unsupported";
    case ErrorKind::out_of_memory: return "out of memory";
    case ErrorKind::no_device: return "no device";
    case ErrorKind::device_lost: return "device lost";
    case ErrorKind::kernel_fault: return "kernel fault";
    case ErrorKind::not_differentiable: return "not differentiable";
    case ErrorKind::io: return "i/o error";
  }
  return "error";
}

namespace {
std::string compose(ErrorKind kind, const std::string& message, const std::string& kernel, Loc loc, Loc caller) {
  const auto place = [](Loc at) { return std::string(at.file).append(":").append(std::to_string(at.line)); };
  const Loc first = loc ? loc : caller;
  std::string text = first ? place(first) + ": " : std::string();
  text += to_string(kind);
  if (!kernel.empty()) text.append(" in kernel \"").append(kernel).append("\"");
  text += ": " + message;
  if (loc && caller) text += " (called at " + place(caller) + ")";
  return text;
}
}  // namespace

Error::Error(ErrorKind kind, const std::string& message, std::string kernel, Loc loc)
    : std::runtime_error(compose(kind, message, kernel, loc, {})),
      kind_(kind),
      message_(message),
      kernel_(std::move(kernel)),
      loc_(loc) {}

void Error::set_caller(Loc caller) {
  if (keeps_caller_) return;
  caller_ = caller;
  static_cast<std::runtime_error&>(*this) = std::runtime_error(compose(kind_, message_, kernel_, loc_, caller_));
}

void internal_error(const char* what, Loc loc) {
  std::fprintf(stderr, "weft: internal error at %s:%d: %s\n", loc.file, loc.line, what);
  std::abort();
}

}  // namespace weft
