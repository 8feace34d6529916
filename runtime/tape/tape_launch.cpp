// Launches on a tape: their records, and the launches of their adjoints.
#include <fmt/format.h>

#include <bit>
#include <map>
#include <numeric>

#include "../../frontend/kernels/names.h"
#include "../../frontend/support/error.h"
#include "../launch.h"
#include "../launch/kernel_programs.h"
#include "../work/capture.h"
#include "../work/dispatch.h"
#include "../work/work.h"
#include "exact_sum.h"
#include "tape_core.h"

namespace weft::detail {

namespace {

constexpr std::int64_t kMaxWords = (1ll << 31) - 1;

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// Arrays in use by one launch, at stable addresses.
struct Arguments {
  std::vector<View> arrays;
  std::vector<HostArg> args;
  std::vector<Version::Hold> held;

  explicit Arguments(std::size_t count) {
    arrays.reserve(count);
    args.reserve(count);
  }
  void add(const View& array) {
    arrays.push_back(array);
    args.emplace_back().array = &arrays.back();
  }
  /// Holds the version, so that its elements do not change during the lifetime of these arguments.
  void add(const Version& version) {
    held.push_back(version.hold());
    add(held.back().where());
  }
  void add(const void* value) { args.emplace_back().value = value; }
  View& array(std::size_t k) {
    return *std::ranges::find_if(arrays, [&](const View& v) { return &v == args[k].array; });
  }
};

/// Words from the start of an array to its end, rounded up to a line of them so that pieces of memory stay aligned.
std::uint64_t words_of(const ArrayBase& a, std::uint32_t unit) { return (a.extent_bytes() + 63) / 64 * (64 / unit); }

/// Joins the groups of parameters l < k: see ir::AdjointOptions::groups.
void join(std::vector<std::uint32_t>& groups, std::size_t params, std::size_t l, std::size_t k) {
  if (groups.empty()) {
    groups.resize(params);
    std::iota(groups.begin(), groups.end(), 0u);
  }
  const auto [to, from] = std::minmax({groups[l], groups[k]});
  std::ranges::replace(groups, from, to);
}

/// The memory from the first to the last element as numbers of `bytes` bytes.
View in_a_row(const ArrayBase& a, std::uint32_t bytes) {
  return View(a.storage(), a.address(), std::int64_t(a.extent_bytes() / bytes), bytes);
}

}  // namespace

// Clears the gradients of scalars that a launch replaced, told by their bits before and after it.
template <class T>
KernelCore& clear_replaced() {
  static const auto k = kernel("clear replaced", [](Arr<const T> before, Arr<const T> after, Arr<T> gradient) {
    Int64 i = tid64();
    If (before[i] != after[i]) {
      gradient[i] = T(0);
    }
  });
  return k.core();
}

// Takes the elements that a thread owns from all threads to come, whatever their numbers.
KernelCore& take_owned() {
  static const auto k = kernel("take owned", [](Arr<unsigned> owners) {
    Int64 i = tid64();
    If (owners[i] != 0u) {
      owners[i] = ~0u;
    }
  });
  return k.core();
}

class LaunchRecord : public TapeRecord {
 public:
  LaunchRecord(const CheckedLaunch& launch, std::shared_ptr<KernelAdjoint> adjoint)
      : kernel_(launch.kernel.shared_from_this()),
        adjoint_(std::move(adjoint)),
        device_(launch.stream.device->shared_from_this()),
        threads_(launch.threads),
        count_(launch.count),
        uses_(launch.uses.begin(), launch.uses.end()) {
    const auto& params = launch.program.call->params;
    args_.resize(params.size());
    for (std::size_t k = 0; k < params.size(); ++k) {
      const HostArg& given = launch.args[k];
      Arg& arg = args_[k];
      if (given.array) {
        arg.array = View(*given.array);
        arg.written = !given.array->is_null() && any(params[k].access, ir::kChanges);
      } else {
        arg.value = values_.size();
        values_.resize(values_.size() + params[k].bytes);
        std::memcpy(values_.data() + arg.value, given.value, params[k].bytes);
      }
    }
  }

