// The ids by which kernels find structures of Python's: which of them live, on which device, and what they are.
#pragma once
#include <cstdint>
#include <string>

#include "../../../runtime/device.h"

namespace weft {
class Mesh;
class Volume;
}  // namespace weft

namespace weft::python {

/// The kinds of structures that have ids, as bits: a number may stand for one of several kinds.
enum IdKind : unsigned { kMeshId = 1, kBvhId = 2, kHashGridId = 4, kVolumeId = 8 };
/// "a mesh", or "a mesh or a volume" of several bits.
std::string name_of_kinds(unsigned kinds);

/// What an id names.
struct Living {
  unsigned kind;
  const Volume* volume = nullptr;  ///< null for other structures
  const Mesh* mesh = nullptr;      ///< likewise
};

/// Keeps an id in the list of those that live, until this object ends. Under the GIL.
class LiveId {
 public:
  LiveId() = default;
  LiveId(LiveId&&) noexcept {}  // of a structure that Python does not have yet: nobody has asked for its id
  LiveId& operator=(const LiveId&) = delete;
  ~LiveId();
  /// Returns the id, which is in the list from now on.
  std::uint64_t keep(const Device& device, std::uint64_t id, const Living& what);

 private:
  const void* device_ = nullptr;
  std::uint64_t id_ = 0;
};

/// What an id names on a device; null if it names nothing there. Under the GIL.
const Living* find_living(const detail::DeviceState* device, std::uint64_t id);
/// What an id names on any device, for messages. Under the GIL.
const Living* find_living_elsewhere(std::uint64_t id);

/// A structure of Python's with its id.
template <class T>
struct Identified : T {
  Identified(T structure) : T(std::move(structure)) {}
  mutable LiveId live;
};

}  // namespace weft::python
