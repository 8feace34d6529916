// From a kernel to its adjoint: normal form, analysis, the walk, and the parameters around it.
#include "adjoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "../passes/passes.h"
#include "../support/error.h"
#include "array_states.h"
#include "reverser.h"

namespace weft::ir {

namespace {

constexpr std::uint32_t kMostSlots = 1 << 16;

/// Makes the interface of the adjoint: that of the kernel, with more parameters after the kernel's.
class Interfacer {
 public:
  Interfacer(const Module& kernel, Adjoint& to) : to_(to) {
    static_cast<Interface&>(to_.module) = kernel.as_interface();
    for (Param& param : to_.module.params) param.access = Access::none;
    to_.module.report_offset = 0;
    to_.module.messages.clear();
  }

  std::uint32_t add_array(AdjointParam::Kind kind, std::uint32_t of, std::string name, const Param& like) {
    Param param = like;
    param.name = std::move(name);
    param.read_only = false;
    return add(kind, of, std::move(param), 8);
  }
  std::uint32_t add_words(AdjointParam::Kind kind, std::uint32_t of, std::string name,
                          const char* type_name = "Array<uint32>", std::uint32_t bytes = 4) {
    Param param;
    param.kind = Param::Kind::array;
    param.ndim = 1;
    param.bytes = 12;
    param.element_bytes = param.element_align = bytes;
    param.type_name = type_name;
    param.name = std::move(name);
    return add(kind, of, std::move(param), 8);
  }
  std::uint32_t add_owners(std::uint32_t of, std::string name, std::uint32_t unit) {
    const std::uint32_t made = add_words(AdjointParam::Kind::owners, of, std::move(name));
    to_.extra.back().unit = unit;
    return made;
  }
  std::uint32_t add_number(AdjointParam::Kind kind, std::string name) {
    Param param;
    param.kind = Param::Kind::value;
    param.bytes = param.element_bytes = param.element_align = 4;
    param.type_name = "uint32";
    param.name = std::move(name);
    return add(kind, 0, std::move(param), 4);
  }

 private:
  std::uint32_t add(AdjointParam::Kind kind, std::uint32_t of, Param param, std::uint32_t align) {
    Module& m = to_.module;
    param.offset = (m.args_bytes + align - 1) / align * align;
    m.args_bytes = param.offset + param.bytes;
    to_.extra.push_back({kind, of});
    m.params.push_back(std::move(param));
    return static_cast<std::uint32_t>(m.params.size() - 1);
  }