  /// Called just before the launch: holds what the adjoint reads of that moment.
  void take_before(TapeCore& tape, const CheckedLaunch& launch) {
    for (std::size_t k = 0; k < args_.size(); ++k)
      if (adjoint_->get().reads >> k & 1) args_[k].before = tape.version(args_[k].array);
    take_held(tape, launch);
    if (launch.program.call->by_handles) take_by_handles(tape, launch.stream);
  }
  /// Called just after the launch.
  void take_after(TapeCore& tape) {
    // What elements hold and the kernel itself changes there, the adjoint does not read.
    for (Unchanged& u : held_) u.at_launch = u.changes->count;
    for (const ir::AdjointParam& p : adjoint_->get().extra)
      if (p.kind == ir::AdjointParam::Kind::after) args_[p.of].after = tape.version(args_[p.of].array);
  }
  void backward(TapeCore& tape) override;

  /// The outputs with gradients, by parameter.
  std::uint64_t outputs = 0;
  std::uint64_t with_gradient = 0;
  const ArrayBase& array(std::size_t k) const { return args_[k].array; }

 private:
  void take_held(TapeCore& tape, const CheckedLaunch& launch);
  void take_by_handles(TapeCore& tape, StreamState& stream);

  struct Arg {
    View array;  ///< null for a value, and for an array that is left out
    std::size_t value = 0;
    bool written = false;
    std::shared_ptr<Version> before, after;
  };

  /// Memory of the threads of a dispatch.
  struct Scratch {
    View slots, log, owners;
    std::uint32_t lanes = 8;                  ///< threads that have memory at once
    bool limits_lanes = false;                ///< bounds the threads that run at once
    std::map<std::uint32_t, View> sums = {};  ///< by parameter
  };

  void add_arguments(Arguments& to) const;
  std::size_t add_extra(Arguments& to, TapeCore& tape, const Scratch& scratch) const;
  bool any_gradient(TapeCore& tape) const;
  void refuse_changes(TapeCore& tape) const;
  Scratch scratch_for(TapeCore& tape, std::int64_t at_once);
  void run_adjoint(TapeCore& tape, const LoadedProgram& program, std::int64_t steps, const Scratch& scratch);
  void clear_where_replaced(const ir::Extremum& extremum, const View& gradient);
  std::uint32_t count_entries(TapeCore& tape) const;
  std::uint32_t log_entries(TapeCore& tape);
  View zero_sums(const ir::ExactSum& sum) const;
  View zero_owners(TapeCore& tape) const;

