// Finds the memory that arrays of the host stand on: the library lets one array alone stand on each byte, while NumPy's
// views of one array share its memory.
#include "wrapped.h"

#include <map>
#include <mutex>

#include "../../../runtime/core/state.h"
#include "../../../runtime/core/view.h"
#include "numpy_layout.h"

namespace weft::python {

namespace {

struct Piece {
  HostRange range;
  std::weak_ptr<detail::Storage> storage;
};

/// What stands on which memory, by device and by the address where it begins.
struct Pieces {
  using Key = std::pair<const detail::DeviceState*, const std::byte*>;
  std::mutex mutex;
  std::map<Key, Piece> known;
  std::size_t pruned_at = 256;

  static Pieces& get() {
    static Pieces* const all = new Pieces;
    return *all;
  }
  std::shared_ptr<detail::Storage> around(const detail::DeviceState* device, const HostRange& part) {
    const std::lock_guard lock(mutex);
    auto after = known.upper_bound({device, part.begin});
    if (after == known.begin()) return nullptr;
    const auto& [key, piece] = *std::prev(after);
    if (key.first != device || !piece.range.holds(part)) return nullptr;
    auto storage = piece.storage.lock();
    return storage && !storage->is_freed() ? storage : nullptr;
  }
  void add(const detail::DeviceState* device, const HostRange& range, const std::shared_ptr<detail::Storage>& storage) {
    const std::lock_guard lock(mutex);
    known[{device, range.begin}] = {range, storage};
    if (known.size() < pruned_at) return;
    std::erase_if(known, [](const auto& k) { return k.second.storage.expired(); });
    pruned_at = 2 * known.size() + 256;
  }
};

detail::View part_of(const std::shared_ptr<detail::Storage>& storage, const HostRange& part) {
  const std::uint64_t at = std::uint64_t(part.begin - storage->allocation.host);
  return detail::View(storage, storage->allocation.address + at, std::int64_t(part.bytes), 1);
}

/// The memory of a storage of torch's; the part itself for other objects.
HostRange storage_range(nanobind::handle object, const HostRange& part) {
  namespace nb = nanobind;
  static PyObject* const address_name = PyUnicode_InternFromString("data_ptr");
  static PyObject* const bytes_name = PyUnicode_InternFromString("nbytes");
  const nb::object address = nb::steal(PyObject_CallMethodNoArgs(object.ptr(), address_name));
  const nb::object bytes =
      address.is_valid() ? nb::steal(PyObject_CallMethodNoArgs(object.ptr(), bytes_name)) : nb::object();
  HostRange whole;
  if (bytes.is_valid())
    whole = {static_cast<std::byte*>(PyLong_AsVoidPtr(address.ptr())), PyLong_AsSize_t(bytes.ptr())};
  if (!PyErr_Occurred() && whole.holds(part)) return whole;
  PyErr_Clear();
  return part;
}

}  // namespace

HostRange whole_memory(nanobind::handle object, const HostRange& part) {
  namespace nb = nanobind;
  if (owns_numpy_memory(object.ptr())) return part;
  if (!PyObject_CheckBuffer(object.ptr())) return storage_range(object, part);
  static PyObject* const base = PyUnicode_InternFromString("base");
  nb::object root = nb::borrow(object);
  for (int k = 0; k < 16; ++k) {
    nb::object next = nb::steal(PyObject_GetAttr(root.ptr(), base));
    if (!next.is_valid()) {
      PyErr_Clear();
      break;
    }
    if (next.is_none() || !PyObject_CheckBuffer(next.ptr())) break;
    root = std::move(next);
  }
  if (root.is(object)) return part;
  Py_buffer view;
  if (PyObject_GetBuffer(root.ptr(), &view, PyBUF_STRIDES) != 0) {
    PyErr_Clear();
    return part;
  }
  const HostRange whole{static_cast<std::byte*>(view.buf), std::uint64_t(view.len)};
  const bool in_one_piece = PyBuffer_IsContiguous(&view, 'A');
  PyBuffer_Release(&view);
  return in_one_piece && whole.holds(part) ? whole : part;
}

ArrayBase bytes_on(const Device& device, const HostRange& part, const HostRange& whole, std::shared_ptr<void> owner) {
  Pieces& pieces = Pieces::get();
  const detail::DeviceState* const state = device.state().get();
  if (part.bytes > 0)
    if (const auto storage = pieces.around(state, part)) return part_of(storage, part);
  detail::View all;  // of all bytes
  const auto make = [&] {
    all.create_around(device, Extent(std::int64_t(whole.bytes)), 1, {whole.begin, whole.bytes}, 1, owner);
  };
  try {
    make();
  } catch (const Error& e) {
    // Work that is still running may hold memory that nobody uses any more.
    if (e.kind() != ErrorKind::invalid_argument) throw;
    device.synchronize();
    make();
  }
  if (part.bytes == 0) return all;
  pieces.add(state, whole, all.storage());
  return part_of(all.storage(), part);
}

void remember_memory(const ArrayBase& array) {
  const std::shared_ptr<detail::Storage>& storage = array.storage();
  if (!storage || storage->wrapped || storage->is_freed()) return;
  const backend::Allocation& memory = storage->allocation;
  if (!memory.host || memory.address != reinterpret_cast<std::uintptr_t>(memory.host)) return;
  Pieces::get().add(storage->device.get(), {memory.host, storage->bytes}, storage);
}

}  // namespace weft::python
