// The passes: each takes a kernel and returns an equivalent one, functions included.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "../ir/module.h"

namespace weft::ir {

/// Cleans up what tracing leaves behind; run on every kernel before it is emitted.
///
/// Reads of locals whose value is known become that value, branches on constants are taken, and unused code is removed:
/// pure values, loads, assignments that are overwritten or never read, branches and loops without effect, results and
/// carried values without reader. Accepts traced and normal form and keeps the form.
/// A loop whose only effect would be to never end is removed too.
/// Code after a certain failure is removed as well, but its accesses to the kernel's arrays stay marked
/// (Param::access): readers of what it was to write wait for the launch, and so hear of the failure.
Module forward(const Module& module);

/// Decides once how each sum, difference and product of float32 and float64 is rounded, so that a kernel, its adjoint
/// and all devices that round `fma` once get the same bits. Runs on every kernel after forward(), and on every adjoint.
///
/// A sum or difference of which an operand is a product becomes an `fma`: x * y + z, x * y - z as fma(x, y, -z), z -
/// x * y as fma(-x, y, z); if both operands are products, the first one is fused. This is decided for each by itself:
/// other readers of the product get it as before. Only operations of one piece of code (see is_contractible) are
/// contracted with each other. Neither p + p nor p - p is, for p as it is, negated or detached: the product would be
/// computed twice, and p - p would be its rounding error.
/// What remains is marked kRounded, and what was so marked stays: a second run changes nothing.
/// With Interface::contracts off, everything is marked.
///
/// float16 is not contracted: its operations are those of float32, rounded once more, and an fma of theirs would have
/// to be put together from several on every device that lacks one.
Module contract(const Module& module);

/// Removes break, continue, return and step regions, replacing them by boolean locals and branches where the plain
/// structure does not suffice. Locals remain. A loop may become one whose condition is a flag and whose body starts
/// with what the condition computed, if the condition must not run again after a break, or assigns to locals that live
/// on.
/// The code after an exit is nested, at most `chain` rests of a kind deep: more exits in a row are not deeper.
/// Errors: internal_error() when a loop that carries values also assigns in its condition to locals that live on.
Module normalise(const Module& module, unsigned chain = 256);

/// Turns locals into results of branches and values carried by loops, which is normal form. Takes what normalise()
/// returns. A local that is read before any assignment is zero.
/// Errors: internal_error() when the module has exits or step regions.
Module promote(const Module& module);

/// Guards branches instead of nesting them where control flow would nest more than `limit` levels deep as drivers build
/// it: they put the code after a branch with an exit inside the other side of that branch. The kernel then has no
/// calls, exits or step regions, and may have locals beside results and carried values. Nothing if the kernel is no
/// deeper.
/// Errors: Error(unsupported) when loops alone nest deeper; those of inline_calls().
/// Cost: guarded code runs one branch for each run of instructions between two others.
std::optional<Module> limit_nesting(const Module& kernel, unsigned limit);

/// Decides how a thread that fails (assert_, the checks of debug mode) goes on. Runs after forward(), which keeps the
/// marks of failures. In a kernel whose threads meet at barriers or in subgroups the thread continues: its `return_`
/// becomes a `break_` out of the innermost loop; it becomes nothing if other threads run that loop in step with it and
/// do not fail. A While's condition does not test there whether the thread has failed. What can be proved of a kernel
/// (check_uniform) is therefore the same with and without checks.
void outlive_failures(Module& module);

/// Refuses a barrier that not all threads of a workgroup may reach, and a subgroup operation that not all threads of a
/// subgroup may reach: one under a condition, in a loop or after an exit that depends on values that may differ among
/// them. Constants, arguments, shapes, the number of the workgroup, and values derived from these agree; within a
/// subgroup so do its number and what its threads computed together. Values read from memory may differ.
/// Errors: Error(invalid_kernel) with the line of the operation and that of the condition.
void check_uniform(const Module& module);
/// The first subgroup operation that whole subgroups are certain to reach, but not the whole workgroup; kNone without
/// one. Only a device that reconverges the threads of a subgroup has them all there.
Id first_in_subgroup_flow(const Module& module);

/// Removes only unused code.
Module sweep(const Module& module);

/// The calls that inline_calls() leaves.
enum class Keep : std::uint8_t {
  none,
  gradients,  ///< for the adjoint: calls of functions that have a gradient function
};
/// Replaces calls by the bodies of their functions; keeps the form. A kernel without calls comes back as it is.
///
/// With Keep::gradients, which takes a kernel traced with Variant::adjoint, the table then holds the functions whose
/// calls stay and their gradient functions; inside these nothing is called. A function that has a replay is replaced by
/// it everywhere. Replays and gradient functions see the arrays that the function itself writes to as the launch has
/// left them (after_base).
/// Errors: Error(unsupported) when the kernel would grow beyond a million instructions; Error(not_differentiable) when
/// it also uses, elsewhere, an array that a function with derivatives of its own writes to: the adjoint does not know
/// which value was there when.
Module inline_calls(const Module& module, Keep keep = Keep::none);

/// By function of a kernel's table and by input: the function's accesses through an address input.
std::vector<std::vector<Access>> input_accesses(std::span<const std::shared_ptr<const Module>> functions);

/// Fills Param::access with the accesses of the kernel and its functions to each of its arrays. A computed address
/// counts for every array that it is computed from, or for all of them if that cannot be followed.
void mark_accesses(Module& module);
/// Arrays, as bits, whose marked accesses exceed those in the code: see forward().
std::uint64_t kept_from_access(const Module& kernel);
/// Adds to `kernel` the accesses of these instructions of `module`, which has the same parameters.
void mark_accesses(Interface& kernel, const Module& module, std::span<const Id> insts);

}  // namespace weft::ir
