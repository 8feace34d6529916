// Calls of functions: finds or traces the instance for the arguments' form, then calls it.
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

void append(const Id* values, int n, std::vector<Id>& to) { to.insert(to.end(), values, values + n); }

// ---- Arrays as arguments: the scalars of a layout, and the facts about it that are known at trace time.

namespace {

/// Calls f on every scalar that a layout has, in a fixed order.
template <class Layout, class F>
void each_id(Layout& arr, F f) {
  if (arr.base == ir::kNone) return;  // the launch leaves this array out
  f(arr.base);
  if (arr.start != ir::kNone) f(arr.start);
  for (std::size_t k = arr.first; k < arr.ndim; ++k) {
    f(arr.shape[k]);
    if (arr.strided) f(arr.stride[k]);
  }
}

}  // namespace

void FuncArgs::add(const ArrLayout& arr, Loc loc) {
  const ir::Module& m = tracing::Trace::owner_of(arr.trace, loc).module();
  if (arr.base != ir::kNone && m[arr.base].op == ir::Op::gradient_base)
    ir::fail(
        m, loc,
        "the gradient of an array is no argument of a func(): use it in the gradient function itself or in a plain "
        "C++ function");
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
  const ir::Module& m = tracing::Trace::current().module();
  if (k >= m.num_inputs) internal_error("a function takes more inputs than it has");
  return m.regions[0].insts[k];
}

ArrLayout FuncInputs::next_array() {
  if (inlined_) {
    ArrLayout arr = args_.arrays.at(array_++);
    each_id(arr, [&](Id) { ++id_; });
    arr.trace = tracing::Trace::current().serial();
    return arr;
  }
  auto known = [&] { return args_.form.at(form_++); };
  ArrLayout arr;
  arr.trace = tracing::Trace::current().serial();
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

/// Both are bounded because passes keep a table of a kernel's functions for each function, and nested calls take stack
/// of the host.
constexpr std::size_t kMaxFunctions = 2048, kMaxNestedCalls = 256;

/// While it lives, traced code belongs to a function. Refuses a function that is being traced already, and names the
/// chain of calls.
class Open {
 public:
  Open(const FuncCore& core, Loc loc) : calls_(tracing::Trace::current(loc).kernel().calls) {
    const auto found = std::ranges::find(calls_, core.number, &tracing::Trace::Call::func);
    if (found != calls_.end()) {
      std::string names;
      for (auto call = found; call != calls_.end(); ++call) names += call->name + " -> ";
      ir::fail(tracing::Trace::current().module(), loc,
               fmt::format("recursion is not supported: {}{}", names, core.name));
    }
    if (calls_.size() >= kMaxNestedCalls)
      ir::fail(tracing::Trace::current().module(), loc,
               fmt::format("func \"{}\" is called inside {} others: the limit is {}", core.name, calls_.size(),
                           kMaxNestedCalls));
    calls_.push_back({core.number, core.name});
  }
  /// Opens the gradient function of a function, which may call that function.
  explicit Open(std::string gradient) : calls_(tracing::Trace::current().kernel().calls) {
    calls_.push_back({0, std::move(gradient), true});
  }
  ~Open() { calls_.pop_back(); }
  Open(const Open&) = delete;

 private:
  std::vector<tracing::Trace::Call>& calls_;
};

/// Code that is traced as a function of its own.
struct Code {
  std::string name;
  Loc loc;
  FuncBody body;
  std::vector<ir::Type> inputs;
  bool stays = false;     ///< it cannot be traced in place of the call
  bool gradient = false;  ///< its outputs are the real ones
};

/// Traces a function of its own. Null if its code does something that only the kernel itself can do.
std::shared_ptr<ir::Module> trace_function(const FuncCore& core, const Code& code, const FuncArgs& args) {
  tracing::Trace& caller = tracing::Trace::current();
  tracing::Trace& kernel = caller.kernel();
  auto function = std::make_shared<ir::Module>();
  function->name = kernel.module().name;
  function->function = code.name;
  function->loc = code.loc;
  const std::size_t instances = kernel.instances.size(), messages = kernel.module().messages.size(),
                    arrays = kernel.module().arrays.size();
  try {
    tracing::Trace trace(*function, caller);
    trace.stays_function = caller.stays_function || code.stays;
    for (ir::Type type : code.inputs) trace.builder().input(type, code.loc);
    FuncInputs inputs(args, false);
    std::vector<Id> outputs;
    code.body(core, inputs, outputs);
    trace.finish();
    if (code.gradient) std::erase_if(outputs, [&](Id id) { return !ir::is_float((*function)[id].type); });
    if (!outputs.empty()) trace.builder().yield(outputs);
  } catch (const tracing::Trace::InlineRequired&) {
    if (code.stays)
      ir::fail(kernel.module(), code.loc,
               fmt::format("func \"{}\" works with the other threads of its workgroup: with derivatives of its own it "
                           "can not",
                           code.name));
    // Nobody calls the instances that the failed trace left behind in the kernel.
    kernel.instances.erase(kernel.instances.begin() + std::ptrdiff_t(instances), kernel.instances.end());
    kernel.module().messages.erase(kernel.module().messages.begin() + std::ptrdiff_t(messages),
                                   kernel.module().messages.end());
    kernel.module().arrays.resize(arrays);
    return nullptr;
  } catch (...) {
    caller.break_off(code.loc, detail::exception_leaves("func \"" + code.name + "\""));
    throw;
  }
  return function;
}

std::vector<Id> call_in_place(const FuncCore& core, FuncBody body, const FuncArgs& args) {
  tracing::Trace& trace = tracing::Trace::current();
  const tracing::Trace::InPlace in_place(trace, core.name);
  FuncInputs inputs(args, true);
  std::vector<Id> outputs;
  try {
    body(core, inputs, outputs);
  } catch (...) {
    trace.break_off(core.loc, detail::exception_leaves("func \"" + core.name + "\""));
    throw;
  }
  return outputs;
}

std::vector<ir::Type> types_of(const ir::Module& m, std::span<const Id> ids) {
  std::vector<ir::Type> types;
  for (Id id : ids) types.push_back(m[id].type);
  return types;
}

/// Traces the user's derivatives of function k of the kernel's table, and enters their numbers there.
void trace_replay(const FuncCore& core, FuncBody body, const FuncArgs& args, std::vector<ir::Type> inputs,
                  std::size_t k) {
  std::vector<tracing::Trace::Instance>& instances = tracing::Trace::current().kernel().instances;
  auto replay = trace_function(core, {"replay of " + core.name, core.replay_loc, body, std::move(inputs), true}, args);
  instances[k].function->derivatives.replay = std::uint32_t(instances.size());
  instances.push_back({0, {}, std::move(replay)});
}

void trace_gradient(const FuncCore& core, FuncBody body, const FuncArgs& args, std::vector<ir::Type> inputs,
                    std::size_t k) {
  std::vector<tracing::Trace::Instance>& instances = tracing::Trace::current().kernel().instances;
  const std::string name = "gradient of " + core.name;
  const Open open(name);
  const ir::Module& function = *instances[k].function;
  for (ir::Type type : types_of(function, function.outputs()))
    if (ir::is_float(type)) inputs.push_back(type);
  auto gradient = trace_function(core, {name, core.gradient_loc, body, std::move(inputs), true, true}, args);
  instances[k].function->derivatives.gradient = std::uint32_t(instances.size());
  instances.push_back({0, {}, std::move(gradient)});
}

}  // namespace

