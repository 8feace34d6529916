// The arguments of a launch: from Python's objects to what the library's launch takes.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "../../../runtime/detail/host_arg.h"
#include "../../../runtime/geometry/mesh.h"
#include "../trace/kernels.h"
#include "arrays.h"

namespace weft::python {

/// The values of one launch. They live until the launch is on its stream.
class Arguments {
 public:
  Arguments() = default;
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  /// Takes the value of one argument for all of the kernel's parameters that it gives.
  /// \param handle    the package's kernel, for its converter
  /// \param position  of the argument, from 0
  /// Errors: TypeError and OverflowError; whatever the package's converter raises.
  void take(nb::handle handle, const Kernel& kernel, int position, PyObject* value, nb::handle device);
  /// Adds an array, or the data of a mesh, that the kernel takes after all arguments.
  /// Errors: TypeError for more than a kernel can take; whatever the mesh throws that cannot be used.
  void add(Array array);
  void add(const Mesh& mesh, detail::GivenStructures& structures);
  std::span<const detail::HostArg> parts() const { return {reinterpret_cast<const detail::HostArg*>(parts_), count_}; }
  /// The objects of the arrays of weft among them, and in structs.
  std::span<PyObject* const> objects() const { return {arrays_, array_count_}; }
  /// The array of part k; null for a value, and for an array that is left out.
  const Array* array(std::size_t k) const {
    const ArrayBase* const base = parts()[k].array;
    return base && !base->is_null() ? static_cast<const Array*>(base) : nullptr;
  }

 private:
  void take_part(const Part& part, PyObject* value, nb::handle device);
  void take_array(detail::HostArg& arg, const Part& part, PyObject* value, nb::handle device);
  /// Adds an array around the memory of another library's array. False where that is none of this type.
  bool wrap(const Part& part, PyObject* value, nb::handle device);
  std::byte* memory(std::size_t bytes);

  detail::HostArg& next_arg();
  /// Refuses more parts than a kernel can take.
  void refuse_more(int parts) const;

  /// Raw memory, because making all parts would take longer than the launch of a small kernel.
  alignas(detail::HostArg) std::byte parts_[sizeof(detail::HostArg) * std::size_t(detail::kMostParameters)];
  std::size_t count_ = 0;
  /// The arrays' objects, which another thread might let go during the launch.
  PyObject* arrays_[detail::kMostParameters];
  std::size_t array_count_ = 0;
  std::size_t next_ = 0;  ///< the part that the next argument begins with
  static constexpr std::size_t kInside = 512;
  alignas(16) std::byte inside_[kInside];
  std::size_t used_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> more_;
  std::vector<nb::object> kept_;                 ///< objects that only this launch holds
  std::vector<std::unique_ptr<Array>> wrapped_;  ///< arrays around the host's memory
  std::vector<Mesh> meshes_;
  std::vector<std::shared_ptr<Loan>> loans_;  ///< the references of these to the memory's owners, which are in kept_
  std::optional<Device> device_;              ///< the one that is named, for arrays around the host's memory
};

/// What lies at the end of a path of attributes, or of keys of a dict.
nb::object follow(PyObject* from, const std::vector<PyObject*>& path);

/// Sets the function of the package that converts arguments which the library does not take.
void set_converter(nb::object converter);

}  // namespace weft::python