  const std::shared_ptr<KernelCore> kernel_;
  const std::shared_ptr<KernelAdjoint> adjoint_;
  const std::shared_ptr<DeviceState> device_;
  const Extent threads_;
  const std::int64_t count_;
  const std::vector<StructureUse> uses_;
  std::vector<Arg> args_;
  std::vector<std::byte> values_;
  /// Memory that the kernel reaches by addresses in memory, so that no argument stands for it: the way back finds it
  /// only if it has not changed.
  struct Unchanged {
    std::shared_ptr<Storage> storage;
    std::shared_ptr<ChangeCount> changes;
    std::uint64_t at_launch = 0;
  };
  std::vector<Unchanged> held_, by_handles_;  ///< which elements of arguments hold, and which handles lead to
  std::uint32_t entries_ = ir::kNone;         ///< entries of the undo log, once counted
};

void LaunchRecord::take_by_handles(TapeCore& tape, StreamState& stream) {
  for (const std::shared_ptr<Storage>& s : device_->handles.all(stream)) {
    const std::shared_ptr<ChangeCount> changes = tape.changes(s);
    by_handles_.push_back({nullptr, changes, changes->count});
  }
}

void LaunchRecord::take_held(TapeCore& tape, const CheckedLaunch& launch) {
  const auto& params = launch.program.call->params;
  References held, holders;
  for (std::size_t k = 0; k < args_.size(); ++k) {
    const View& a = args_[k].array;
    if (a.is_null() || params[k].access == ir::Access::none || !a.storage()->may_hold_arrays) continue;
    a.storage()->reach(held);
    holders.push_back(a.storage());
  }
  if (Capture* const capture = launch.stream.capture) {
    std::ranges::copy_if(held, std::back_inserter(holders), &Storage::may_hold_arrays);
    for (const auto& s : holders) capture->fix_elements(*s);
  }
  for (const auto& s : held) {
    if (s->bytes == 0) continue;
    for (std::size_t k = 0; k < args_.size(); ++k)
      if (args_[k].written && args_[k].array.storage() == s)
        throw Error(ErrorKind::invalid_argument,
                    fmt::format("{} is changed by the kernel, an element of an argument holds it too, and a tape "
                                "records it: what is read by the other way would not be known",
                                params[k].name),
                    kernel_->name(), kernel_->loc());
    held_.push_back({s, tape.changes(s)});
  }
}

// Adds the launch's arguments, with the elements of that time.
void LaunchRecord::add_arguments(Arguments& to) const {
  const auto& params = adjoint_->get().module.params;
  for (std::size_t k = 0; k < args_.size(); ++k) {
    const Arg& arg = args_[k];
    if (params[k].kind == ir::Param::Kind::value)
      to.add(values_.data() + arg.value);
    else if (arg.before)
      to.add(*arg.before);
    else
      to.add(arg.array);
    if (adjoint_->get().writes >> k & 1 && !to.held.back().is_copy())
      internal_error("an adjoint would change an array that is in use");
  }
}

// Adds the adjoint's own arguments after those.
// \return  the index of the one that tells the first thread of a dispatch
std::size_t LaunchRecord::add_extra(Arguments& to, TapeCore& tape, const Scratch& scratch) const {
  static constexpr std::uint32_t kFirst = 0;
  std::uint64_t owners_before = 0;
  std::map<std::uint64_t, View> known;  // two names of one array share its owners
  const auto owners_of = [&](std::uint32_t of, std::uint32_t unit) {
    if (const auto found = known.find(args_[of].array.address()); found != known.end()) return found->second;
    const std::uint64_t words = words_of(args_[of].array, unit);
    const View owners(scratch.owners.storage(), scratch.owners.address() + owners_before, std::int64_t(words), 4);
    owners_before += words * 4;
    known.emplace(args_[of].array.address(), owners);
    return owners;
  };
  using Kind = ir::AdjointParam::Kind;
  std::size_t first_thread = SIZE_MAX;
  for (const ir::AdjointParam& p : adjoint_->get().extra) {
    switch (p.kind) {
      case Kind::gradient: to.add(tape.gradient(args_[p.of].array)); break;
      case Kind::after: to.add(*args_[p.of].after); break;
      case Kind::owners: to.add(owners_of(p.of, p.unit)); break;
      case Kind::sums: to.add(scratch.sums.at(p.of)); break;
      case Kind::scratch: to.add(scratch.slots); break;
      case Kind::log: to.add(scratch.log); break;
      case Kind::first_thread:
        first_thread = to.args.size();
        to.add(&kFirst);
        break;
      case Kind::lanes: to.add(&scratch.lanes); break;
    }
  }
  return first_thread;
}

void LaunchRecord::backward(TapeCore& tape) {
  if (!any_gradient(tape)) return;
  refuse_changes(tape);
  const ir::Adjoint& adjoint = adjoint_->get();
  // If a kernel has read a gradient as an array, its version must be copied before addresses are taken.
  for (const ir::AdjointParam& p : adjoint.extra)
    if (p.kind == ir::AdjointParam::Kind::gradient)
      before_write(tape.gradient(args_[p.of].array), current_stream(*device_), {.by = "backward()"});
  const Within going(&Context::going_back, &tape);
  const LoadedProgram& program = adjoint_->program(*device_);
  const std::int64_t steps = steps_per_dispatch(*device_, *program.call, threads_, count_);
  const std::int64_t at_once = program.call->tid_rank ? steps * (count_ / threads_[0]) : steps;
  const Scratch scratch = scratch_for(tape, at_once);
  run_adjoint(tape, program, steps, scratch);
  for (const ir::Extremum& e : adjoint.extrema) clear_where_replaced(e, tape.gradient(args_[e.of].array));
  for (const ir::ExactSum& sum : adjoint.sums)
    add_exact_sums(scratch.sums.at(sum.of), in_a_row(tape.gradient(args_[sum.of].array), ir::bytes(sum.type)),
                   sum.type);
  for (const ir::AdjointParam& p : adjoint.extra)
    if (p.kind == ir::AdjointParam::Kind::gradient) tape.mark_nonzero(args_[p.of].array);
  // The adjoint counts as a change of what elements hold, where it writes copies of the elements' arrays.
  for (Unchanged& u : held_) u.at_launch = u.changes->count;
}

bool LaunchRecord::any_gradient(TapeCore& tape) const {
  for (std::size_t k = 0; k < args_.size(); ++k)
    if (outputs >> k & 1 && tape.nonzero(args_[k].array)) return true;
  return false;
}

void LaunchRecord::refuse_changes(TapeCore& tape) const {
  for (const ir::AdjointParam& p : adjoint_->get().extra) {
    if (p.kind != ir::AdjointParam::Kind::gradient) continue;
    if (const auto gradient = tape.gradient(args_[p.of].array).storage();
        std::ranges::count(held_, gradient, &Unchanged::storage) > 0)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("an element of an argument holds the gradient of {}, to which the way back adds: hold it "
                              "in elements that the kernel is not given",
                              adjoint_->get().module.params[p.of].name),
                  kernel_->name(), kernel_->loc());
  }
  const auto refuse_changed = [&](const std::vector<Unchanged>& memory, const char* message) {
    if (std::ranges::any_of(memory, [](const Unchanged& u) { return u.changes->count != u.at_launch; }))
      throw Error(ErrorKind::invalid_argument, message, kernel_->name(), kernel_->loc());
  };
  refuse_changed(by_handles_,
                 "the kernel finds meshes or hierarchies of boxes by their handles, and one of them has changed since: "
                 "go back before refit() and rebuild(), or give the kernel the structure itself");
  refuse_changed(held_,
                 "an array that elements of its arguments hold has changed since, or a kernel was launched that may "
                 "change it, and the way back would read it as it is now: go back before, or give the kernel the array "
                 "itself");
}

