// Checks that every backend makes before it compiles a kernel.
#include "backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "../frontend/support/error.h"
#include "../frontend/support/invalid.h"

namespace weft::backend {

void check_groups(const ir::Module& module, const DeviceInfo& info) {
  const ir::GroupUse use = ir::group_use(module);
  auto refuse = [&](Loc loc, const std::string& what) {
    throw Error(ErrorKind::unsupported, what, module.name, loc ? loc : module.loc);
  };
  if ((use.together || module.fixed_block) && module.block > info.max_block)
    refuse(module.loc, fmt::format("the kernel asks for workgroups of {} threads; {} has at most {}", module.block,
                                   info.name, info.max_block));
  const auto largest = std::max_element(module.arrays.begin(), module.arrays.end(), [](const auto& a, const auto& b) {
    return (a.is_private ? 0 : a.bytes()) < (b.is_private ? 0 : b.bytes());
  });
  if (use.shared_bytes > info.max_shared)
    refuse(largest->loc, fmt::format("the kernel asks for {} bytes of shared memory; {} has {}", use.shared_bytes,
                                     info.name, info.max_shared));
  if (!use.subgroups) return;
  if (info.subgroup_size == 0)
    refuse(use.subgroup_loc, fmt::format("{} lacks whole subgroups (computeFullSubgroups)", info.name));
  if (module.block % info.subgroup_size != 0)
    refuse(use.subgroup_loc, fmt::format("a workgroup of {} threads is no whole number of subgroups, which have {} "
                                         "threads on {}; multiples of 128 are on every device",
                                         module.block, info.subgroup_size, info.name));
}

namespace {
[[noreturn]] void lacks_rays(const std::string& device) {
  unsupported("{} has no ray queries (VK_KHR_ray_query)", device);
}
}  // namespace

std::uint64_t Device::ray_structure_bytes(std::uint32_t, std::uint32_t) { lacks_rays(info().name); }

std::shared_ptr<RayStructure> Device::create_ray_structure(std::uint64_t, std::uint32_t, std::uint32_t) {
  lacks_rays(info().name);
}

Ticket Stream::build(RayStructure&, const RayTriangles&) { lacks_rays("the device"); }

}  // namespace weft::backend
