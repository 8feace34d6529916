// Memory of other libraries on the host under arrays, of which several may stand on parts of one piece.
#pragma once
#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>

#include "../../../runtime/device.h"

namespace weft {
class ArrayBase;
}

namespace weft::python {

/// A piece of the host's memory.
struct HostRange {
  std::byte* begin = nullptr;
  std::uint64_t bytes = 0;

  bool holds(const HostRange& part) const { return part.begin >= begin && part.begin + part.bytes <= begin + bytes; }
};

/// The memory from which an object has its part: that of the array of NumPy's that owns it, or the storage of torch's
/// that the object is. The part itself if there is none that holds it.
HostRange whole_memory(nanobind::handle object, const HostRange& part);

/// The bytes of an array on a piece of memory: of one that stands on it or around it already, else of a new one.
/// \param whole  where no array stands on it: the memory for the new one, which holds the part
/// \param owner  keeps that memory
/// Errors: Error(unsupported) on a device that cannot use the host's memory; Error(invalid_argument) for memory that
/// arrays of others stand on.
ArrayBase bytes_on(const Device& device, const HostRange& part, const HostRange& whole, std::shared_ptr<void> owner);

/// Notes the memory of an array of the library's own whose address Python asks for: bytes_on() then finds it.
void remember_memory(const ArrayBase& array);

}  // namespace weft::python