// Allocates the adjoint's memory for each thread that runs at once, for `at_once` at most: fewer if the memory ends.
LaunchRecord::Scratch LaunchRecord::scratch_for(TapeCore& tape, std::int64_t at_once) {
  const ir::Adjoint& adjoint = adjoint_->get();
  Scratch scratch;
  scratch.lanes = std::uint32_t(std::min(round_up(at_once, 8), kMaxWords / 8 * 8));
  const auto is_scratch = [](const ir::AdjointParam& p) { return p.kind == ir::AdjointParam::Kind::scratch; };
  scratch.limits_lanes = std::ranges::any_of(adjoint.extra, is_scratch);
  if (scratch.limits_lanes) {
    const std::uint32_t entries = log_entries(tape);
    const std::uint64_t log_bytes = std::uint64_t(adjoint.log_bytes) * entries;
    const std::uint64_t each = std::max<std::uint64_t>(adjoint.scratch_bytes + log_bytes, 1);
    const std::uint64_t budget = std::min<std::uint64_t>(tape.options.scratch_bytes, std::uint64_t(kMaxWords) * 4);
    if (each > budget / 8)
      throw Error(ErrorKind::out_of_memory,
                  fmt::format("the adjoint needs {} bytes of scratch memory for each thread, {} of them for the {} "
                              "elements that it overwrites in loops, and room for 8 threads at least; "
                              "TapeOptions::scratch_bytes is {}",
                              each, log_bytes, entries, tape.options.scratch_bytes),
                  kernel_->name(), kernel_->loc());
    scratch.lanes = std::uint32_t(std::min<std::uint64_t>(scratch.lanes, budget / each / 8 * 8));
    scratch.slots =
        tape.workspace(device_, TapeCore::Workspace::slots, std::uint64_t(adjoint.scratch_bytes) * scratch.lanes);
    scratch.log = tape.workspace(device_, TapeCore::Workspace::log, log_bytes * scratch.lanes);
  }
  scratch.owners = zero_owners(tape);
  for (const ir::ExactSum& sum : adjoint.sums) scratch.sums.emplace(sum.of, zero_sums(sum));
  return scratch;
}

