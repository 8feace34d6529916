// Runs a kernel and its adjoint through the backend itself, without a tape.
#pragma once
#include <cstring>
#include <memory>
#include <vector>

#include "../../backends/backend.h"
#include "../../frontend/adjoint/adjoint.h"
#include "device_test.h"

namespace weft::test {

/// The arguments of a launch: arrays with their gradients, or the bytes of a value.
struct AdjointArg {
  std::shared_ptr<ArrayBase> array, gradient;
  std::vector<std::byte> bytes;

  template <class T, int N>
  static AdjointArg make(const Array<T, N>& a) {
    AdjointArg arg;
    arg.array = std::make_shared<Array<T, N>>(a);
    arg.gradient = std::make_shared<Array<T, N>>(zeros_like(a));
    return arg;
  }
  template <Scalar T>
  static AdjointArg make(T value) {
    AdjointArg arg;
    arg.bytes.resize(sizeof value);
    std::memcpy(arg.bytes.data(), &value, sizeof value);
    return arg;
  }
};

/// A launch of a module with these arguments, forward and back, in place: the adjoint runs on the arrays as they were
/// before the launch, and restores them.
class AdjointLaunch {
 public:
  /// `recorded` is the kernel as traced for its adjoint: `module` if no function has derivatives of its own.
  AdjointLaunch(const Device& device, ir::Module module, ir::Module recorded, int threads, std::vector<AdjointArg> args)
      : device_(device),
        module_(std::move(module)),
        recorded_(std::move(recorded)),
        threads_(threads),
        args_(std::move(args)) {}
  AdjointLaunch(const Device& device, ir::Module module, int threads, std::vector<AdjointArg> args)
      : AdjointLaunch(device, module, module, threads, std::move(args)) {}

  /// The arguments that are arrays and may have a gradient, as bits.
  std::uint64_t with_gradient = ~std::uint64_t{0};

  /// The gradient of argument k, to seed and to read.
  template <class T, int N = 1>
  Array<T, N> gradient(std::size_t k) const {
    return static_cast<const Array<T, N>&>(*args_[k].gradient);
  }
  const ir::Module& module() const { return module_; }
  void forward() { run(module_, {}, threads_, 0, 0); }
  /// Runs the adjoint with `lanes` threads in a dispatch. \return  the adjoint that was run
  ir::Adjoint backward(std::uint32_t slots = 8, int lanes = 64) {
    ir::AdjointOptions options;
    options.with_gradient = ir::real_arrays(recorded_) & with_gradient;
    options.slots = slots;
    ir::Adjoint adjoint = ir::adjoint(recorded_, options);
    const bool dispatches = adjoint.scratch_bytes != 0 || adjoint.log_bytes != 0;
    const int step = dispatches ? lanes : threads_;
    std::uint32_t entries = adjoint.log_entries;
    if (!adjoint.counter.empty()) entries = count(adjoint);
    Array<unsigned> scratch = words(lanes * std::int64_t(adjoint.scratch_bytes) / 4);
    Array<unsigned> log = words(lanes * std::int64_t(adjoint.log_bytes) * entries / 4);
    for (int first = 0; first < threads_; first += step)
      run(adjoint.module, extras(adjoint, scratch, log), std::min(step, threads_ - first), first, lanes);
    return adjoint;
  }

 private:
  struct Extra {
    const ArrayBase* array = nullptr;
    ir::AdjointParam param;
  };
  Array<unsigned> words(std::int64_t n) const { return zeros<unsigned>(device_, std::max<std::int64_t>(n, 1)); }

  std::vector<Extra> extras(const ir::Adjoint& adjoint, const Array<unsigned>& scratch, const Array<unsigned>& log) {
    using Kind = ir::AdjointParam::Kind;
    std::vector<Extra> all;
    for (const ir::AdjointParam& p : adjoint.extra) {
      Extra extra{nullptr, p};
      if (p.kind == Kind::gradient) extra.array = args_[p.of].gradient.get();
      if (p.kind == Kind::after) {
        after_.push_back(std::make_unique<Array<unsigned>>(state_after(p.of)));
        extra.array = after_.back().get();
      }
      if (p.kind == Kind::scratch) extra.array = &scratch;
      if (p.kind == Kind::log) extra.array = &log;
      if (p.kind == Kind::owners) {
        owners_.push_back(words(std::int64_t(args_[p.of].array->extent_bytes() + 3) / p.unit));
        extra.array = &owners_.back();
      }
      all.push_back(extra);
    }
    return all;
  }