std::vector<Id> call_func(const FuncCore& core, const FuncBodies& bodies, FuncArgs& args, Loc loc) {
  tracing::Trace& caller = tracing::Trace::current(loc);
  tracing::Trace& kernel = caller.kernel();
  const bool own = bodies.gradient || bodies.replay, stays = own && kernel.adjoint();
  if (own && !stays) kernel.module().derivatives.left_out = true;

  std::vector<ir::Type> inputs = types_of(caller.module(), args.ids);
  std::vector<std::uint32_t> form = args.form;
  for (ir::Type type : inputs) form.push_back(std::uint32_t(type));
  // One function object may have several bodies, one for each choice of types for `auto` parameters.
  const auto which = reinterpret_cast<std::uintptr_t>(bodies.body);
  form.push_back(std::uint32_t(which));
  form.push_back(std::uint32_t(std::uint64_t(which) >> 32));
  form.push_back(std::uint32_t(caller.builder().rounding() == ir::kRounded));

  const auto same = [&](const tracing::Trace::Instance& i) { return i.func == core.number && i.form == form; };
  std::size_t number = 0;
  bool is_new = false;
  {
    const Open open(core, loc);
    if (core.name.empty()) ir::fail(caller.module(), loc, "a func() has no name");
    if ((kernel.debug().checks || kernel.debug().finite) && !stays) return call_in_place(core, bodies.body, args);
    number = std::size_t(std::ranges::find_if(kernel.instances, same) - kernel.instances.begin());
    is_new = number == kernel.instances.size();
    if (number >= kMaxFunctions)
      ir::fail(caller.module(), loc,
               fmt::format("the kernel calls more than {} different functions; \"{}\" is one too many: a plain C++ "
                           "function becomes part of the kernel",
                           kMaxFunctions, core.name));
    if (is_new) {
      auto function = trace_function(core, {core.name, core.loc, bodies.body, inputs, stays}, args);
      if (!function) {
        caller.require_inline();
        return call_in_place(core, bodies.body, args);
      }
      // The number comes after those of the functions that it calls: each function calls only those before it.
      number = kernel.instances.size();
      kernel.instances.push_back({core.number, std::move(form), std::move(function)});
      if (stays && bodies.replay) trace_replay(core, bodies.replay, args, inputs, number);
    }
  }
  if (is_new && stays && bodies.gradient) trace_gradient(core, bodies.gradient, args, std::move(inputs), number);

  ir::Builder& b = caller.builder();
  const ir::Module& function = *kernel.instances[number].function;
  const Id call = b.call(std::uint32_t(number), args.ids, loc);
  std::vector<Id> results;
  for (Id output : function.outputs())
    results.push_back(b.result(call, std::uint32_t(results.size()), function[output].type));
  return results;
}

}  // namespace weft::detail