void LaunchRecord::run_adjoint(TapeCore& tape, const LoadedProgram& program, std::int64_t steps,
                               const Scratch& scratch) {
  Arguments arguments(args_.size() + adjoint_->get().extra.size());
  add_arguments(arguments);
  const std::size_t first_thread = add_extra(arguments, tape, scratch);
  Arguments owners(1);
  if (!scratch.owners.is_null()) owners.add(scratch.owners);
  dispatch({.program = program,
            .on = current_stream(*device_),
            .threads = threads_,
            .count = count_,
            .args = arguments.args,
            .steps = steps,
            .lanes = scratch.limits_lanes ? std::int64_t(scratch.lanes) : INT64_MAX,
            .first_thread = first_thread,
            .between =
                [&] {
                  if (!owners.args.empty()) launch(take_owned(), nullptr, owners.arrays[0].size(), owners.args);
                },
            .uses = uses_});
}

// Clears the gradient of elements that lost to an atomic minimum or maximum, where it ends.
void LaunchRecord::clear_where_replaced(const ir::Extremum& extremum, const View& gradient) {
  const Arg& arg = args_[extremum.of];
  Arguments states(3);
  const Version::Hold before = arg.before->hold(), after = arg.after->hold();
  for (const View& state : {before.where(), after.where(), gradient}) states.add(in_a_row(state, extremum.bytes));
  KernelCore& kernel = extremum.bytes == 8   ? clear_replaced<std::uint64_t>()
                       : extremum.bytes == 4 ? clear_replaced<std::uint32_t>()
                                             : clear_replaced<std::uint16_t>();
  launch(kernel, nullptr, states.arrays[0].size(), states.args);
}

// Allocates the owners of all arrays in one piece of memory.
View LaunchRecord::zero_owners(TapeCore& tape) const {
  std::uint64_t bytes = 0;
  for (const ir::AdjointParam& p : adjoint_->get().extra)
    if (p.kind == ir::AdjointParam::Kind::owners) bytes += words_of(args_[p.of].array, p.unit) * 4;
  if (bytes == 0) return {};
  View owners = tape.workspace(device_, TapeCore::Workspace::owners, bytes);
  owners.zero();
  return owners;
}

View LaunchRecord::zero_sums(const ir::ExactSum& sum) const {
  const View scalars = in_a_row(args_[sum.of].array, std::uint32_t(ir::bytes(sum.type)));
  const std::int64_t words = scalars.size() * ir::ExactSum::words(sum.type);
  if (words > kMaxWords)
    throw Error(ErrorKind::out_of_memory,
                fmt::format("a deterministic tape needs {} bytes for the gradient of {}", words * 8,
                            adjoint_->get().module.params[sum.of].name),
                kernel_->name(), kernel_->loc());
  const auto storage = allocate(device_, std::uint64_t(words) * 8);
  View sums(storage, storage->allocation.address, words, 8);
  sums.zero();
  return sums;
}

// The number is not counted in captures, because later launches of a graph may find other elements.
std::uint32_t LaunchRecord::log_entries(TapeCore& tape) {
  const ir::Adjoint& adjoint = adjoint_->get();
  const bool captured = Capture::current();
  if (adjoint.log_entries != ir::kNone && (adjoint.counter.empty() || captured)) return adjoint.log_entries;
  if (entries_ == ir::kNone || captured) entries_ = count_entries(tape);
  return entries_;
}

