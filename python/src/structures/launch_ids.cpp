// Looks the ids among the arguments of a launch up in the list of those that live.
#include "launch_ids.h"

#include <cstring>

#include "../../../runtime/geometry/mesh.h"
#include "../../../runtime/volume/volume.h"
#include "../module.h"
#include "live_ids.h"
#include "volume_values.h"

namespace weft::python {

namespace {

std::uint64_t number_at(const Arguments& arguments, const IdPlace& place) {
  std::uint64_t number = 0;
  std::memcpy(&number, static_cast<const std::byte*>(arguments.parts()[place.part].value) + place.offset,
              sizeof(number));
  return number;
}

/// `kernel "query", argument 2 (mesh)`.
std::string argument_text(nb::handle handle, const Kernel& kernel, const IdPlace& place) {
  const Part& part = kernel.parts()[place.part];
  std::string name;
  try {
    name = nb::cast<std::string>(nb::str(handle.attr("parameters")[part.argument - 1][0]));
  } catch (const std::exception&) {  // a kernel that knows no names
  }
  name += part.name;
  for (const Field& field : part.dtype->fields)
    if (!field.dtype->is_struct() && field.offset == place.offset) name += "." + field.name;
  return "kernel \"" + kernel.core().name() + "\", argument " + std::to_string(part.argument) +
         (name.empty() ? "" : " (" + name + ")");
}

/// What a number is that is not the id that is wanted.
std::string what_it_is(const detail::DeviceState* device, std::uint64_t number) {
  if (const Living* const here = find_living(device, number)) return "that of " + name_of_kinds(here->kind);
  if (const Living* const there = find_living_elsewhere(number))
    return "that of " + name_of_kinds(there->kind) + " on another device";
  return "of a structure that is gone, or no id at all";
}

}  // namespace

void take_ids(nb::handle handle, const KernelIds& ids, const Kernel& kernel, const detail::DeviceState* device,
              Arguments& arguments) {
  for (const auto& [place, kinds] : ids.used) {
    const std::uint64_t number = number_at(arguments, place);
    if (number == 0) continue;
    const Living* const found = find_living(device, number);
    if (found && found->kind & kinds) continue;
    throw nb::value_error((argument_text(handle, kernel, place) + ": " + std::to_string(number) + " is not the id of " +
                           name_of_kinds(kinds) + " on the device of the launch, but " + what_it_is(device, number))
                              .c_str());
  }
  for (const auto& [place, dtype] : ids.stored) {
    const Living* const found = find_living(device, number_at(arguments, place));
    const DType* const values = found && found->volume ? values_of(*found->volume) : nullptr;
    if (values != dtype)
      throw nb::value_error((argument_text(handle, kernel, place) + ": the kernel writes " + dtype->name +
                             " into the volume, " +
                             (values  ? "whose values are " + values->name
                              : found ? "which has no values"
                                      : "and there is none"))
                                .c_str());
    arguments.add(values_array(*found->volume));
  }
}

std::vector<std::pair<IdPlace, const Mesh*>> meshes_to_give(const KernelIds& ids, const detail::DeviceState* device,
                                                            const Arguments& arguments) {
  std::vector<std::pair<IdPlace, const Mesh*>> meshes;
  bool any = false;
  for (const auto& [place, kinds] : ids.used) {
    const Living* const found = kinds & kMeshId ? find_living(device, number_at(arguments, place)) : nullptr;
    if (!found || !found->mesh) continue;
    meshes.emplace_back(place, found->mesh);
    any = any || found->mesh->points().has_grad();
  }
  constexpr std::size_t parts_of_mesh = detail::Parameter<Var<MeshArrays>>::parts;
  const std::size_t parts = arguments.parts().size() + meshes.size() * parts_of_mesh;
  if (!any || parts > std::size_t(detail::kMostParameters)) meshes.clear();
  return meshes;
}

}  // namespace weft::python