  Adjoint& to_;
};

Module finished(const Module& raw, const Module& kernel, const Analysis& analysis,
                const std::vector<std::uint32_t>& gradient, const std::vector<std::uint32_t>& after) {
  Module resolved = raw;
  resolve_states(resolved, gradient, after);
  // Copies of the kernel's operations are marked as rounded, so only the adjoint's own ones are contracted.
  Module clean = contract(forward(resolved));
  mark_accesses(clean);
  // Writes from the undo log go to addresses that mark_accesses() takes for those of any array. They only restore
  // arrays that the kernel stores to and whose group the code reads, because an element is read into the log before it
  // is overwritten, through this parameter or another one of the group.
  std::vector<char> read(kernel.params.size(), 0);  // by group
  for (std::uint32_t k = 0; k < kernel.params.size(); ++k)
    if (any(clean.params[k].access, Access::read)) read[analysis.array(k).group] = 1;
  for (std::uint32_t k = 0; k < kernel.params.size(); ++k) {
    Access& access = clean.params[k].access;
    if (!read[analysis.array(k).group] || !any(kernel.params[k].access, Access::write))
      access = any(access, Access::read) ? Access::read : Access::none;
    else if (any(access, Access::write))
      access = access | Access::read;
  }
  verify(clean);
  return clean;
}

/// Adds the parameters that the code of the walk uses. `sums` are those of the analysis.
ExtraParams add_parameters(Interfacer& interface, const Module& kernel, const Analysis& analysis, bool deterministic,
                           const std::vector<ExactSum>& sums) {
  using Kind = AdjointParam::Kind;
  const std::vector<std::uint32_t> none(kernel.params.size(), kNone);
  ExtraParams extra{none, none, none};
  for (std::uint32_t k = 0; k < kernel.params.size(); ++k) {
    const Param& param = kernel.params[k];
    const ArrayUse& use = analysis.array(k);
    if (!use.gradient) continue;
    extra.gradient[k] = interface.add_array(Kind::gradient, k, "gradient of " + param.name, param);
    if (use.stored && !(deterministic ? use.own_element : use.stores_own))
      extra.owners[k] = interface.add_owners(k, "owners of " + param.name, use.narrow ? 2 : 4);
  }
  for (const ExactSum& sum : sums)
    extra.sums[sum.of] =
        interface.add_words(Kind::sums, sum.of, "sums of " + kernel.params[sum.of].name, "Array<uint64>", 8);
  if (analysis.has_slots() || analysis.has_log()) {
    extra.scratch = interface.add_words(Kind::scratch, 0, "scratch");
    if (analysis.has_log()) extra.log = interface.add_words(Kind::log, 0, "undo log");
    extra.first_thread = interface.add_number(Kind::first_thread, "first thread");
    extra.lanes = interface.add_number(Kind::lanes, "lanes");
  }
  return extra;
}

/// Adds a parameter for each array whose state after the launch the adjoint or the counter reads, or an extremum needs.
/// Returns their numbers, by parameter of the kernel.
std::vector<std::uint32_t> add_after(Interfacer& interface, const Module& kernel, const Adjoint& made,
                                     const Module& counter) {
  const std::vector<char> named = named_states(made.module, Op::after_base),
                          counted = named_states(counter, Op::after_base);
  std::vector<std::uint32_t> after(kernel.params.size(), kNone);
  for (std::uint32_t k = 0; k < kernel.params.size(); ++k) {
    const Param& param = kernel.params[k];
    const bool extreme = std::ranges::find(made.extrema, k, &Extremum::of) != made.extrema.end();
    if (named[k] || counted[k] || extreme)
      after[k] = interface.add_array(AdjointParam::Kind::after, k, param.name + " after the launch", param);
  }
  return after;
}

/// Notes which of the kernel's `count` parameters the adjoint reads and writes.
void note_accesses(Adjoint& made, std::size_t count) {
  const auto add = [&](const Module& code) {
    for (std::size_t k = 0; k < count; ++k) {
      const Access access = code.params[k].access;
      if (any(access, Access::read)) made.reads |= 1ull << k;
      if (any(access, Access::write)) made.writes |= 1ull << k;
    }
  };
  add(made.module);
  // The counter also makes stores whose elements nothing reads again.
  for (const Module& code : made.counter) add(code);
  for (const Extremum& e : made.extrema) made.reads |= 1ull << e.of;
}

}  // namespace

Adjoint adjoint(const Module& kernel, const AdjointOptions& options) {
  if (options.slots > kMostSlots)
    refuse(ErrorKind::unsupported, kernel,
           fmt::format("{} saved states for each loop; at most {} are possible", options.slots, kMostSlots));
  const Module normal = promote(normalise(inline_calls(kernel, Keep::gradients)));
  const Analysis analysis(normal, options);

  Adjoint made;
  Interfacer interface(normal, made);
  made.sums = analysis.exact_sums();
  const ExtraParams extra = add_parameters(interface, normal, analysis, options.deterministic, made.sums);

  Module counter = made.module;
  Reverser reverser(normal, analysis, extra, options, made.module);
  reverser.run();
  made.scratch_bytes = reverser.scratch_bytes();
  made.module = inline_calls(made.module);
  const std::optional<LogSize> log = analysis.has_log() ? analysis.log_entries() : LogSize();
  const bool counts = !log || !log->certain;
  if (counts) {
    Reverser(normal, analysis, extra, options, counter, true).count();
    counter = inline_calls(counter);
  }
  made.extrema = analysis.extrema();
  const std::vector<std::uint32_t> after = add_after(interface, normal, made, counter);
  made.module = finished(made.module, normal, analysis, extra.gradient, after);
  if (counts) {
    static_cast<Interface&>(counter) = made.module.as_interface();
    made.counter.push_back(finished(counter, normal, analysis, extra.gradient, after));
  }
  note_accesses(made, normal.params.size());
  if (!analysis.has_log()) return made;
  made.log_bytes = 16;
  made.log_entries = log ? log->most : kNone;
  return made;
}

}  // namespace weft::ir