// Counts the entries that a thread's undo log has at most. It works on copies, because the counter changes arrays
// without restoring them.
std::uint32_t LaunchRecord::count_entries(TapeCore& tape) const {
  if (const Capture* capture = Capture::current())
    throw Error(ErrorKind::unsupported,
                fmt::format("a tape goes back through it while {}: how often its loops change elements is counted on "
                            "the device first, and the host would wait for that. Give the loops constant bounds, or "
                            "keep this launch out of the tape or out of the capture",
                            capture->doing()),
                kernel_->name(), kernel_->loc());
  const ir::Adjoint& adjoint = adjoint_->get();
  LoadedProgram& program = adjoint_->counter(*device_);
  const std::int64_t steps = steps_per_dispatch(*device_, *program.call, threads_, count_);
  Arguments arguments(args_.size() + adjoint.extra.size());
  add_arguments(arguments);
  std::vector<std::pair<std::uint64_t, View>> copies;
  const auto copy_of = [&](std::uint64_t address) {
    return std::ranges::find(copies, address, &std::pair<std::uint64_t, View>::first);
  };
  for (std::size_t k = 0; k < args_.size(); ++k) {
    if (!(adjoint.writes >> k & 1)) continue;
    const View array = arguments.array(k);
    const std::uint64_t address = array.address();
    if (copy_of(address) != copies.end()) continue;
    const std::uint64_t shift = address % 256, bytes = array.extent_bytes();
    const auto storage = allocate(device_, shift + bytes);
    View from(array.storage(), address, std::int64_t(bytes), 1);
    View(storage, storage->allocation.address + shift, std::int64_t(bytes), 1).copy(from);
    copies.emplace_back(address, View(array, storage, storage->allocation.address + shift));
  }
  // Arguments that are one array stay one, including those through which it is only read.
  for (View& array : arguments.arrays)
    if (const auto known = copy_of(array.address()); known != copies.end()) array = known->second;
  Scratch scratch{tape.workspace(device_, TapeCore::Workspace::slots, 4),
                  tape.workspace(device_, TapeCore::Workspace::log, 4), zero_owners(tape), 8, false};
  scratch.slots.zero();
  for (const ir::ExactSum& sum : adjoint.sums) scratch.sums.emplace(sum.of, scratch.slots);
  add_extra(arguments, tape, scratch);
  dispatch({.program = program,
            .on = current_stream(*device_),
            .threads = threads_,
            .count = count_,
            .args = arguments.args,
            .steps = steps});
  arguments.held.clear();
  std::uint32_t entries = 0;
  scratch.slots.storage()->download(&entries, scratch.slots.address(), 4);
  return entries;
}

namespace {
// Puts arguments that are one array into one group of the adjoint.
// Errors: Error(invalid_argument) if the kernel writes through one of two that share a part of their elements.
void find_groups(ir::AdjointOptions& adjoint_options, const CheckedLaunch& launch) {
  const std::vector<ir::Param>& params = launch.program.call->params;
  for (std::size_t k = 0; k < params.size(); ++k) {
    const ArrayBase* a = launch.args[k].array;
    if (!a || a->is_null() || params[k].access == ir::Access::none) continue;
    for (std::size_t l = 0; l < k; ++l) {
      const ArrayBase* b = launch.args[l].array;
      if (!b || b->is_null() || params[l].access == ir::Access::none) continue;
      if (!may_overlap(*a, *b)) continue;
      if (any(params[k].access | params[l].access, ir::kChanges) && !same_elements(*a, *b))
        throw Error(ErrorKind::invalid_argument,
                    fmt::format("{} and {} share a part of their elements, the kernel writes there, and a tape records "
                                "it: give it the same array for both, or arrays that do not overlap",
                                argument_name(launch.args[l]), argument_name(launch.args[k])),
                    launch.kernel.name(), launch.kernel.loc());
      join(adjoint_options.groups, params.size(), l, k);
    }
  }
}
}  // namespace

