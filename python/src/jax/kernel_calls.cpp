// Kernels, and their gradients, as functions that XLA calls from its own threads without Python.
//
// A KernelCall says for each parameter of a kernel where its value comes from: one of the call's inputs or outputs, or
// constants of the call. Under vmap all buffers have further dimensions in front: the kernel is launched once for each
// of their elements, with parts of the buffers.
//
//   forward:   inputs  = arrays and traced numbers in the order of the parameters; outputs = the arrays written
//   gradient:  inputs  = the same, then the gradients of the outputs; outputs = gradients of the inputs that have them
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "../../../frontend/support/error.h"
#include "../../../runtime/launch.h"
#include "../../../runtime/tape.h"
#include "../host/arrays.h"
#include "../host/reports.h"
#include "../host/wrapped.h"
#include "../module.h"
#include "../pack.h"
#include "../trace/kernels.h"
#include "calls.h"

namespace weft::python {

namespace {

using xla::Buffer;
using xla::Frame;

/// Where the value of a parameter comes from.
struct Source {
  enum Kind : int { input, output, changed, constant, number };
  Kind kind;
  int input_index = -1;      ///< of an input, of an array that is changed, and of a traced number
  int output_index = -1;     ///< of an output, and of an array that is changed
  std::uint64_t offset = 0;  ///< of a constant, in the attribute "values"
  int gradient = -1;         ///< of an input: the output of the gradient's call for it
};

struct KernelCall {
  nb::object kernel_object;
  Kernel* kernel;
  std::vector<Source> sources;  ///< for each parameter
  int inputs = 0, outputs = 0;
  bool gradient = false;
};

/// The calls by the names that XLA's programs say. Programs may be kept on disk, so names say what is computed.
class Calls {
 public:
  static Calls& get() {
    static Calls* const all = new Calls;
    return *all;
  }
  void add(const std::string& name, KernelCall call) {
    const std::unique_lock lock(mutex_);
    calls_.try_emplace(name, std::make_unique<const KernelCall>(std::move(call)));  // the first one may be running
  }
  const KernelCall& find(std::string_view name) const {
    const std::shared_lock lock(mutex_);
    const auto found = calls_.find(name);
    if (found == calls_.end())
      throw weft::Error(
          ErrorKind::invalid_argument,
          fmt::format("this process has no kernel {}: make it by jax_kernel() and trace the function that "
                      "calls it before a stored program runs",
                      name));
    return *found->second;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::unique_ptr<const KernelCall>, std::less<>> calls_;
};

const Device& processor() {
  static const Device* const device = new Device("cpu");
  return *device;
}

/// A buffer as arrays on its memory: one for each element of the dimensions in front.
class BufferArrays {
 public:
  BufferArrays(const Buffer& buffer, const Param& param)
      : buffer_(&buffer), dtype_(param.dtype), shape_(xla::shape_of(buffer)) {
    const int own = param.ndim + dtype_->inner_dimensions();
    if (xla::type_of(buffer.type) != dtype_->type || buffer.rank < own)
      throw weft::Error(ErrorKind::invalid_argument,
                        fmt::format("a buffer has {} dimensions of another type than {}", buffer.rank, dtype_->name));
    front_ = shape_.first(std::size_t(buffer.rank - own));
    extent_.rank = std::max(param.ndim, 1);
    std::uint64_t bytes = dtype_->size;
    for (int k = 0; k < param.ndim; ++k) {
      extent_.n[std::size_t(k)] = shape_[front_.size() + std::size_t(k)];
      bytes *= std::uint64_t(extent_[k]);
    }
    if (param.ndim == 0) extent_.n[0] = 1;
    bytes_ = bytes;
  }
  std::span<const std::int64_t> front() const { return front_; }
  std::uint64_t bytes() const { return bytes_; }
  const Extent& extent() const { return extent_; }
  const DType& dtype() const { return *dtype_; }

  /// The first byte of an element of the dimensions in front, all of which are `all`; those of extent 1 stand for each.
  std::byte* data(std::int64_t element, std::span<const std::int64_t> all) const {
    std::int64_t at = 0, step = 1;
    for (std::size_t k = front_.size(); k-- > 0;) {
      const std::int64_t place = element % all[k];
      element /= all[k];
      if (front_[k] != 1) at += place * step;
      step *= front_[k];
    }
    return static_cast<std::byte*>(buffer_->data) + std::uint64_t(at) * bytes_;
  }
  /// The array on those bytes.
  Array array(std::int64_t element, std::span<const std::int64_t> all) const {
    if (bytes_ == 0) return Array::empty(processor(), extent_, *dtype_);
    const HostRange part{data(element, all), bytes_};
    return Array::inside(bytes_on(processor(), part, part, nullptr), 0, extent_, *dtype_);
  }

