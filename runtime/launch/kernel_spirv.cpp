// Exports a kernel as a module that other programs launch, with its description.
#include "../kernel_spirv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "../../backends/backend.h"
#include "../../backends/vulkan/vulkan.h"
#include "../../frontend/adjoint/adjoint.h"
#include "../../frontend/kernels/kernel.h"
#include "../../frontend/passes/passes.h"
#include "../../frontend/support/error.h"
#include "../../frontend/support/platform.h"
#include "../../spirv/emit.h"
#include "../../spirv/requirements.h"
#include "../device.h"
#include "kernel_programs.h"

namespace weft {

namespace {

using detail::KernelCore;
using Role = ReflectedArgument::Role;

constexpr std::string_view kNumbered = "argument ";

/// The names of the module's parameters in its description, and the numbers of the function's arguments that they are.
struct Naming {
  std::vector<std::string> names;
  std::vector<std::uint32_t> arguments;

  Naming(const ir::Module& module, const std::vector<std::string>& given) {
    std::uint32_t most = 0;
    for (const ir::Param& p : module.params) {
      std::uint32_t number = 0;
      const char* begin = p.name.data() + kNumbered.size();
      const char* end = p.name.data() + p.name.size();
      const char* rest = p.name.starts_with(kNumbered) ? std::from_chars(begin, end, number).ptr : end;
      if (number == 0) internal_error("a parameter that is not named by its argument");
      most = std::max(most, number);
      arguments.push_back(number);
      names.push_back(number <= given.size() ? given[number - 1] + std::string(rest, end) : p.name);
    }
    if (given.size() > most)
      throw Error(ErrorKind::invalid_argument, fmt::format("{} names are given for {} arguments", given.size(), most),
                  module.name, module.loc);
    auto sorted = names;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
      throw Error(ErrorKind::invalid_argument, fmt::format("two arguments are called \"{}\"", *twice), module.name,
                  module.loc);
  }

  /// The parameters of these names, one bit each.
  std::uint64_t mask(const ir::Module& module, const std::vector<std::string>& wanted, const char* what) const {
    std::uint64_t bits = 0;
    for (const std::string& name : wanted) {
      const auto at = std::ranges::find(names, name);
      if (at == names.end())
        throw Error(ErrorKind::invalid_argument,
                    fmt::format("{} names \"{}\"; the arguments are {}", what, name, fmt::join(names, ", ")),
                    module.name, module.loc);
      const std::size_t k = std::size_t(at - names.begin());
      if (module.params[k].kind != ir::Param::Kind::array)
        throw Error(ErrorKind::invalid_argument, fmt::format("{} names \"{}\", which is no array", what, name),
                    module.name, module.loc);
      bits |= 1ull << k;
    }
    return bits;
  }
};

/// Refuses kernels that need what weft's runtime does around a launch, which is not in the module.
void refuse_what_needs_runtime(const ir::Module& module) {
  const auto refuse = [&](Loc loc, const char* what) {
    throw Error(ErrorKind::unsupported, fmt::format("it cannot be exported: {}", what), module.name,
                loc ? loc : module.loc);
  };
  if (module.report_offset != 0)
    refuse(module.messages.front().loc,
           "it prints, asserts or checks itself (debug mode), and what it reports is shown by weft's runtime alone");
  if (module.by_handles)
    refuse(
        {},
        "it follows handles of meshes, hierarchies of boxes or hash grids, which weft's runtime alone gives out: let "
        "it take the structure itself");
}

ir::Adjoint make_adjoint(const ir::Module& module, std::uint64_t gradients, const SpirvOptions& options) {
  ir::AdjointOptions how;
  how.with_gradient = gradients;
  how.slots = options.loop_slots;
  ir::Adjoint adjoint = ir::adjoint(module, how);
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::unsupported, "its adjoint cannot be exported: " + what, module.name, module.loc);
  };
  if (!adjoint.extrema.empty()) refuse("after atomic minima and maxima another kernel clears gradients");
  if (adjoint.log_bytes && adjoint.log_entries == ir::kNone)
    refuse("it overwrites elements in a loop, and how many of them, another kernel counts before it");
  if (std::uint64_t(adjoint.log_bytes) * adjoint.log_entries > ~0u)
    refuse("it keeps more than 4 GiB for each thread of what it overwrites in loops");
  return adjoint;
}

