// Puts object code into executable memory.
#include "loader.h"

#include <fmt/format.h>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/platform.h"
#include "object.h"

namespace weft::backend::native {

std::shared_ptr<LoadedCode> LoadedCode::load(std::span<const std::byte> object, std::string_view entry) {
  const Object code(object, entry);
  const std::shared_ptr<LoadedCode> result(new LoadedCode);
  std::string why;
  result->memory_ = platform::map_code(
      code.bytes(), [&](std::byte* memory) { code.place(memory, reinterpret_cast<std::uintptr_t>(memory)); }, &why);
  if (!result->memory_)
    throw Error(ErrorKind::out_of_memory,
                fmt::format("the system gives no {} bytes of executable memory: {}", code.bytes(), why));
  result->bytes_ = code.bytes();
  result->entry_ = result->memory_ + code.entry();
  return result;
}

LoadedCode::~LoadedCode() { platform::unmap_code(memory_, bytes_); }

}  // namespace weft::backend::native
