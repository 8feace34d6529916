// Traces and compiles kernels and their adjoints, once for each way in which they are launched.
#include "kernel_programs.h"

#include <fmt/format.h>

#include <optional>

#include "../../frontend/passes/passes.h"
#include "../../frontend/support/hash.h"
#include "export_launched.h"

namespace weft::detail {

namespace {

/// A kernel's hold on a program. The device owns the program, because a kernel that is a global variable outlives the
/// device.
struct ProgramUse {
  std::uint64_t device;
  ir::Variant variant;
  LoadedProgram* program;
  std::weak_ptr<DeviceState> alive;

  ProgramUse(DeviceState& device, const ir::Variant& variant, LoadedProgram* program)
      : device(device.id), variant(variant), program(program), alive(device.weak_from_this()) {}
  ProgramUse(const ProgramUse&) = delete;
  ~ProgramUse() {
    if (const auto state = alive.lock()) state->programs.give_back(program);
  }
};
using ProgramUses = std::vector<std::unique_ptr<ProgramUse>>;

LoadedProgram* find(const ProgramUses& uses, const DeviceState& device, const ir::Variant& variant) {
  for (const auto& use : uses)
    if (use->device == device.id && use->variant == variant) return use->program;
  return nullptr;
}

LoadedProgram& add(ProgramUses& uses, DeviceState& device, const ir::Variant& variant, LoadedProgram* program) {
  std::erase_if(uses, [](const auto& use) { return use->alive.expired(); });
  uses.push_back(std::make_unique<ProgramUse>(device, variant, program));
  return *program;
}

/// The programs and adjoints of one kernel.
struct KernelPrograms {
  struct KnownAdjoint {
    ir::Variant variant;
    ir::AdjointOptions options;
    std::uint32_t max_block;
    std::shared_ptr<KernelAdjoint> adjoint;
  };
  /// The identity of launches in debug mode, see identity_of().
  struct KnownIdentity {
    ir::Variant variant;
    std::uint32_t max_block;
    std::uint64_t identity;
  };
  ProgramUses uses;
  std::vector<KnownAdjoint> adjoints;
  std::vector<KnownIdentity> identities;
  std::optional<TraceMark> first;  ///< the first trace that was compiled or exported
};

// The kernel is locked.
KernelPrograms& programs_of(KernelCore& kernel) {
  if (!kernel.programs) kernel.programs = std::make_shared<KernelPrograms>();
  return *static_cast<KernelPrograms*>(kernel.programs.get());
}

ir::Module trace_once(const KernelCore& kernel, const ir::Variant& variant, std::uint32_t max_block) {
  ir::Module module = kernel.trace(variant, max_block);
  // The device refuses kernels that depend on larger workgroups.
  if (!module.fixed_block) module.block = std::min(module.block, max_block);
  return module;
}

// All variants are the same kernel: one that is launched with one value of a host's variable must not be
// differentiated, checked, exported, or run on another device with another value. Each new variant therefore traces the
// first one again, which must not have changed.
void expect_same(const KernelCore& kernel, const ir::Module& module, const TraceMark& now, const TraceMark& first) {
  const bool same = first.variant == now.variant && first.max_block == now.max_block;
  if ((same ? now.hash : ir::hash(trace_once(kernel, first.variant, first.max_block))) != first.hash)
    ir::fail(
        module, module.loc,
        "the kernel's function does something else than when it was first launched or exported: a value of the "
        "host's that it reads (a variable captured by reference, a member of a class, a global) has changed since. "
        "What changes is a parameter; capture the rest by value, [=]");
}

// The kernel is locked.
ir::Module trace(KernelCore& kernel, const ir::Variant& variant, std::uint32_t max_block) {
  ir::Module module = trace_once(kernel, variant, max_block);
  if (const auto& first = programs_of(kernel).first)
    expect_same(kernel, module, {variant, max_block, ir::hash(module)}, *first);
  return module;
}

void settle_locked(KernelCore& kernel, const TraceMark& mark) {
  if (auto& first = programs_of(kernel).first; !first) first = mark;
}

// The key has the kernel's name and place: messages name these, so only kernels made at one place share a program.
std::string key_of(const ir::Module& module, Hash128 hash) {
  return fmt::format("{} {} {}:{}", to_hex(hash), module.name, module.loc.file, module.loc.line);
}

LoadedProgram* compile(const ir::Module& module, Hash128 hash, DeviceState& device, const char* role = "") {
  std::string key = key_of(module, hash);
  Programs::Held programs(device.programs);
  if (LoadedProgram* known = programs.take(key)) return known;
  auto loaded = std::make_unique<LoadedProgram>();
  loaded->program = device.device->compile(module, hash);
  loaded->program->role = role;
  loaded->call = std::make_shared<ir::Interface>(module.as_interface());
  loaded->together = ir::group_use(module).together;
  loaded->reals = ir::real_arrays(module);
  loaded->kept = ir::kept_from_access(module);
  loaded->key = std::move(key);
  return programs.add(std::move(loaded));
}

}  // namespace

LoadedProgram& program_for(KernelCore& kernel, DeviceState& device, const ir::Variant& variant) {
  std::lock_guard lock(kernel.mutex);
  ProgramUses& uses = programs_of(kernel).uses;
  if (LoadedProgram* known = find(uses, device, variant)) return *known;
  const std::uint32_t max_block = device.device->info().max_block;
  const ir::Module module = trace(kernel, variant, max_block);
  const Hash128 hash = ir::hash(module);
  export_launched(module);
  LoadedProgram* const program = compile(module, hash, device);
  settle_locked(kernel, {variant, max_block, hash});
  return add(uses, device, variant, program);
}

ir::Module trace_for_export(KernelCore& kernel, const ir::Variant& variant, std::uint32_t max_block,
                            std::optional<TraceMark>& first) {
  if (tracing::Trace::active())
    throw Error(ErrorKind::invalid_kernel, "it is exported while a kernel is traced: export it from the host",
                kernel.name(), kernel.loc());
  std::lock_guard lock(kernel.mutex);
  ir::Module module = trace(kernel, variant, max_block);
  const TraceMark now{variant, max_block, ir::hash(module)};
  if (first)
    expect_same(kernel, module, now, *first);
  else
    first = now;
  return module;
}

void settle(KernelCore& kernel, const TraceMark& mark) {
  std::lock_guard lock(kernel.mutex);
  settle_locked(kernel, mark);
}

std::uint64_t identity_of(KernelCore& kernel, DeviceState& device, const ir::Variant& launched,
                          const LoadedProgram& program) {
  if (launched.debug == Debug()) return hash64(program.key);
  ir::Variant variant = launched;
  variant.debug = {};
  const std::uint32_t max_block = device.device->info().max_block;
  std::lock_guard lock(kernel.mutex);
  KernelPrograms& programs = programs_of(kernel);
  if (const LoadedProgram* known = find(programs.uses, device, variant)) return hash64(known->key);
  for (const auto& known : programs.identities)
    if (known.variant == variant && known.max_block == max_block) return known.identity;
  const ir::Module module = trace(kernel, variant, max_block);
  const std::uint64_t identity = hash64(key_of(module, ir::hash(module)));
  programs.identities.push_back({variant, max_block, identity});
  return identity;
}

struct KernelAdjoint::Programs {
  ProgramUses uses;
};

LoadedProgram& KernelAdjoint::program(DeviceState& device, const ir::Module& module, const char* role,
                                      std::shared_ptr<Programs>& programs) {
  std::lock_guard lock(mutex_);
  if (!programs) programs = std::make_shared<Programs>();
  if (LoadedProgram* known = find(programs->uses, device, {})) return *known;
  return add(programs->uses, device, {}, compile(module, ir::hash(module), device, role));
}

LoadedProgram& KernelAdjoint::program(DeviceState& device) {
  return program(device, adjoint_.module, "adjoint", programs_);
}

LoadedProgram& KernelAdjoint::counter(DeviceState& device) {
  return program(device, adjoint_.counter.front(), "undo counter", counters_);
}

std::shared_ptr<KernelAdjoint> adjoint_of(KernelCore& kernel, DeviceState& device, const ir::Variant& launched,
                                          const ir::AdjointOptions& options) {
  // The adjoint has the checks of debug mode, too, because a thread that they ended must not go back. The launch itself
  // has reported their failures.
  ir::Variant variant = launched;
  variant.adjoint = true;
  const std::uint32_t max_block = device.device->info().max_block;
  std::lock_guard lock(kernel.mutex);
  auto& adjoints = programs_of(kernel).adjoints;
  for (const auto& known : adjoints)
    if (known.variant == variant && known.options == options && known.max_block == max_block) return known.adjoint;
  const ir::Module module = trace(kernel, variant, max_block);
  auto made = std::make_shared<KernelAdjoint>(ir::adjoint(module, options));
  export_launched_adjoint(module, options);
  adjoints.push_back({variant, options, max_block, made});
  return made;
}

}  // namespace weft::detail
