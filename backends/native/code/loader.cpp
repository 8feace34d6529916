// Puts object code into executable memory.
#include "loader.h"

#include <fmt/format.h>

#include "../../../frontend/support/error.h"
#include "../../../frontend/support/platform.h"
#include "object.h"

namespace weft::backend::native {

// The functions lie after the object in the same memory, where a call reaches them.
std::shared_ptr<LoadedCode> LoadedCode::load(std::span<const std::byte> object, std::string_view entry,
                                             std::span<const CalledFunction> functions) {
  std::vector<std::string_view> names;
  for (const CalledFunction& each : functions) names.push_back(each.name);
  const Object code(object, entry, kHostMachine, names);
  std::vector<Object> called;
  std::vector<std::size_t> places;
  std::size_t bytes = code.bytes();
  for (const CalledFunction& each : functions) {
    called.emplace_back(each.object, each.name);
    bytes = (bytes + platform::kCodeAlignment - 1) / platform::kCodeAlignment * platform::kCodeAlignment;
    places.push_back(bytes);
    bytes += called.back().bytes();
  }
  const auto place_all = [&](std::byte* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    std::vector<std::uint64_t> addresses;
    for (std::size_t k = 0; k < called.size(); ++k) {
      called[k].place(memory + places[k], address + places[k]);
      addresses.push_back(address + places[k] + called[k].entry());
    }
    code.place(memory, address, addresses);
  };
  const std::shared_ptr<LoadedCode> result(new LoadedCode);
  std::string why;
  result->memory_ = platform::map_code(bytes, place_all, &why);
  if (!result->memory_)
    throw Error(ErrorKind::out_of_memory,
                fmt::format("the system gives no {} bytes of executable memory: {}", bytes, why));
  result->bytes_ = bytes;
  result->entry_ = result->memory_ + code.entry();
  return result;
}

LoadedCode::~LoadedCode() { platform::unmap_code(memory_, bytes_); }

}  // namespace weft::backend::native
