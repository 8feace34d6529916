// Arrays whose element type is known at run time alone.
#pragma once
#include <optional>
#include <vector>

#include "../../../runtime/array.h"
#include "../held.h"
#include "../types.h"

namespace weft::python {

/// An array, as Python holds it: what Array<T, N> is to C++.
class Array : public ArrayBase {
 public:
  Array(const DType& dtype, int ndim) : ArrayBase(ndim, dtype.size), dtype_(&dtype) {}
  Array(const DType& dtype, const ArrayBase& base) : ArrayBase(base), dtype_(&dtype) {}

  /// Elements that are not initialised; arrays in structs are null.
  static Array empty(const Device& device, const Extent& extent, const DType& dtype);
  /// An array of elements in a row in memory, from a byte on. The caller has checked that they lie inside.
  static Array inside(const ArrayBase& bytes, std::uint64_t offset, const Extent& extent, const DType& dtype);
  /// An array around memory of the host, which `owner` keeps. Several may stand on parts of one array of NumPy's.
  /// \param strides  in bytes, none negative; null: contiguous
  /// \param loan  keeps the owner instead, where it is kept otherwise for now
  /// Errors: Error(unsupported) on a device that cannot use the host's memory.
  static Array around(const Device& device, const Extent& extent, const std::int64_t* strides, const DType& dtype,
                      void* memory, nb::object owner, std::shared_ptr<Loan> loan = nullptr);

  const DType& dtype() const { return *dtype_; }
  Extent extent() const;
  std::span<const detail::Leaf> leaves() const { return dtype_->leaves; }

  void zero();
  void fill(const std::byte* element);
  /// Replaces all elements by contiguous ones of the host.
  void assign(const void* elements);
  void read(void* elements) const { download(elements); }
  /// Elements of the same shape; arrays of another device too.
  void copy(const ArrayBase& from) { copy_from(from, leaves()); }
  static void copy_part(const Array& to, const Array& from, std::int64_t to_offset, std::int64_t from_offset,
                        std::int64_t count) {
    copy_range(to, from, to_offset, from_offset, count, to.leaves());
  }
  /// The address of the first element in the host's memory; waits for all work on the array.
  /// Errors: Error(unsupported) on a device with memory of its own.
  std::byte* host_address() const;
  std::vector<std::byte> element(const std::int64_t* indices) const;

  Array sliced(int dimension, std::int64_t lo, std::int64_t hi, std::int64_t step) const;
  Array row(std::int64_t i) const;
  Array reshaped(const Extent& extent) const;
  Array permuted(const Extent& axes) const;
  Array as_scalars() const;
  /// The numbers along the last dimension as the scalars of one element each: the inverse of as_scalars(). Of one
  /// dimension there remains one, with one element.
  Array as_elements(const DType& dtype) const;
  Array viewed(const DType& dtype) const;

  /// Becomes an array on the memory of a tensor of DLPack.
  void become(const ArrayBase& on) { take_same(on); }

  void need_gradient() const { make_gradient(leaves()); }
  /// Becomes the gradient of `of`.
  void become_gradient(const ArrayBase& of) { take_gradient(of); }

  /// Whether Python sees a gradient.
  bool shows_gradient() const {
    return gradient.is_valid() || gradient_source.is_valid() || (has_grad() && !gradient_is_taken);
  }
  /// Whether the gradient is an array of its own, apart from the array's gradient storage: one that Python has set, or
  /// another library's.
  bool has_given_gradient() const { return gradient_is_set || gradient_source.is_valid(); }

  mutable nb::object gradient;     ///< the object for the gradient that Python was given or has set; invalid: none yet
  bool gradient_is_set = false;    ///< Python has set it
  bool gradient_is_taken = false;  ///< Python has taken it away, while the storage may serve other arrays
  /// Gives another library's gradient, which that library may have made or let go in between, each time it is called;
  /// invalid: the array has none of another library.
  nb::object gradient_source;

 private:
  const DType* dtype_;
};

/// An object for an array, of a class derived from Array's, else of the one that the package has named.
nb::object make_object(Array array, nb::handle cls = {});
/// The array of an object of Python's, or null if it is none, or one that was not initialised.
Array* array_of(PyObject* object);
/// Errors: TypeError for what is no array.
Array& array_from(nb::handle object);

/// The gradient of an array, as the same object each time, but for another library's; None without gradient storage.
/// Errors: whatever the gradient's source raises.
nb::object gradient_of(const Array& array);

/// An array of Python's as one of C++.
/// Errors: TypeError that names `what` for elements of another type and another number of dimensions.
template <class T, int N = 1>
weft::Array<T, N> typed(nb::handle object, const char* what) {
  const Array& given = array_from(object);
  const DType& wanted = TypeOf<T>::get();
  if (&given.dtype() != &wanted || given.ndim() != N)
    throw nb::type_error((std::string(what) + ": an array of " + wanted.name + " with " + std::to_string(N) +
                          " dimension(s) is wanted, not one of " + given.dtype().name + " with " +
                          std::to_string(given.ndim()))
                             .c_str());
  return detail::ArrayOn<T, N>(given);
}

/// The sizes in an int or a sequence of ints.
/// Errors: TypeError, ValueError for more than four.
Extent extent_from(nb::handle shape);
/// The device of a Device, of an object with one in its attribute `native`, or the current one for None.
Device device_from(nb::handle object);
/// The device of this thread's calls that name none.
const Device& current_device();

}  // namespace weft::python
