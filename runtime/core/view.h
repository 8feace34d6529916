// Arrays whose element type the runtime need not know, to hand on, cut, or lay over other memory. Internal.
#pragma once
#include "../array.h"
#include "../extent.h"

namespace weft::detail {

/// A handle for the runtime's own use, which makes public what Array<T, N> keeps to itself.
class View : public ArrayBase {
 public:
  View() : ArrayBase(1, 1) {}
  explicit View(const ArrayBase& a) : ArrayBase(a) {}
  /// Elements of the same shape and strides, which begin at another place.
  View(const ArrayBase& like, std::shared_ptr<Storage> storage, std::uint64_t address) : ArrayBase(like) {
    storage_ = std::move(storage);
    address_ = address;
  }
  View(std::shared_ptr<Storage> storage, std::uint64_t address, int ndim, std::uint32_t element_bytes,
       const std::array<std::int64_t, 4>& shape, const std::array<std::int64_t, 4>& stride)
      : ArrayBase(ndim, element_bytes) {
    storage_ = std::move(storage);
    address_ = address;
    shape_ = shape;
    stride_ = stride;
  }
  /// Elements in a row.
  View(std::shared_ptr<Storage> storage, std::uint64_t address, std::int64_t count, std::uint32_t element_bytes)
      : View(std::move(storage), address, 1, element_bytes, {count}, {element_bytes}) {}
  /// Contiguous elements at the beginning of the memory.
  View(const std::shared_ptr<Storage>& storage, const Extent& extent, std::uint32_t element_bytes);
  /// All bytes of the memory.
  static View all_of(const std::shared_ptr<Storage>& storage);
  /// New elements, of the same shape, in a row.
  static View like(const ArrayBase& a) {
    View v(a);
    v.create(a.device(), v.extent(), a.ndim());
    return v;
  }
  Extent extent() const { return extent_of(shape_, ndim_); }

  void zero() {
    const std::vector<std::byte> bytes(element_bytes_);
    fill_element(bytes.data());
  }
  /// The elements in row-major order.
  std::vector<std::byte> bytes() const {
    auto all = host_vector<std::byte>(std::uint64_t(size()) * element_bytes_);
    download(all.data());
    return all;
  }
  void assign(const std::vector<std::byte>& bytes) { upload(bytes.data(), bytes.size() / element_bytes_); }
  using ArrayBase::create_around;
  using ArrayBase::host_bytes;
  using ArrayBase::make_gradient;
  void copy(const ArrayBase& from) { copy_elements(from); }
  std::uint64_t end() const { return address() + extent_bytes(); }
};

/// The memory of an array whose elements lie in a row, as numbers of type T in a row.
template <class T>
class Row : public ArrayOn<T, 1> {
 public:
  explicit Row(const ArrayBase& a)
      : ArrayOn<T, 1>(
            View(a.storage(), a.address(), a.size() * a.element_bytes() / std::int64_t(sizeof(T)), sizeof(T))) {}
};

}  // namespace weft::detail
