// Kernels whose code is traced by a function of Python's.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../../../frontend/kernels/kernel.h"
#include "../held.h"
#include "array_refs.h"
#include "kernel_ids.h"

namespace weft::python {

/// A parameter of a kernel, as Python declares it: a value, or an array.
struct Param {
  const DType* dtype;
  int ndim = 0;  ///< of an array; 0: a value
};

/// A value that launch() gives to one parameter of the library's kernel: a struct that holds arrays has one for each of
/// its fields, and of the fields of these.
struct Part {
  const DType* dtype;
  int ndim = 0;
  int argument = 0;             ///< from 1
  std::vector<PyObject*> path;  ///< the attributes that lead from the argument to the value
  std::string name;             ///< the same as text: ".grid.cells"
};

/// A kernel of which all types are known.
class Kernel {
 public:
  Kernel(std::string name, std::string_view file, int line, nb::sequence params, nb::object body,
         const KernelOptions& options);

  detail::KernelCore& core() const { return *core_; }
  const std::vector<Param>& params() const { return params_; }
  const std::vector<Part>& parts() const { return parts_; }

  /// For the collector of cycles: the body, and its end. While tapes and graphs hold the kernel, the body is theirs
  /// too.
  PyObject* body() const { return !is_held() && state_->body ? state_->body->get().ptr() : nullptr; }
  void clear();
  /// What the kernel does by ids among its arguments. The first call traces the kernel for it, if it takes numbers of
  /// 64 bits at all. Under the GIL. Errors: none: a kernel that cannot be traced says so when it is launched.
  const KernelIds& ids();
  /// The kernel that is given the data of the meshes with the ids at these places, after all other parameters:
  /// gradients pass to their points. Under the GIL.
  detail::KernelCore& core_with(const std::vector<IdPlace>& meshes);

 private:
  /// Shared with the body, which may outlive this object.
  struct State {
    std::vector<Param> params;
    mutable HeldPointer body;  ///< null once the collector of cycles has ended the kernel
    mutable KernelIds ids;     ///< under the GIL
  };
  static void trace(const State& state, const std::vector<IdPlace>& meshes);
  /// Whether tapes or graphs hold the kernel.
  bool is_held() const;
  void add_parts(const DType& dtype, int ndim, int argument, const std::vector<PyObject*>& path,
                 const std::string& name);

  std::vector<Param> params_;
  std::vector<Part> parts_;
  bool ids_are_known_ = true;
  KernelOptions options_;
  std::shared_ptr<const State> state_;
  std::shared_ptr<detail::KernelCore> core_;
  std::map<std::vector<IdPlace>, std::shared_ptr<detail::KernelCore>> with_meshes_;  ///< see core_with()
};

/// The base of the package's kernels. While `kernel` is null, launch() asks its method resolve() for one.
struct KernelHandle {
  nb::object native = nb::none();
  Kernel* kernel = nullptr;
};

/// The parameters in a list of types, and of pairs of a type and a number of dimensions.
std::vector<Param> params_from(nb::sequence given);

}  // namespace weft::python
