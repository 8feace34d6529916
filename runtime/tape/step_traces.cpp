// Hashes the operations of steps, and compares them.
#include "step_traces.h"

#include <fmt/format.h>

#include <algorithm>

#include "../../frontend/support/hash.h"
#include "../launch.h"
#include "../launch/kernel_programs.h"
#include "tape_core.h"

namespace weft::detail {

namespace {

constexpr const char* kRule =
    "A step must do the same operations on the same arrays with the same values whenever it is run with the same "
    "number: let it swap contents, not handles, and take what changes from its number or from arrays";
constexpr const char* kOutlive = "Make arrays that outlive a step before checkpointed()";

const char* text_of(const HeardOperation& o) {
  switch (o.kind) {
    case OperationKind::launch: return "a launch of this kernel, of this many threads, with these arguments";
    case OperationKind::copy: return "a copy between these arrays";
    case OperationKind::overwrite: return "a fill or an assignment of these values to this array";
    case OperationKind::call: return "record_func() with these arrays";
    default: return o.what;
  }
}

}  // namespace

StepTraces::Run::Run(TapeCore& tape, StepTraces& traces, int step) : tape_(tape), traces_(traces) {
  traces.begin(step);
  tape.step_traces().push_back(&traces);
}
StepTraces::Run::~Run() {
  std::erase(tape_.step_traces(), &traces_);
  if (!through_) traces_.note_made(tape_);
}
void StepTraces::Run::end() {
  traces_.end(tape_);
  through_ = true;
}

void StepTraces::begin(int step) {
  step_ = step;
  again_ = std::size_t(step) < steps_.size();
  now_ = {};
  now_.begin = again_ ? steps_[std::size_t(step)].begin : Storage::next_serial();
  if (!again_ && operations_.size() < kMostOperations) now_.first_operation = operations_.size();
  made_.clear();
  made_numbers_.clear();
  difference_.reset();
}

// ---- Words of an operation

void StepTraces::put(std::span<const std::byte> bytes) {
  put(bytes.size());
  put(hash64(bytes));
}

void StepTraces::put(std::span<const std::byte> value, std::span<const Leaf> leaves, std::uint32_t element_bytes) {
  std::size_t counted = 0;
  for (const Leaf& l : leaves) counted += std::size_t(ir::bytes(l.type));
  if (leaves.empty() || counted == element_bytes) return put(value);
  // Padding is left out, because it may hold anything.
  std::vector<std::byte> tight;
  tight.reserve(value.size() / element_bytes * counted);
  for (std::size_t at = 0; at < value.size(); at += element_bytes)
    for (const Leaf& l : leaves) {
      const auto scalar = value.subspan(at + l.offset, std::size_t(ir::bytes(l.type)));
      tight.insert(tight.end(), scalar.begin(), scalar.end());
    }
  put(tight);
}

// Hashes addresses in arrays that the step made by number and offset, because these arrays lie elsewhere each time.
void StepTraces::put_addresses(const ArrayBase& to, const HostValues& values) {
  References made = *values.held;
  made.push_back(to.storage());
  std::erase_if(made, [&](const auto& s) { return s->serial <= now_.begin; });
  std::ranges::sort(made, {}, [](const auto& s) { return s->allocation.address; });
  std::vector<std::byte> bytes(values.bytes.begin(), values.bytes.end());
  for (std::size_t at = 0; !made.empty() && at + 8 <= bytes.size(); at += 8) {
    std::uint64_t address;
    std::memcpy(&address, bytes.data() + at, 8);
    const auto after = std::ranges::upper_bound(made, address, {}, [](const auto& s) { return s->allocation.address; });
    if (after == made.begin()) continue;
    const std::shared_ptr<Storage>& storage = *(after - 1);
    const std::uint64_t offset = address - storage->allocation.address;
    if (offset > storage->bytes) continue;
    put(number_of(storage));
    std::memcpy(bytes.data() + at, &offset, 8);
  }
  put(bytes);
}

void StepTraces::put_shape(const ArrayBase& a) {
  put(std::uint64_t(a.ndim()) << 32 | a.element_bytes());
  for (int k = 0; k < a.ndim(); ++k) put(std::uint64_t(a.shape(k))), put(std::uint64_t(a.stride(k)));
}

void StepTraces::put(const ArrayBase& a) {
  if (a.is_null()) return put(0);
  put(number_of(a.storage()));
  put(a.address() - a.storage()->allocation.address);
  put_shape(a);
}

std::uint64_t StepTraces::number_of(const std::shared_ptr<Storage>& storage) {
  const std::uint64_t serial = storage->serial;
  if (serial <= now_.begin) {
    const auto survivor = again_ ? survivors_.end() : survivors_.find(serial);
    if (survivor != survivors_.end()) survivor->second.used_later = true;
    return serial;
  }
  // An array that survived from the first run counts as itself, a new one by its turn.
  const auto survivor = again_ ? survivors_.find(serial) : survivors_.end();
  const std::size_t number = survivor == survivors_.end()     ? made_.size()
                             : survivor->second.step == step_ ? survivor->second.number
                                                              : std::size_t(serial);
  const auto [known, added] = made_numbers_.emplace(serial, number);
  if (added) made_.push_back(storage);
  put(storage->bytes);
  put(storage->device->id);
  return ~std::uint64_t(known->second);
}

// ---- Operations

void StepTraces::finish(const HeardOperation& operation) {
  if (difference_) throw *difference_;  // the step may have caught it
  const std::uint64_t hash = hash64(std::as_bytes(std::span(words_)));
  const std::uint32_t number = now_.operations++;
  const std::uint64_t chain[] = {now_.hash, hash};
  now_.hash = hash64(std::as_bytes(std::span(chain)));
  if (!again_) {
    if (now_.first_operation != SIZE_MAX) operations_.push_back(std::uint32_t(hash));
    return;
  }
  const Step& first = steps_[std::size_t(step_)];
  if (number >= first.operations)
    differ(fmt::format("beside the {} operations that it made the first time it makes", first.operations), &operation);
  if (first.first_operation != SIZE_MAX && operations_[first.first_operation + number] != std::uint32_t(hash))
    differ(fmt::format("operation {} is not what it was the first time:", number + 1), &operation);
}

void StepTraces::differ(const std::string& how, const HeardOperation* operation) {
  std::string message =
      fmt::format("step {} of checkpointed() does something else when it is run again: {}", step_, how);
  if (operation) message += std::string(" ") + text_of(*operation);
  message += std::string(". ") + kRule;
  const KernelCore* const kernel = operation && operation->launch ? &operation->launch->kernel : nullptr;
  difference_ = kernel ? Error(ErrorKind::invalid_argument, message, kernel->name(), kernel->loc())
                       : Error(ErrorKind::invalid_argument, message);
  throw *difference_;
}

void StepTraces::put(const CheckedLaunch& launch) {
  put(identity_of(launch.kernel, *launch.stream.device, launch.variant, launch.program));
  put(std::uint64_t(launch.threads.rank));
  for (int k = 0; k < launch.threads.rank; ++k) put(std::uint64_t(launch.threads[k]));
  const auto& params = launch.program.call->params;
  for (std::size_t k = 0; k < params.size(); ++k) {
    const HostArg& arg = launch.args[k];
    if (!arg.array)
      put({static_cast<const std::byte*>(arg.value), params[k].bytes}, arg.leaves, params[k].bytes);
    else if (params[k].access == ir::Access::none && !arg.array->is_null())
      put_shape(*arg.array);
    else
      put(*arg.array);
  }
}

void StepTraces::hear(const HeardOperation& o) {
  // An operation with a derivative of its own is known by its launches. The others change nothing.
  if (o.kind == OperationKind::derive || o.kind == OperationKind::read || o.kind == OperationKind::replay) return;
  words_.clear();
  put(std::uint64_t(o.kind));
  if (o.launch) put(*o.launch);
  for (const ArrayBase* a : {o.to, o.from})
    if (a) put(*a);
  for (const ArrayBase* a : o.others) put(*a);
  if (o.values && o.values->held)
    put_addresses(*o.to, *o.values);
  else if (o.values)
    put(o.values->bytes, o.values->leaves, o.values->element_bytes);
  finish(o);
}

// ---- The end of a step

void StepTraces::end(TapeCore& tape) {
  if (difference_) throw *difference_;
  if (!again_) {
    if (operations_.size() > kMostOperations) {
      operations_.resize(now_.first_operation);
      now_.first_operation = SIZE_MAX;
    }
    steps_.push_back(now_);
    return;
  }
  const Step& first = steps_[std::size_t(step_)];
  if (now_.operations != first.operations)
    differ(fmt::format("it makes {} operations, and made {} the first time", now_.operations, first.operations),
           nullptr);
  if (now_.hash != first.hash) differ("its operations are not what they were the first time", nullptr);
  check_survivors(tape);
}

// Checks that the step named the arrays that it made the first time: a gradient reaches only the same array again.
void StepTraces::check_survivors(TapeCore& tape) {
  for (auto s = survivors_.upper_bound(now_.begin); s != survivors_.end() && s->second.step == step_; ++s) {
    const auto storage = s->second.storage.lock();
    if (!storage || made_numbers_.contains(storage->serial)) continue;
    const bool flows = tape.nonzero(View(storage, storage->allocation.address, 1, 1));
    if (!s->second.used_later && !flows && !storage->has_gradient()) {
      tape.made_again(storage, step_);
      continue;
    }
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("step {} of checkpointed() makes an array that {}, and made another one when it was run again: no "
                    "gradient comes back to it. {}",
                    step_,
                    s->second.used_later ? "a later step uses"
                    : flows              ? "is used after the steps"
                                         : "has requires_grad()",
                    kOutlive));
  }
}

void StepTraces::note_survivors(TapeCore& tape) {
  if (note_made(tape))
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("step {} of checkpointed() makes an array with requires_grad() that outlives it, and another "
                    "one each time it is run. {}",
                    step_, kOutlive));
  if (survivors_.size() < survivors_pruned_) return;
  std::erase_if(survivors_, [](const auto& s) { return s.second.storage.expired(); });
  survivors_pruned_ = std::max<std::size_t>(2 * survivors_.size(), 64);
}

// \return  whether an array with requires_grad() takes the place of another one
bool StepTraces::note_made(TapeCore& tape) {
  bool has_gradient = false;
  std::size_t number = 0;
  for (const auto& made : std::exchange(made_, {})) {
    const std::size_t n = number++;
    const auto storage = made.lock();
    if (!storage) continue;
    if (!again_) {
      survivors_.emplace(storage->serial, Survivor{storage, step_, n});
    } else if (!survivors_.contains(storage->serial)) {
      tape.made_again(storage, step_);
      has_gradient = has_gradient || storage->has_gradient();
    }
  }
  made_numbers_.clear();
  return has_gradient;
}

}  // namespace weft::detail
