// The data of a structure at its id(). Internal to the runtime.
#pragma once
#include <array>
#include <memory>

#include "../../array.h"
#include "../../core/state.h"
#include "../../work/capture.h"
#include "../../work/observe.h"

namespace weft::detail {

/// The data of a structure as one element in the memory of its device, made when that is first needed. Data are given
/// by functions that return a T, because rows that do not lie together are copied for it.
template <class T>
class Element {
 public:
  Element() = default;
  // Kernels that still have the id of an ended structure find zeros.
  ~Element() {
    if (!is_handle_) return;
    const HeardBy nobody(nullptr);
    clear_handle(array_);
  }
  Element(const Element&) = delete;
  Element& operator=(const Element&) = delete;

  /// The array of the element; null until that is made.
  const Array<T>& array() const { return array_; }

  /// Makes the element now, even in a capture, unless it is there.
  template <class F>
  void make(const Device& device, const F& data) {
    if (!array_.is_null()) return;
    const HeardBy nobody(nullptr);
    const OutsideCapture at_once;
    array_ = Array<T>(device, {data()});
  }
  /// Writes new data into the element, if it is there.
  template <class F>
  void write(const F& data) {
    if (!array_.is_null()) array_.assign(std::array<T, 1>{data()});
  }
  /// The address of the element, by which kernels find the structure from now on.
  /// \param structure  see Handles::add()
  template <class F>
  std::uint64_t id(const Device& device, const F& data, std::shared_ptr<const Generation> structure = nullptr) {
    make(device, data);
    if (!is_handle_) device.state()->handles.add(array_.storage(), std::move(structure));
    is_handle_ = true;
    return array_.address();
  }

 private:
  Array<T> array_;
  bool is_handle_ = false;
};

}  // namespace weft::detail
