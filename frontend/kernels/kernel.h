// kernel(): a C++ function over traced values becomes the IR of a kernel.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <tuple>

#include "../language/control.h"
#include "../language/struct_var.h"
#include "../support/error.h"
#include "group.h"

namespace weft {

struct SpirvOptions;  // runtime/kernel_spirv.h

/// The options of a kernel: `kernel("name", f, {.block = 128, .debug = true})`.
struct KernelOptions {
  /// The threads per workgroup; 0: 256, or as many as the device runs. Devices that run fewer refuse a kernel that
  /// works in workgroups (barrier(), block_dim(), ...), and run other kernels in smaller workgroups.
  std::uint32_t block = 0;
  Debug debug = {};  ///< checks in addition to those of set_debug() and the environment
  /// Contracts products and sums of float32 and float64 to `fma`, which is rounded once where the device can: faster,
  /// but x * x - y * y may not be 0 where x and y are equal. False, and WEFT_CONTRACT=0 in the environment for all
  /// kernels: each operation is rounded as it is written. See docs/semantics.md.
  bool contract = true;
};

namespace detail {

/// The most parameters of a kernel, as a launch has bits for each.
inline constexpr int kMostParameters = 64;

/// The way in which an argument of type P is added to the kernel: make() adds `parts` parameters to the module (1 for
/// most).
template <class P>
struct Parameter;

template <class P>
inline constexpr bool is_traced = false;
template <class T>
inline constexpr bool is_traced<Var<T>> = true;

/// Makes the next argument of the kernel.
template <class P>
P make_argument() {
  tracing::Trace::current().begin_argument();
  return Parameter<P>::make();
}

/// Adds a value to the parameters: its scalars, as they come from the argument block.
void make_value_param(std::uint32_t bytes, std::uint32_t align, std::string type_name, std::span<const Leaf> leaves,
                      tracing::Id* out);

template <class T>
struct Parameter<Var<T>> {
  static constexpr int parts = 1;
  static Var<T> make() {
    static_assert(check_layout<T>());
    using L = Layout<T>;
    tracing::Id ids[L::count];
    make_value_param(L::size, L::align, TypeName<T>::get(), L::leaves, ids);
    return from_ids<T>(ids);
  }
};
template <class T, int N>
struct Parameter<Var<Array<T, N>>> {
  static constexpr int parts = 1;
  static Var<Array<T, N>> make() {
    using E = std::remove_const_t<T>;
    static_assert(check_layout<E>());
    return Var<Array<T, N>>(
        make_array_param(Layout<E>::size, Layout<E>::align, N, std::is_const_v<T>, TypeName<E>::get()));
  }
};

/// A struct that holds arrays becomes as many parameters as it has fields, including the fields of fields.
template <class T>
concept SpreadStruct = Struct<T> && Layout<T>::holds_arrays;

template <SpreadStruct T>
struct Parameter<Var<T>> {
  static constexpr int parts = []<class... F>(Types<F...>) {
    return (Parameter<Var<F>>::parts + ...);
  }(FieldTypes<T>());
  static Var<T> make() { return make_fields(""); }
  static Var<T> make_fields(const std::string& path) { return make_each(path, FieldTypes<T>(), Numbers()); }
  /// The names of the parameters, which messages add to the argument's number: ".points", ".grid.cells", ...
  static void add_names(std::vector<std::string>& names, const std::string& path) {
    add_each(names, path, FieldTypes<T>(), Numbers());
  }

