// Arrays of other libraries in the host's memory, in one description.
#pragma once
#include <optional>
#include <string>

#include "../../../runtime/exchange/dlpack_abi.h"
#include "arrays.h"
#include "wrapped.h"

namespace weft::python {

/// The memory of another library's array.
struct HostTensor {
  static constexpr int kMostDimensions = 6;  ///< an array's four, and those of a matrix

  std::byte* data = nullptr;
  ir::Type type = ir::Type::none;  ///< of its numbers; none for those that weft lacks
  int ndim = 0;
  std::int64_t shape[kMostDimensions], stride[kMostDimensions];  ///< strides in bytes
  nb::object owner;                                              ///< keeps the memory

  bool is_contiguous() const;
};

/// The description of an array of NumPy's (the buffer protocol) or torch's (the table of functions that DLPack defines
/// for exchange). Nothing for other objects, for memory that is read only, and for memory of other devices.
/// Cost: some 0.1 us; 0.5 us for torch, whose tensors are asked for the memory that they are views of.
std::optional<HostTensor> host_tensor(PyObject* object);

/// The same of a tensor of DLPack's. \param owner  keeps its memory
std::optional<HostTensor> host_tensor(const DLTensor& given, nb::object owner);

/// Whether numbers of one type are read as another's: the same, and integers of the other sign; truth values as
/// integers.
bool has_same_bits(ir::Type given, ir::Type wanted);

/// An array of `ndim` dimensions on that memory, whose last dimensions are those of an element.
/// \param why  receives what the tensor lacks where the result is nothing
/// \param loan  keeps the tensor's owner instead, where it is kept otherwise for now
/// Errors: those of Array::around().
std::optional<Array> array_around(const HostTensor& tensor, const DType& dtype, int ndim, const Device& device,
                                  std::string* why = nullptr, std::shared_ptr<Loan> loan = nullptr);

}  // namespace weft::python
