// Object code becomes functions that can be called.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace weft::backend::native {

/// A function that code calls, and its object.
struct CalledFunction {
  std::string_view name;
  std::span<const std::byte> object;
};

/// Executable memory with the code of an object and of the functions that it calls. Its end frees the code.
class LoadedCode {
 public:
  /// Loads a relocatable ELF object for the host's processor that needs no symbols but those functions. They need none.
  /// Everything is checked against the objects' bounds: an object may be damaged.
  /// Errors: Error(io) for an object that is damaged, of another kind, or that lacks the entry; Error(out_of_memory) if
  /// the system gives no executable memory.
  static std::shared_ptr<LoadedCode> load(std::span<const std::byte> object, std::string_view entry,
                                          std::span<const CalledFunction> functions = {});
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  void* entry() const { return entry_; }

 private:
  LoadedCode() = default;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  void* entry_ = nullptr;
};

}  // namespace weft::backend::native