TapeCore::Passage TapeCore::passage(const CheckedLaunch& launch) const {
  const std::vector<ir::Param>& params = launch.program.call->params;
  std::uint64_t carried = 0, read = 0, written = 0;
  References held;
  for (std::size_t k = 0; k < params.size(); ++k) {
    const ArrayBase* a = launch.args[k].array;
    if (!a || a->is_null()) continue;
    if (params[k].access != ir::Access::none && a->storage()->may_hold_arrays) a->storage()->reach(held);
    if (!(launch.program.reals >> k & 1)) continue;
    if (named_carries(*a)) carried |= 1ull << k;
    if (any(params[k].access, ir::Access::read)) read |= 1ull << k;
    if (any(params[k].access, ir::kChanges)) written |= 1ull << k;
  }
  if (launch.program.call->by_handles && written)
    for (const std::shared_ptr<Storage>& s : launch.stream.device->handles.all(launch.stream))
      if (carries(View::all_of(s)))
        throw Error(
            ErrorKind::not_differentiable,
            "the kernel finds meshes by their handles, and the points of one carry gradients, which none passes "
            "to: give it the Mesh itself",
            launch.kernel.name(), launch.kernel.loc());
  // Only the adjoint knows what a kernel does to arrays that it finds in elements, and refuses gradients there.
  const bool held_carries = std::ranges::any_of(held, [&](const auto& s) { return carries(View::all_of(s)); });
  const bool comes_in = (carried & read) || held_carries;
  // If gradients come in, everything written depends on them; if not, written arrays that carried some are overwritten.
  const std::uint64_t with_gradient = carried | (comes_in ? written : 0), outputs = with_gradient & written;
  if (!outputs && !(comes_in && !held.empty())) return {};

  ir::AdjointOptions adjoint_options;
  adjoint_options.with_gradient = with_gradient;
  adjoint_options.slots = options.loop_slots;
  adjoint_options.deterministic = options.deterministic;
  find_groups(adjoint_options, launch);
  for (std::size_t k = 0; k < params.size() && *changed_outside_ != 0; ++k) {
    if (!(with_gradient >> k & 1)) continue;
    if (const auto by = unknown_change(*launch.args[k].array))
      throw Error(ErrorKind::invalid_argument, about_unknown_change(argument_name(launch.args[k]), *by),
                  launch.kernel.name(), launch.kernel.loc());
  }
  auto adjoint = adjoint_of(launch.kernel, *launch.stream.device, launch.variant, adjoint_options);
  if (!outputs) return {};
  for (const ir::Extremum& e : adjoint->get().extrema)
    if (!launch.args[e.of].array->is_contiguous())
      throw Error(
          ErrorKind::not_differentiable,
          fmt::format("{} is a view that is not contiguous, and an atomic minimum or maximum changes it: give the "
                      "kernel an array of its own",
                      argument_name(launch.args[e.of])),
          launch.kernel.name(), launch.kernel.loc());
  return {with_gradient, outputs, std::move(adjoint)};
}

void TapeCore::launching(const CheckedLaunch& launch) {
  pending_.reset();
  for (std::size_t k = 0; k < launch.args.size() && launch.program.kept; ++k)
    if (launch.program.kept >> k & 1) kept_.insert(launch.args[k].array->storage());
  Passage passes = passage(launch);
  if (!passes.adjoint) return;
  for (std::size_t k = 0; k < launch.args.size() && *changed_outside_ != 0; ++k)
    if (passes.with_gradient >> k & 1) note_replaced(*launch.args[k].array);
  auto record = std::make_unique<LaunchRecord>(launch, std::move(passes.adjoint));
  record->outputs = passes.outputs;
  record->with_gradient = passes.with_gradient;
  record->take_before(*this, launch);
  pending_ = std::move(record);
}

void TapeCore::launched() {
  Capture* const capture = Capture::current();
  if (capture && (pending_ || !step_traces_.empty())) capture->taped();
  if (!pending_) return;
  LaunchRecord& record = static_cast<LaunchRecord&>(*pending_);
  for (std::uint64_t rest = record.outputs; rest; rest &= rest - 1)
    mark_written(record.array(std::size_t(std::countr_zero(rest))));
  for (std::uint64_t rest = record.with_gradient & ~record.outputs; rest; rest &= rest - 1)
    (void)taped(record.array(std::size_t(std::countr_zero(rest))));
  record.take_after(*this);
  add(std::move(pending_));
}

}  // namespace weft::detail
