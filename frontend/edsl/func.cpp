// Calls of functions: the instance for the arguments' form is looked up or traced, then called.
#include "func.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "../support/error.h"

namespace weft::detail {

using tracing::Id;

std::uint64_t new_func_number() {
  static std::atomic<std::uint64_t> made{0};
  return ++made;
}

// ---- Arrays as arguments: the scalars of a layout, and what of it is known at trace time.

namespace {

/// Calls f on every scalar of a layout that is there, in a fixed order.
template <class Layout, class F>
void each_id(Layout& arr, F f) {
  if (arr.base == ir::kNone) return;  // an array that the launch leaves out
  f(arr.base);
  if (arr.start != ir::kNone) f(arr.start);
  for (std::size_t k = arr.first; k < arr.ndim; ++k) {
    f(arr.shape[k]);
    if (arr.strided) f(arr.stride[k]);
  }
}

}  // namespace

void FuncArgs::add(const ArrLayout& arr, Loc loc) {
  Trace::owner_of(arr.trace, loc);
  each_id(arr, [&](Id id) { ids.push_back(id); });
  arrays.push_back(arr);
  for (std::uint32_t known :
       {std::uint32_t(arr.base != ir::kNone), std::uint32_t(arr.start != ir::kNone), arr.element_bytes,
        arr.element_align, std::uint32_t(arr.ndim), std::uint32_t(arr.first), std::uint32_t(arr.strided)})
    form.push_back(known);
}

Id FuncInputs::next() {
  const std::size_t k = id_++;
  if (inlined_) return args_.ids.at(k);
  const ir::Module& m = Trace::current().module();
  if (k >= m.num_inputs) internal_error("a function takes more inputs than it has");
  return m.regions[0].insts[k];
}

ArrLayout FuncInputs::next_array() {
  if (inlined_) {
    ArrLayout arr = args_.arrays.at(array_++);
    each_id(arr, [&](Id) { ++id_; });
    arr.trace = Trace::current().serial();
    return arr;
  }
  auto known = [&] { return args_.form.at(form_++); };
  ArrLayout arr;
  arr.trace = Trace::current().serial();
  arr.base = known() ? 0 : ir::kNone;
  arr.start = known() ? 0 : ir::kNone;
  arr.element_bytes = known();
  arr.element_align = known();
  arr.ndim = std::uint8_t(known());
  arr.first = std::uint8_t(known());
  arr.strided = known() != 0;
  each_id(arr, [&](Id& id) { id = next(); });
  return arr;
}

// ---- Calls

namespace {

/// Of a call: refuses a function that is being traced, with the names on the way.
class Open {
 public:
  Open(const FuncCore& core, Loc loc) : calls_(Trace::current(loc).kernel().calls) {
    const auto found = std::ranges::find(calls_, core.number, [](const auto& call) { return call.first; });
    if (found != calls_.end()) {
      std::string names;
      for (auto call = found; call != calls_.end(); ++call) names += call->second + " -> ";
      ir::fail(Trace::current().module(), loc, fmt::format("recursion is not supported: {}{}", names, core.name));
    }
    calls_.emplace_back(core.number, core.name);
  }
  ~Open() { calls_.pop_back(); }
  Open(const Open&) = delete;

 private:
  std::vector<std::pair<std::uint64_t, std::string>>& calls_;
};

/// Traces a function of its own. Null when it does what only the kernel itself can do.
std::shared_ptr<ir::Module> trace_function(const FuncCore& core, FuncBody body, const FuncArgs& args) {
  Trace& caller = Trace::current();
  Trace& kernel = caller.kernel();
  auto function = std::make_shared<ir::Module>();
  function->name = kernel.module().name;
  function->function = core.name;
  function->loc = core.loc;
  const std::size_t instances = kernel.instances.size(), messages = kernel.module().messages.size();
  try {
    Trace trace(*function, caller);
    for (Id id : args.ids) trace.builder().input(caller.module()[id].type, core.loc);
    FuncInputs inputs(args, false);
    std::vector<Id> outputs;
    body(core, inputs, outputs);
    trace.finish();
    if (!outputs.empty()) trace.builder().yield(outputs);
  } catch (const Trace::InlineRequired&) {
    // What it has left behind in the kernel is nobody's.
    kernel.instances.erase(kernel.instances.begin() + std::ptrdiff_t(instances), kernel.instances.end());
    kernel.module().messages.erase(kernel.module().messages.begin() + std::ptrdiff_t(messages),
                                   kernel.module().messages.end());
    return nullptr;
  }
  return function;
}

std::vector<Id> call_in_place(const FuncCore& core, FuncBody body, const FuncArgs& args) {
  const Trace::InPlace in_place(Trace::current(), core.name);
  FuncInputs inputs(args, true);
  std::vector<Id> outputs;
  body(core, inputs, outputs);
  return outputs;
}

}  // namespace

std::vector<Id> call_func(const FuncCore& core, FuncBody body, FuncArgs& args, Loc loc) {
  Trace& caller = Trace::current(loc);
  Trace& kernel = caller.kernel();
  const Open open(core, loc);
  if (core.name.empty()) ir::fail(caller.module(), loc, "a func() has no name");
  if (kernel.debug().checks || kernel.debug().finite) return call_in_place(core, body, args);

  std::vector<std::uint32_t> form = args.form;
  for (Id id : args.ids) form.push_back(std::uint32_t(caller.module()[id].type));
  // One function object may have several bodies: of its `auto` parameters.
  const auto which = reinterpret_cast<std::uintptr_t>(body);
  form.push_back(std::uint32_t(which));
  form.push_back(std::uint32_t(std::uint64_t(which) >> 32));

  const auto same = [&](const Trace::Instance& i) { return i.func == core.number && i.form == form; };
  auto found = std::ranges::find_if(kernel.instances, same);
  if (found == kernel.instances.end()) {
    std::shared_ptr<ir::Module> function = trace_function(core, body, args);
    if (!function) {
      caller.require_inline();
      return call_in_place(core, body, args);
    }
    // After the functions that it calls: each calls only those before it.
    found = kernel.instances.insert(kernel.instances.end(), {core.number, std::move(form), std::move(function)});
  }
  ir::Builder& b = caller.builder();
  const ir::Module& function = *found->function;
  const Id call = b.call(std::uint32_t(found - kernel.instances.begin()), args.ids, loc);
  std::vector<Id> results;
  for (Id output : function.outputs())
    results.push_back(b.result(call, std::uint32_t(results.size()), function[output].type));
  return results;
}

}  // namespace weft::detail