 private:
  using Numbers = std::make_index_sequence<FieldTypes<T>::count>;
  template <class... F, std::size_t... K>
  static Var<T> make_each(const std::string& path, Types<F...>, std::index_sequence<K...>) {
    // Braces make the fields from left to right.
    return StructFace<T, Var>{make_field<F>(path + "." + struct_field_name<T, int(K)>())...};
  }
  template <class F>
  static Var<F> make_field(const std::string& path) {
    if constexpr (SpreadStruct<F>) {
      return Parameter<Var<F>>::make_fields(path);
    } else {
      tracing::Trace::current().begin_field(path);
      return Parameter<Var<F>>::make();
    }
  }
  template <class... F, std::size_t... K>
  static void add_each(std::vector<std::string>& names, const std::string& path, Types<F...>,
                       std::index_sequence<K...>) {
    (add_name<F>(names, path + "." + struct_field_name<T, int(K)>()), ...);
  }
  template <class F>
  static void add_name(std::vector<std::string>& names, const std::string& path) {
    if constexpr (SpreadStruct<F>)
      Parameter<Var<F>>::add_names(names, path);
    else
      names.push_back(path);
  }
};

/// The part of a kernel that does not depend on its parameters: the recipe, and a place for the runtime's programs.
class KernelCore : public std::enable_shared_from_this<KernelCore> {
 public:
  KernelCore(std::string name, Loc loc, const KernelOptions& options, std::function<void()> body);
  ~KernelCore();
  KernelCore(const KernelCore&) = delete;
  KernelCore& operator=(const KernelCore&) = delete;

  /// The kernels of this process that exist now, in the order in which they were made. Thread-safe.
  static std::vector<std::shared_ptr<KernelCore>> all();

  const std::string& name() const { return name_; }
  Loc loc() const { return loc_; }
  /// The checks of a launch now.
  Debug debug() const { return options_.debug | debug_mode(); }

  /// Runs the function once and returns its IR, cleaned by the passes that every kernel gets.
  /// \param max_block  the most threads that a workgroup of the device has
  /// Errors: Error(invalid_kernel) with the line of the mistake.
  ir::Module trace(const ir::Variant& variant, std::uint32_t max_block = ~0u) const;

  /// The text of Kernel::dump(). Defined in runtime/launch/kernel_dump.cpp, as this folder knows no
  /// emitter.
  std::string dump(std::string_view form) const;

  /// The runtime's cache of programs compiled from this kernel; guarded by `mutex`.
  std::shared_ptr<void> programs;
  std::mutex mutex;
  /// Whether the kernel copies elements as bytes: it then changes nothing that they hold, and the caller has told those
  /// who watch them. For kernels of the runtime; set before the first launch.
  bool moves_elements = false;

 private:
  std::string name_;
  Loc loc_;
  KernelOptions options_;
  std::function<void()> body_;
  std::uint64_t serial_;  ///< orders the list of all()
};

}  // namespace detail

/// A kernel with parameters P (Float, Vec3, Arr<float>, ...). Copies share the kernel and its compiled programs.
template <class... P>
class Kernel {
 public:
  // A kernel is never null, so a move is a copy.
  Kernel(const Kernel&) = default;
  Kernel& operator=(const Kernel&) = default;

  explicit Kernel(std::shared_ptr<detail::KernelCore> core) : core_(std::move(core)) {}
  const std::string& name() const { return core_->name(); }
  Loc loc() const { return core_->loc(); }
  /// The IR for contiguous arrays.
  ir::Module trace() const {
    ir::Variant variant;
    variant.debug = core_->debug();
    return core_->trace(variant);
  }
  /// The kernel as text, as its function makes it now, for contiguous arrays and a device that has every feature. The
  /// forms are "ir" (the operations, each with its source line), "spirv" (disassembled), "glsl" (by SPIRV-Cross; a
  /// compute shader that glslang takes, whose addresses are computed as integers since GLSL has no steps of
  /// references), and "llvm" (for a processor with AVX2: eight threads at once in the lanes of vectors).
  /// Errors: Error(invalid_argument) for another form, with a list of these; Error(invalid_kernel) when the trace
  /// fails; Error(unsupported) for operations that GLSL lacks.
  std::string dump(std::string_view form, Loc loc = Loc::here()) const {
    return detail::called_from(loc, [&] { return core_->dump(form); });
  }
  /// The kernel, or its adjoint, as a SPIR-V module with a description of how to launch it: `k.spirv()`,
  /// `k.spirv({.adjoint = true})`. Needs no device. See export_spirv() in runtime/kernel_spirv.h (in weft.h).
  template <class Options = SpirvOptions>
  auto spirv(const Options& options = {}, Loc loc = Loc::here()) const {
    return detail::called_from(loc, [&] { return export_spirv(*core_, options); });
  }
  detail::KernelCore& core() const { return *core_; }