  std::uint32_t count(const ir::Adjoint& adjoint) {
    // The counter stores to the arrays like the kernel, so they get their elements back.
    std::vector<std::vector<std::byte>> saved;
    for (const AdjointArg& arg : args_) saved.push_back(arg.array ? bytes_of(*arg.array) : std::vector<std::byte>());
    Array<unsigned> most = words(1), none = words(1);
    run(adjoint.counter[0], extras(adjoint, most, none), threads_, 0, 64);
    for (std::size_t k = 0; k < args_.size(); ++k)
      if (args_[k].array) put_bytes(*args_[k].array, saved[k]);
    return most.at(0);
  }

  /// Argument k as the launch leaves it; the arrays get their elements back.
  Array<unsigned> state_after(std::size_t k) {
    std::vector<std::vector<std::byte>> saved;
    for (const AdjointArg& arg : args_) saved.push_back(arg.array ? bytes_of(*arg.array) : std::vector<std::byte>());
    forward();
    Array<unsigned> state = whole(*args_[k].array).clone();
    for (std::size_t i = 0; i < args_.size(); ++i)
      if (args_[i].array) put_bytes(*args_[i].array, saved[i]);
    return state;
  }

  Array<unsigned> whole(const ArrayBase& a) const {
    struct Raw : Array<unsigned> {
      explicit Raw(const ArrayBase& from) {
        storage_ = from.storage();
        address_ = from.address();
        shape_[0] = std::int64_t(from.extent_bytes() / 4);
        stride_[0] = 4;
      }
    };
    return Raw(a);
  }
  std::vector<std::byte> bytes_of(const ArrayBase& a) const {
    const std::vector<unsigned> words = whole(a).to_vector();
    std::vector<std::byte> bytes(words.size() * 4);
    std::memcpy(bytes.data(), words.data(), bytes.size());
    return bytes;
  }
  void put_bytes(const ArrayBase& a, const std::vector<std::byte>& bytes) const {
    std::vector<unsigned> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    whole(a).assign(words);
  }

  void run(const ir::Module& module, const std::vector<Extra>& extras, int threads, int first, int lanes) {
    using Kind = ir::AdjointParam::Kind;
    std::shared_ptr<backend::Program> program = device_.native().compile(module, ir::hash(module));
    std::vector<std::byte> block(module.args_bytes);
    std::vector<backend::MemoryRange> ranges;
    std::memcpy(block.data(), &threads, 4);
    const auto put_array = [&](const ir::Param& p, const ArrayBase& a) {
      const std::uint64_t address = a.address();
      std::byte* at = block.data() + p.offset;
      std::memcpy(at, &address, 8);
      for (int d = 0; d < a.ndim(); ++d) {
        const std::int32_t extent = std::int32_t(a.shape(d));
        std::memcpy(at + 8 + 4 * d, &extent, 4);
      }
      ranges.push_back({address, a.extent_bytes(), ir::Access::read | ir::Access::write | ir::Access::atomic});
    };
    std::size_t k = 0;
    for (; k < args_.size(); ++k) {
      if (args_[k].array)
        put_array(module.params[k], *args_[k].array);
      else
        std::memcpy(block.data() + module.params[k].offset, args_[k].bytes.data(), args_[k].bytes.size());
    }
    for (const Extra& extra : extras) {
      const ir::Param& p = module.params[k++];
      const std::uint32_t number = std::uint32_t(extra.param.kind == Kind::lanes ? lanes : first);
      if (extra.array)
        put_array(p, *extra.array);
      else
        std::memcpy(block.data() + p.offset, &number, 4);
    }
    backend::Stream& stream = device_.stream().native();
    const std::uint32_t groups = (std::uint32_t(threads) + module.block - 1) / module.block;
    stream.wait(stream.launch(*program, {groups, 1, 1}, block, ranges));
  }

  Device device_;
  ir::Module module_, recorded_;
  int threads_;
  std::vector<AdjointArg> args_;
  std::vector<Array<unsigned>> owners_;
  std::vector<std::unique_ptr<Array<unsigned>>> after_;
};

/// A traced kernel with its arguments.
template <class... P, class... A>
AdjointLaunch adjoint_launch(const Device& device, const Kernel<P...>& kernel, int threads, const A&... args) {
  ir::Variant variant;
  variant.debug = kernel.core().debug();
  ir::Module forward = kernel.core().trace(variant);
  variant.adjoint = true;
  return AdjointLaunch(device, std::move(forward), kernel.core().trace(variant), threads, {AdjointArg::make(args)...});
}

}  // namespace weft::test