 private:
  const Buffer* buffer_;
  const DType* dtype_;
  std::span<const std::int64_t> shape_, front_;
  Extent extent_{0};
  std::uint64_t bytes_ = 0;
};

/// What all launches of one call have in common.
class Plan {
 public:
  Plan(const Frame& frame, const KernelCall& call) : frame_(frame), call_(call) {
    const int cotangents = call.gradient ? call.outputs : 0;
    if (frame.inputs.size != call.inputs + cotangents)
      throw weft::Error(ErrorKind::invalid_argument,
                        fmt::format("the call has {} inputs, not {}", frame.inputs.size, call.inputs + cotangents));
    const xla::Values& dims = xla::values_of(frame, "dims");
    threads_.rank = int(dims.size);
    for (std::size_t k = 0; k < dims.size && k < 4; ++k) threads_.n[k] = static_cast<const std::int64_t*>(dims.data)[k];
    const xla::Values& values = xla::values_of(frame, "values");
    values_ = {static_cast<const std::byte*>(values.data), values.size};
    buffers_.resize(call.sources.size());
    for (std::size_t k = 0; k < call.sources.size(); ++k) {
      const Source& s = call.sources[k];
      ParamBuffers& of = buffers_[k];
      if (s.input_index >= 0) of.input = add(*frame.inputs.items[s.input_index], k);
      if (!call.gradient) {
        if (s.output_index >= 0) of.output = add(*frame.outputs.items[s.output_index], k);
        continue;
      }
      if (s.output_index >= 0) of.cotangent = add(*frame.inputs.items[call.inputs + s.output_index], k);
      if (s.gradient >= 0) of.gradient = add(*frame.outputs.items[s.gradient], k);
    }
  }
  std::int64_t launches() const {
    std::int64_t n = 1;
    for (const std::int64_t extent : front_) n *= extent;
    return n;
  }
  const Extent& threads() const { return threads_; }
  bool has_threads() const {
    return std::none_of(threads_.n.begin(), threads_.n.begin() + threads_.rank, [](auto n) { return n == 0; });
  }
  std::span<const std::int64_t> front() const { return front_; }
  const KernelCall& call() const { return call_; }
  const Param& param(std::size_t k) const { return call_.kernel->params()[k]; }
  const BufferArrays& input(std::size_t k) const { return *buffers_[k].input; }
  const BufferArrays& output(std::size_t k) const { return *buffers_[k].output; }
  const BufferArrays& cotangent(std::size_t k) const { return *buffers_[k].cotangent; }
  const BufferArrays& gradient(std::size_t k) const { return *buffers_[k].gradient; }
  const std::byte* constant(std::size_t k) const {
    const Source& s = call_.sources[k];
    if (s.offset + param(k).dtype->size > values_.size())
      throw weft::Error(ErrorKind::invalid_argument, "the call's constants are not those of the kernel");
    return values_.data() + s.offset;
  }

 private:
  /// The buffers of one parameter, as far as the call has them.
  struct ParamBuffers {
    std::optional<BufferArrays> input, output, cotangent, gradient;
  };

  BufferArrays add(const Buffer& buffer, std::size_t k) {
    BufferArrays made(buffer, param(k));
    const std::span<const std::int64_t> front = made.front();
    if (front_.empty()) front_.assign(front.begin(), front.end());
    if (front.size() != front_.size())
      throw weft::Error(ErrorKind::invalid_argument, "the buffers of the call have batches of several dimensions");
    for (std::size_t d = 0; d < front.size(); ++d) front_[d] = front_[d] == 1 ? front[d] : front_[d];
    return made;
  }

  const Frame& frame_;
  const KernelCall& call_;
  Extent threads_{0};
  std::span<const std::byte> values_;
  std::vector<std::int64_t> front_;
  std::vector<ParamBuffers> buffers_;
};

/// The arguments of one launch: what they refer to lives as long as this.
class LaunchArguments {
 public:
  explicit LaunchArguments(std::size_t count) { arrays_.reserve(count), args_.reserve(count); }
  Array& add(Array array) {
    arrays_.push_back(std::move(array));
    detail::HostArg& arg = next();
    arg.array = &arrays_.back();
    return arrays_.back();
  }
  void add(const std::byte* value, const DType& dtype) {
    detail::HostArg& arg = next();
    arg.value = value;
    arg.leaves = dtype.leaves;
  }
  void launch(Kernel& kernel, const Extent& threads) const {
    const Stream stream = processor().stream();
    detail::launch(kernel.core(), &stream, detail::Threads(threads, Loc{}), args_);
  }