ReflectedArgument describe(const ir::Param& p) {
  ReflectedArgument a;
  a.type = p.type_name;
  a.offset = p.offset;
  a.bytes = p.bytes;
  if (p.kind != ir::Param::Kind::array) return a;
  a.dimensions = p.ndim;
  a.strided = p.strided;
  a.element_bytes = p.element_bytes;
  a.alignment = p.element_align;
  a.reads = ir::any(p.access, ir::Access::read | ir::Access::atomic);
  a.writes = ir::any(p.access, ir::kChanges);
  return a;
}

ReflectedArgument describe(const ir::AdjointParam& extra, const ir::Param& p, const Naming& naming,
                           const ir::Adjoint& adjoint) {
  using Kind = ir::AdjointParam::Kind;
  ReflectedArgument a = describe(p);
  a.of = extra.of;
  const std::string& of = naming.names[extra.of];
  switch (extra.kind) {
    case Kind::gradient: a.role = Role::gradient, a.name = "gradient of " + of; break;
    case Kind::after: a.role = Role::after, a.name = of + " after the launch"; break;
    case Kind::owners: a.role = Role::owners, a.name = "owners of " + of, a.unit = extra.unit; break;
    case Kind::scratch:
      a.role = Role::scratch, a.name = "scratch", a.bytes_per_thread = std::max(adjoint.scratch_bytes, 4u);
      break;
    case Kind::log:
      a.role = Role::log, a.name = "log";
      a.bytes_per_thread = std::max(adjoint.log_bytes * adjoint.log_entries, 4u);
      break;
    case Kind::first_thread: a.role = Role::first_thread, a.name = "first thread"; break;
    case Kind::lanes: a.role = Role::lanes, a.name = "lanes"; break;
    case Kind::sums: internal_error("an exported adjoint is never deterministic");
  }
  return a;
}

// The number of the launch, which follows the address, is read as the size of the buffer.
ReflectedArgument failures_at(std::uint32_t offset) {
  ReflectedArgument a;
  a.name = "failures";
  a.type = "Array<uint32>";
  a.role = Role::failures;
  a.offset = offset;
  a.bytes = ir::report::kArgumentBytes;
  a.dimensions = 1;
  a.element_bytes = a.alignment = 4;
  a.reads = a.writes = true;
  static_assert(ir::report::kPrints * 4 == 65536);
  return a;
}

SpirvKernel translate(const ir::Module& module, SpirvOptions options) {
  spirv::Target& target = options.target;
  backend::DeviceInfo info;
  info.name = "the target";
  info.max_block = target.max_block;
  info.subgroup_size = target.subgroup_size;
  info.max_shared = ~0u;
  backend::check_groups(module, info);
  // The extension for uniform flow in subgroups is required only of kernels that depend on it.
  const bool parts = ir::first_in_subgroup_flow(module) != ir::kNone ||
                     std::ranges::any_of(module.functions, [](const auto& function) {
                       return ir::first_in_subgroup_flow(*function) != ir::kNone;
                     });
  if (!parts) target.subgroup_uniform_flow = false, target.subgroups_meet_again = true;

  SpirvKernel made;
  made.words = spirv::emit(module, target);
  if (options.optimise) made.words = spirv::optimise(made.words);
  made.ir = ir::print(module, true);
  Reflection& r = made.reflection;
  r.name = module.name;
  r.block = spirv::workgroup_size(module, target);
  r.spirv_bytes = made.words.size() * 4;
  r.spirv_hash = detail::hash_of_words(made.words);
  r.args_bytes = (module.args_bytes + 3) / 4 * 4;
  r.by_address = module.args_bytes > spirv::kPushConstantBytes;
  r.dimensions = module.tid_rank;
  r.extents_offset = module.tid_rank > 1 ? module.extent_offset(1) : 0;
  const ir::GroupUse use = ir::group_use(module);
  r.whole_groups = use.together;
  r.shared_bytes = std::uint32_t(use.shared_bytes);
  r.subgroup_size = use.subgroups ? target.subgroup_size : 0;
  spirv::Requirements needs = spirv::requirements(made.words);
  if (use.subgroups) {
    needs.features.push_back("subgroupSizeControl");
    needs.features.push_back("computeFullSubgroups");
    needs.device_extensions.push_back("VK_EXT_subgroup_size_control");
  }
  r.capabilities = std::move(needs.capabilities);
  r.spirv_extensions = std::move(needs.spirv_extensions);
  r.features = std::move(needs.features);
  r.device_extensions = std::move(needs.device_extensions);
  r.properties = std::move(needs.properties);
  return made;
}

/// Refuses names that are not UTF-8, because the description of an export is.
void check_names(const SpirvKernel& made) { (void)to_json(made.reflection); }

}  // namespace

