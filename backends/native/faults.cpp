// The line that is written about a kernel's fault, in a handler where little is allowed.
#include "faults.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "../../frontend/support/platform.h"

namespace weft::backend::native {

namespace {

// Read by a handler of signals, in which the first access of a thread must not allocate: hence the model.
#ifdef __GNUC__
[[gnu::tls_model("initial-exec")]]
#endif
thread_local const DeviceProgram* running = nullptr;

// Text in memory of the handler's, cut off where that ends. Nothing here allocates or locks.
class Line {
 public:
  Line(char* text, std::size_t room) : text_(text), room_(room) {}
  Line& operator<<(std::string_view part) {
    const std::size_t n = part.copy(text_ + size_, room_ - size_);
    size_ += n;
    return *this;
  }
  Line& number(std::uint64_t value, int base) {
    char digits[24];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, base);
    return *this << std::string_view(digits, std::size_t(end - digits));
  }
  std::size_t size() const { return size_; }

 private:
  char* const text_;
  const std::size_t room_;
  std::size_t size_ = 0;
};

std::size_t describe(char* text, std::size_t room, const void* address) {
  const DeviceProgram* const kernel = running;
  if (!kernel) return 0;
  Line line(text, room);
  line << "weft: kernel '" << kernel->name() << "'";
  if (kernel->loc.file) {
    line << " (" << kernel->loc.file << ":";
    line.number(std::uint64_t(kernel->loc.line), 10) << ")";
  }
  line << " touches memory at address 0x";
  line.number(reinterpret_cast<std::uintptr_t>(address), 16)
      << ", which is not there; WEFT_DEBUG=1 checks every index of an array\n";
  return line.size();
}

}  // namespace

Running::Running(const DeviceProgram& program) : outer_(std::exchange(running, &program)) {}
Running::~Running() { running = outer_; }

void name_faults() { platform::describe_faults(describe); }

}  // namespace weft::backend::native
