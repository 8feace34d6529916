// Collects references to Python's objects that are let go where no code of Python may run.
#include "held.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace weft::python {

namespace {

struct Dropped {
  std::mutex mutex;
  std::vector<PyObject*> objects;
  std::atomic<bool> any = false;
  bool called = false;  ///< Python has been asked to call drop_now()
};
// Never destroyed: the library's own static objects may let references go at the end of the process.
Dropped& dropped() {
  static Dropped* const all = new Dropped;
  return *all;
}

int drop_pending(void*) {
  drop_now();
  return 0;
}

}  // namespace

void drop_later(PyObject* object) {
  if (!object || !Py_IsInitialized()) return;
  Dropped& all = dropped();
  bool call = false;
  {
    const std::lock_guard lock(all.mutex);
    all.objects.push_back(object);
    all.any.store(true, std::memory_order_relaxed);
    call = !std::exchange(all.called, true);
  }
  // Where Python's own list of calls is full, the next launch or array lets the objects go.
  if (call && Py_AddPendingCall(&drop_pending, nullptr) != 0) {
    const std::lock_guard lock(all.mutex);
    all.called = false;
  }
}

void drop_now() {
  Dropped& all = dropped();
  if (!all.any.load(std::memory_order_relaxed)) return;
  std::vector<PyObject*> objects;
  {
    const std::lock_guard lock(all.mutex);
    objects.swap(all.objects);
    all.any.store(false, std::memory_order_relaxed);
    all.called = false;
  }
  for (PyObject* object : objects) Py_DECREF(object);
}

}  // namespace weft::python
