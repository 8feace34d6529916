// kernel(): a C++ function over traced values becomes the IR of a kernel.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <tuple>

#include "arr.h"
#include "control.h"

namespace weft {

/// What a kernel asks for beside its function: `kernel("name", f, {.debug = true})`.
struct KernelOptions {
  Debug debug;  ///< checked beside what set_debug() and the environment ask for
};

namespace detail {

/// How an argument of type P is added to the kernel: make() adds `parts` parameters to the module (1 for most).
template <class P>
struct Parameter;

template <class P>
inline constexpr bool is_traced = false;
template <class T>
inline constexpr bool is_traced<Var<T>> = true;

/// Makes the next argument of the kernel.
template <class P>
P make_argument() {
  Trace::current().begin_argument();
  return Parameter<P>::make();
}

/// Reserves the place of a value of `count` scalars; returns its offset in the argument block.
std::uint32_t add_value_param(ir::Type scalar, int count, std::string type_name);
/// The scalar at an offset of the argument block.
trace::Id value_param(ir::Type type, std::uint32_t at);

template <Scalar T>
struct Parameter<Var<T>> {
  static constexpr int parts = 1;
  static Var<T> make() {
    std::uint32_t at = add_value_param(scalar_type<T>(), 1, TypeName<T>::get());
    return Var<T>(value_param(scalar_type<T>(), at), FromId{});
  }
};
template <class T>
requires(!Scalar<T> && Flat<T>::count > 0) struct Parameter<Var<T>> {
  static constexpr int parts = 1;
  static Var<T> make() {
    using S = typename Flat<T>::scalar;
    std::uint32_t at = add_value_param(scalar_type<S>(), Flat<T>::count, TypeName<T>::get());
    trace::Id ids[Flat<T>::count];
    for (int i = 0; i < Flat<T>::count; ++i) ids[i] = value_param(scalar_type<S>(), at + std::uint32_t(i * sizeof(S)));
    return Var<T>(ids, FromId{});
  }
};
template <class T, int N>
struct Parameter<Var<Array<T, N>>> {
  static constexpr int parts = 1;
  static Var<Array<T, N>> make() {
    using E = std::remove_const_t<T>;
    using S = typename Flat<E>::scalar;
    return Var<Array<T, N>>(
        make_array_param(scalar_type<S>(), Flat<E>::count, N, std::is_const_v<T>, TypeName<E>::get()));
  }
};

/// What all kernels share, whatever their parameters: the recipe, and a place for the runtime's programs.
class KernelCore {
 public:
  KernelCore(std::string name, Loc loc, const KernelOptions& options, std::function<void()> body)
      : name_(std::move(name)), loc_(loc), options_(options), body_(std::move(body)) {}

  const std::string& name() const { return name_; }
  Loc loc() const { return loc_; }
  /// What a launch checks now.
  Debug debug() const { return options_.debug | debug_mode(); }

  /// Runs the function once and returns its IR, cleaned by the passes that every kernel gets.
  /// Errors: Error(invalid_kernel) with the line of the mistake.
  ir::Module trace(const ir::Variant& variant) const;

  /// The runtime's cache of what this kernel was compiled to; guarded by `mutex`.
  std::shared_ptr<void> programs;
  std::mutex mutex;

 private:
  std::string name_;
  Loc loc_;
  KernelOptions options_;
  std::function<void()> body_;
};

}  // namespace detail

/// A kernel with parameters P (Float, Vec3, Arr<float>, ...). Copies share the kernel and its compiled programs.
template <class... P>
class Kernel {
 public:
  explicit Kernel(std::shared_ptr<detail::KernelCore> core) : core_(std::move(core)) {}
  const std::string& name() const { return core_->name(); }
  Loc loc() const { return core_->loc(); }
  /// The IR for contiguous arrays.
  ir::Module trace() const {
    ir::Variant variant;
    variant.debug = core_->debug();
    return core_->trace(variant);
  }
  detail::KernelCore& core() const { return *core_; }

 private:
  std::shared_ptr<detail::KernelCore> core_;
};

namespace detail {
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class... P>
struct Signature<void (*)(P...)> {
  template <class F>
  static auto make(std::string name, F f, const KernelOptions& options, Loc loc) {
    static_assert((is_traced<std::decay_t<P>> && ...),
                  "weft::kernel: a parameter is not of a traced type; write Float, Int, Vec3, Arr<float>, ...");
    if constexpr ((is_traced<std::decay_t<P>> && ...)) {
      auto body = [f = std::move(f)]() mutable {
        // In braces the parameters are made from left to right.
        std::tuple<std::decay_t<P>...> parameters{make_argument<std::decay_t<P>>()...};
        std::apply(f, std::move(parameters));
      };
      return Kernel<std::decay_t<P>...>(std::make_shared<KernelCore>(std::move(name), loc, options, std::move(body)));
    }
  }
};
template <class C, class... P>
struct Signature<void (C::*)(P...) const> : Signature<void (*)(P...)> {};
template <class C, class... P>
struct Signature<void (C::*)(P...)> : Signature<void (*)(P...)> {};
template <class... P>
struct Signature<void (*)(P...) noexcept> : Signature<void (*)(P...)> {};
template <class C, class... P>
struct Signature<void (C::*)(P...) const noexcept> : Signature<void (*)(P...)> {};
template <class C, class... P>
struct Signature<void (C::*)(P...) noexcept> : Signature<void (*)(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) const> {
  static_assert(std::is_void_v<R>, "weft::kernel: a kernel returns nothing; write its results to an Arr");
};
}  // namespace detail

/// Makes a kernel from a lambda or function whose parameters are traced types and which returns nothing. Nothing is
/// traced or compiled before the first launch. Host values that the lambda captures become constants of the kernel.
/// \param name  in messages, profiles and dumps
template <class F>
auto kernel(std::string name, F f, KernelOptions options = {}, Loc loc = Loc::here()) {
  return detail::Signature<F>::make(std::move(name), std::move(f), options, loc);
}

}  // namespace weft
