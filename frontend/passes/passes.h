// The passes: each takes a kernel and returns another that does the same. They go through its functions too.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "../ir/module.h"

namespace weft::ir {

/// Cleans up what tracing leaves behind; run on every kernel before it is emitted.
///
/// Reads of locals whose value is known become that value, branches on constants are taken, and what nobody needs is
/// removed: pure values, loads, assignments that are overwritten or never read, branches and loops without effect,
/// results and carried values without reader. Takes traced and normal form and keeps the form.
/// A loop whose only effect would be to never end is removed too.
/// Code behind a failure that is certain goes as well, but what it would do to the kernel's arrays is marked
/// (Param::access): whoever reads what it was to write waits for the launch, and so hears of the failure.
Module forward(const Module& module);

/// Removes break, continue, return and step regions, by boolean locals and branches where the plain structure does
/// not do. Locals remain. A loop may become one whose condition is a flag and whose body starts with what the
/// condition computed: where the condition must not run again after a break, or assigns to locals that live on.
/// What follows an exit is nested, inside at most `chain` rests of its kind: more exits in a row are not deeper.
/// Errors: internal_error() when a loop that carries values also assigns in its condition to locals that live on.
Module normalise(const Module& module, unsigned chain = 256);

/// Turns locals into results of branches and values carried by loops: normal form. Takes what normalise() returns.
/// A local that is read before any assignment is zero.
/// Errors: internal_error() when the module has exits or step regions.
Module promote(const Module& module);

/// Guards branches instead of nesting them, where control flow would nest more than `limit` levels deep in the way that
/// drivers build it: they put what follows a branch with an exit inside the other side of that branch. The kernel then
/// has no calls, exits or step regions, and may have locals beside results and carried values. Nothing when the kernel
/// is no deeper. Cost: what is guarded runs one branch for each run of instructions between two others.
/// Errors: Error(unsupported) when loops alone nest deeper; those of inline_calls().
std::optional<Module> limit_nesting(const Module& kernel, unsigned limit);

/// Settles what becomes of a thread that fails (assert_, the checks of debug mode), after forward(), which keeps the
/// marks of failures. In a kernel whose threads meet at barriers or in subgroups it goes on: its `return_` becomes a
/// `break_` out of the innermost loop, unless other threads run that loop in step with it and do not fail; then it
/// becomes nothing. Nor does a While's condition ask there whether the thread has failed. So what can be proved of a
/// kernel (check_uniform) is the same with and without checks.
void outlive_failures(Module& module);

/// Refuses a barrier that not all threads of a workgroup may reach, and an operation of subgroups that not all threads
/// of a subgroup may reach: one under a condition, in a loop or behind an exit that depends on what may differ among
/// them. Sure to agree are constants, arguments, shapes and the number of the workgroup; within a subgroup its number
/// and what its threads computed together; and what follows from these. Values read from memory may differ. Errors:
/// Error(invalid_kernel) with the line of the operation and that of the condition.
void check_uniform(const Module& module);
/// The first operation of subgroups that is sure to be reached by whole subgroups, but not by the whole workgroup;
/// kNone without one. Only a device that brings the threads of a subgroup together again has them all there.
Id first_in_subgroup_flow(const Module& module);

/// Only what no one needs is removed.
Module sweep(const Module& module);

/// Which calls inline_calls() leaves.
enum class Keep : std::uint8_t {
  none,
  gradients,  ///< for the adjoint: of functions that have a gradient function
};
/// Puts the bodies of functions in place of the calls; keeps the form. A kernel without calls comes back as it is.
///
/// With Keep::gradients, which takes what is traced with Variant::adjoint, the table then holds the functions whose
/// calls stay and their gradient functions; inside these nothing is called. A function that has a replay is replaced by
/// it everywhere. Replays and gradient functions see the arrays that the function itself writes to as the launch has
/// left them (after_base).
/// Errors: Error(unsupported) when the kernel would grow beyond a million instructions; Error(not_differentiable) when
/// the kernel uses an array that a function with derivatives of its own writes to, other than by that function: the
/// adjoint does not know when which value stood there.
Module inline_calls(const Module& module, Keep keep = Keep::none);

/// By function of a kernel's table and input: what it does to memory through an address that it takes.
std::vector<std::vector<Access>> input_accesses(std::span<const std::shared_ptr<const Module>> functions);

/// Fills Param::access: what the kernel, and the functions that it calls, do to each of its arrays. An address that is
/// computed counts for every array that it is computed from, or for all of them where that cannot be followed.
void mark_accesses(Module& module);
/// Arrays, as bits, that accesses say more of than is in the code: see forward().
std::uint64_t kept_from_access(const Module& kernel);
/// Adds to `kernel` what these instructions of `module`, which has the same parameters, would do.
void mark_accesses(Interface& kernel, const Module& module, std::span<const Id> insts);

}  // namespace weft::ir