 private:
  detail::HostArg& next() {
    args_.emplace_back();
    args_.back().argument = int(args_.size());
    return args_.back();
  }
  std::vector<Array> arrays_;
  std::vector<detail::HostArg> args_;
};

void launch_once(const Plan& plan, std::int64_t element) {
  const std::vector<Source>& sources = plan.call().sources;
  LaunchArguments arguments(sources.size());
  for (std::size_t k = 0; k < sources.size(); ++k) {
    switch (sources[k].kind) {
      case Source::input: arguments.add(plan.input(k).array(element, plan.front())); break;
      case Source::output:
      case Source::changed: arguments.add(plan.output(k).array(element, plan.front())); break;
      case Source::constant: arguments.add(plan.constant(k), *plan.param(k).dtype); break;
      case Source::number: arguments.add(plan.input(k).data(element, plan.front()), *plan.param(k).dtype); break;
    }
  }
  arguments.launch(*plan.call().kernel, plan.threads());
}

/// Goes back through a launch without threads: arrays that it would change are their inputs, others do not matter.
void pass_on(const Plan& plan, std::int64_t element) {
  const std::vector<Source>& sources = plan.call().sources;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (sources[k].gradient < 0) continue;
    std::byte* const to = plan.gradient(k).data(element, plan.front());
    const std::uint64_t bytes = plan.gradient(k).bytes();
    if (sources[k].kind == Source::changed)
      std::copy_n(plan.cotangent(k).data(element, plan.front()), bytes, to);
    else
      std::fill_n(to, bytes, std::byte(0));
  }
}

/// Goes back through one launch, on arrays of its own: XLA may give one buffer for several inputs, and inputs stay.
void differentiate_once(const Plan& plan, std::int64_t element) {
  const std::vector<Source>& sources = plan.call().sources;
  LaunchArguments arguments(sources.size());
  std::vector<const Array*> arrays(sources.size());
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const DType& dtype = *plan.param(k).dtype;
    if (sources[k].kind == Source::constant) {
      arguments.add(plan.constant(k), dtype);
      continue;
    }
    if (sources[k].kind == Source::number) {
      arguments.add(plan.input(k).data(element, plan.front()), dtype);
      continue;
    }
    const bool given = sources[k].kind != Source::output;
    const BufferArrays& like = given ? plan.input(k) : plan.cotangent(k);
    Array& own = arguments.add(Array::empty(processor(), like.extent(), dtype));
    if (given)
      own.assign(like.data(element, plan.front()));
    else
      own.zero();
    if (dtype.has_reals()) own.need_gradient();
    arrays[k] = &own;
  }
  Tape tape;
  {
    const TapeScope scope(tape);
    arguments.launch(*plan.call().kernel, plan.threads());
  }
  std::vector<Seed> seeds;
  for (std::size_t k = 0; k < sources.size(); ++k)
    if (sources[k].output_index >= 0 && plan.param(k).dtype->has_reals())
      seeds.emplace_back(*arrays[k], plan.cotangent(k).array(element, plan.front()), arrays[k]->leaves());
  if (!seeds.empty()) tape.backward(seeds, Loc{});
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (sources[k].gradient < 0) continue;
    Array gradient(arrays[k]->dtype(), static_cast<const ArrayBase&>(*arrays[k]));
    gradient.become_gradient(*arrays[k]);
    gradient.read(plan.gradient(k).data(element, plan.front()));
  }
}

void execute(const Frame& frame, nb::handle) {
  const Plan plan(frame, Calls::get().find(xla::text_of(frame, "kernel")));
  const auto go = !plan.call().gradient ? &launch_once : plan.has_threads() ? &differentiate_once : &pass_on;
  const std::int64_t n = plan.launches();
  for (std::int64_t k = 0; k < n; ++k) go(plan, k);
  processor().synchronize();
  show_reports_without_gil();
}

xla::Error* handler(Frame* frame) { return xla::run(frame, &execute); }

/// Tells what a call does, under a name. `sources` are tuples (kind, input, output, offset, gradient).
void add_call(const std::string& name, nb::object kernel, nb::sequence sources, int inputs, int outputs,
              bool gradient) {
  KernelCall call{kernel, nb::cast<Kernel*>(kernel), {}, inputs, outputs, gradient};
  for (const nb::handle item : sources) {
    const auto t = nb::cast<std::vector<std::int64_t>>(item);
    if (t.size() != 5) throw nb::type_error("a source is five numbers");
    call.sources.push_back({Source::Kind(t[0]), int(t[1]), int(t[2]), std::uint64_t(t[3]), int(t[4])});
  }
  if (call.sources.size() != call.kernel->parts().size())
    throw nb::type_error("kernels with structs that hold arrays are no functions of JAX");
  if (!call.kernel->ids().stored.empty())
    throw nb::type_error("kernels that write volumes by their ids are no functions of JAX");
  Calls::get().add(name, std::move(call));
}

nb::bytes pack(nb::handle value, nb::handle dtype) {
  const DType& type = type_from(dtype);
  std::vector<std::byte> bytes(type.size);
  pack_value(value.ptr(), type, bytes.data());
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void add_jax(nb::module_& m) {
  m.def("xla_handler", [] { return reinterpret_cast<std::uintptr_t>(&handler); });
  m.def("add_xla_call", &add_call, nb::arg("name"), nb::arg("kernel"), nb::arg("sources"), nb::arg("inputs"),
        nb::arg("outputs"), nb::arg("gradient"));
  m.def("pack", &pack, nb::arg("value"), nb::arg("dtype"));
}

}  // namespace weft::python