 private:
  std::shared_ptr<detail::KernelCore> core_;
};

namespace detail {
/// The result and the parameters of a function.
template <class R, class... P>
struct CallSignature {};
template <class R, class... P>
CallSignature<R, P...> signature_of(R (*)(P...));
template <class R, class C, class... P>
CallSignature<R, P...> signature_of(R (C::*)(P...));
template <class R, class C, class... P>
CallSignature<R, P...> signature_of(R (C::*)(P...) const);

template <class F>
concept HasSignature = std::is_pointer_v<F> || requires {
  &F::operator();
};
template <class F>
constexpr auto call_operator() {
  if constexpr (std::is_pointer_v<F>)
    return F();
  else
    return &F::operator();
}
template <HasSignature F>
using SignatureOf = decltype(signature_of(call_operator<F>()));

template <int parameter, class Given>
constexpr bool check_parameter() {
  static_assert(
      is_traced<Given>,
      "weft::kernel: a parameter is not of a traced type; which parameter, and what is Given, is said next to "
      "this. "
      "Write Float for float, Vec2 for vec2, Arr<float> for Array<float>, ..");
  return is_traced<Given>;
}
template <class... P>
constexpr bool check_parameters() {
  constexpr bool few = sizeof...(P) <= kMostParameters;
  static_assert(few, "weft::kernel: a kernel has at most 64 parameters: put values into a struct");
  if constexpr (!few) {
    return false;
  } else if constexpr (!(is_traced<P> && ...)) {
    return []<int... k>(std::integer_sequence<int, k...>) { return (check_parameter<k + 1, P>() & ...); }
    (std::make_integer_sequence<int, int(sizeof...(P))>());
  } else {
    constexpr bool few_parts = (0 + ... + Parameter<P>::parts) <= kMostParameters;
    static_assert(few_parts,
                  "weft::kernel: a kernel has at most 64 parameters, of which a struct that holds arrays takes one for "
                  "each field, and an indexed array one for each dimension besides its own");
    return few_parts;
  }
}

template <class R, class... P, class F>
auto make_kernel(CallSignature<R, P...>, std::string name, F f, const KernelOptions& options, Loc loc) {
  constexpr bool traced = check_parameters<std::decay_t<P>...>();
  static_assert(std::is_void_v<R>, "weft::kernel: a kernel returns nothing; write its results to an Arr");
  constexpr bool by_value = ((!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>)&&...);
  static_assert(by_value, "weft::kernel: arguments are passed by value; write results to an Arr");
  constexpr bool callable = std::is_invocable_v<const F&, std::decay_t<P>...>;
  static_assert(callable,
                "weft::kernel: a mutable lambda is no kernel: each variant would be traced with other constants");
  if constexpr (traced && by_value && std::is_void_v<R> && callable) {
    auto body = [f = std::move(f)] {
      // Braces make the parameters from left to right.
      std::tuple<std::decay_t<P>...> parameters{make_argument<std::decay_t<P>>()...};
      std::apply(f, std::move(parameters));
    };
    return Kernel<std::decay_t<P>...>(std::make_shared<KernelCore>(std::move(name), loc, options, std::move(body)));
  }
}
}  // namespace detail

/// Makes a kernel from a lambda or function whose parameters are traced types and which returns nothing. Nothing is
/// traced or compiled before the first launch. Host values that the lambda captures become constants of the kernel.
/// \param name  in messages, profiles and dumps
template <class F>
auto kernel(std::string name, F f, KernelOptions options = {}, Loc loc = Loc::here()) {
  static_assert(
      detail::HasSignature<F>,
      "weft::kernel: the types of a kernel's parameters are written out (`auto` is for func() and functions)");
  if constexpr (detail::HasSignature<F>)
    return detail::make_kernel(detail::SignatureOf<F>(), std::move(name), std::move(f), options, loc);
}

}  // namespace weft
