// The list of the ids that live.
#include "live_ids.h"

#include <map>
#include <utility>

namespace weft::python {

namespace {

using Key = std::pair<std::uint64_t, const void*>;  // an id and its device
// Never destroyed: Python's objects may outlive all static ones.
std::map<Key, Living>& living() {
  static auto& all = *new std::map<Key, Living>;
  return all;
}

}  // namespace

std::string name_of_kinds(unsigned kinds) {
  std::string names;
  for (const auto& [kind, name] : {std::pair(kMeshId, "a mesh"),
                                   {kBvhId, "a hierarchy of boxes"},
                                   {kHashGridId, "a hash grid"},
                                   {kVolumeId, "a volume"}})
    if (kinds & kind) names += (names.empty() ? "" : " or ") + std::string(name);
  return names;
}

LiveId::~LiveId() {
  if (device_) living().erase({id_, device_});
}

std::uint64_t LiveId::keep(const Device& device, std::uint64_t id, const Living& what) {
  if (device_) return id;
  device_ = device.state().get();
  id_ = id;
  living().insert_or_assign({id_, device_}, what);
  return id;
}

const Living* find_living(const detail::DeviceState* device, std::uint64_t id) {
  const auto found = living().find({id, device});
  return found == living().end() ? nullptr : &found->second;
}

const Living* find_living_elsewhere(std::uint64_t id) {
  const auto found = living().lower_bound({id, nullptr});
  return found == living().end() || found->first.first != id ? nullptr : &found->second;
}

}  // namespace weft::python