SpirvKernel detail::export_module(const ir::Module& module, const SpirvOptions& options) {
  refuse_what_needs_runtime(module);
  const Naming naming(module, options.names);
  SpirvKernel made = translate(module, options);
  for (std::size_t k = 0; k < module.params.size(); ++k) {
    if (module.params[k].kind == ir::Param::Kind::absent) continue;
    ReflectedArgument& a = made.reflection.arguments.emplace_back(describe(module.params[k]));
    a.name = naming.names[k];
    a.argument = naming.arguments[k];
  }
  check_names(made);
  return made;
}

SpirvKernel detail::export_adjoint(const ir::Module& module, std::uint64_t gradients, const SpirvOptions& options) {
  refuse_what_needs_runtime(module);
  const Naming naming(module, options.names);
  const ir::Adjoint adjoint = make_adjoint(module, gradients, options);
  SpirvKernel made = translate(adjoint.module, options);
  Reflection& r = made.reflection;
  r.adjoint = true;
  const std::size_t own = module.params.size();
  for (std::size_t k = 0; k < adjoint.module.params.size(); ++k) {
    const ir::Param& p = adjoint.module.params[k];
    if (k >= own) {
      r.arguments.push_back(describe(adjoint.extra[k - own], p, naming, adjoint));
      continue;
    }
    ReflectedArgument& a = r.arguments.emplace_back(describe(p));
    a.name = naming.names[k];
    a.argument = naming.arguments[k];
    if (!a.is_array()) continue;
    a.reads = a.reads || (adjoint.reads >> k & 1);
    a.restored = a.writes = adjoint.writes >> k & 1;
  }
  if (adjoint.module.report_offset != 0) r.arguments.push_back(failures_at(adjoint.module.report_offset));
  check_names(made);
  return made;
}

std::string detail::file_stem(const std::string& name) {
  std::string stem = name.empty() ? "kernel" : name;
  for (char& c : stem) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return stem;
}

SpirvKernel export_spirv(KernelCore& kernel, const SpirvOptions& options) {
  ir::Variant variant;
  variant.debug = kernel.debug();
  std::optional<detail::TraceMark> first;
  const auto traced = [&](const ir::Variant& v) {
    return detail::trace_for_export(kernel, v, options.target.max_block, first);
  };
  const auto settled = [&](SpirvKernel made) {
    detail::settle(kernel, *first);
    return made;
  };
  ir::Module module = traced(variant);
  const Naming naming(module, options.names);
  variant.strided = naming.mask(module, options.strided, "strided");
  if (!options.adjoint) {
    if (!options.gradients.empty())
      throw Error(ErrorKind::invalid_argument, "gradients are named, and no adjoint is asked for", kernel.name(),
                  kernel.loc());
    if (variant.strided) module = traced(variant);
    return settled(detail::export_module(module, options));
  }
  refuse_what_needs_runtime(module);
  std::uint64_t gradients = naming.mask(module, options.gradients, "gradients");
  const std::uint64_t reals = ir::real_arrays(module);
  if (gradients & ~reals)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("gradients names \"{}\", of which the kernel reads and writes no real numbers",
                            naming.names[std::size_t(std::countr_zero(gradients & ~reals))]),
                kernel.name(), kernel.loc());
  if (!gradients) gradients = reals;
  if (!gradients)
    throw Error(ErrorKind::not_differentiable, "it has no arrays of real numbers", kernel.name(), kernel.loc());
  variant.adjoint = true;
  return settled(detail::export_adjoint(traced(variant), gradients, options));
}

spirv::Target spirv_target(const Device& device) { return backend::spirv_target(device.native()); }

void write_spirv(const SpirvKernel& kernel, const std::string& folder, const std::string& stem, Loc loc) {
  detail::called_from(loc, [&] {
    const auto path = [&](const char* ending) { return std::filesystem::path(folder) / (stem + ending); };
    const auto write = [&](const char* ending, std::span<const std::byte> bytes) {
      std::string why;
      if (!platform::write_file(path(ending), bytes, &why))
        throw Error(ErrorKind::io, fmt::format("{} cannot be written: {}", path(ending).string(), why),
                    kernel.reflection.name);
    };
    const std::string json = to_json(kernel.reflection);
    write(".spv", std::as_bytes(std::span(kernel.words)));
    try {
      write(".json", std::as_bytes(std::span(json)));
    } catch (const Error&) {
      platform::remove_file(path(".spv"));  // useless without its description
      throw;
    }
  });
}

}  // namespace weft
