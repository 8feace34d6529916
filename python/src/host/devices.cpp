// Devices, streams and events in Python.
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>

#include "../../../runtime/device.h"
#include "../module.h"
#include "arrays.h"
#include "reports.h"
#include "streams.h"

namespace weft::python {

namespace {

thread_local std::optional<Device> chosen;
// Never destroyed: Python's objects may outlive all static ones.
const Device* first_used = nullptr;  ///< under the GIL

/// An object that Python gives in place of one of these: the package's class, which has it in its attribute `native`.
template <class T>
T held_by(nb::handle object, const char* what) {
  if (T* const held = as<T>(object)) return *held;
  static PyObject* const native = PyUnicode_InternFromString("native");
  if (PyObject* attribute = PyObject_GetAttr(object.ptr(), native)) {
    const nb::object owned = nb::steal(attribute);
    if (T* const held = as<T>(owned)) return *held;
  } else {
    PyErr_Clear();
  }
  throw nb::type_error(what);
}

/// Calls a function that may wait, without the GIL.
template <class F>
auto waiting(F f) {
  if constexpr (std::is_void_v<decltype(f())>) {
    {
      Released released;
      f();
    }
    show_reports();
  } else {
    auto result = [&] {
      Released released;
      return f();
    }();
    show_reports();
    return result;
  }
}

/// A StreamScope for a `with` statement.
class Scope {
 public:
  explicit Scope(Stream stream) : stream_(std::move(stream)) {}
  void enter() {
    if (scope_) throw nb::value_error("the scope is open already");
    scope_.emplace(stream_);
  }
  void exit() { scope_.reset(); }

 private:
  Stream stream_;
  std::optional<StreamScope> scope_;
};

}  // namespace

const Device& current_device() {
  if (chosen) return *chosen;
  if (!first_used) first_used = new Device(Device::best());
  return *first_used;
}

namespace {
/// Devices that Python has named once stay open: to look for one takes longer than a launch. Under the GIL.
std::map<std::string, Device, std::less<>>& known() {
  static auto& all = *new std::map<std::string, Device, std::less<>>;
  return all;
}

const Device& named(const std::string& name) {
  if (const auto found = known().find(name); found != known().end()) return found->second;
  Device device(name);
  return known().emplace(name, std::move(device)).first->second;
}

/// The devices that were used by their names, and as the first one of the process.
std::vector<Device> used_devices() {
  std::vector<Device> all;
  if (first_used) all.push_back(*first_used);
  for (const auto& [name, device] : known()) all.push_back(device);
  return all;
}
}  // namespace

Device device_from(nb::handle object) {
  if (object.is_none()) return current_device();
  if (nb::isinstance<nb::str>(object)) return named(nb::cast<std::string>(object));
  return held_by<Device>(object, "this is no device");
}

Stream stream_from(nb::handle object) { return held_by<Stream>(object, "this is no stream"); }

void add_devices(nb::module_& m) {
  nb::class_<Device>(m, "Device", nb::dynamic_attr(), "A device that runs kernels.")
      .def("__init__", [](Device* self, const std::string& name) { new (self) Device(std::string_view(name)); })
      .def_prop_ro("name", [](const Device& d) { return d.name(); })
      .def_prop_ro("adapter", [](const Device& d) { return d.adapter(); })
      .def_prop_ro("driver", [](const Device& d) { return d.driver(); })
      .def_prop_ro("is_software", &Device::is_software)
      .def_prop_ro("is_gpu", [](const Device& d) { return d.name().starts_with("vulkan") && !d.is_software(); })
      .def_prop_ro("memory_bytes", &Device::memory_bytes)
      .def_prop_ro("wraps_host", &Device::wraps_host)
      .def_prop_ro("has_ray_query", &Device::has_ray_query)
      .def("stream", &Device::stream)
      .def(
          "create_stream",
          [](const Device& d, bool high) {
            return d.create_stream(high ? StreamPriority::high : StreamPriority::normal);
          },
          nb::arg("high") = false)
      .def("synchronize", [](const Device& d) { waiting([&] { d.synchronize(); }); })
      .def("compile_counts",
           [](const Device& d) {
             const CompileCounts c = d.compile_counts();
             return std::tuple(c.compiled, c.loaded, c.rejected);
           })
      .def("__eq__",
           [](const Device& a, nb::handle b) {
             const Device* const other = as<const Device>(b);
             return other && a == *other;
           })
      .def("__hash__", [](const Device& d) { return reinterpret_cast<std::intptr_t>(d.state().get()) >> 4; })
      .def("__repr__", [](const Device& d) { return "<weft device " + d.name() + ">"; });
  nb::class_<Event>(m, "Event", nb::dynamic_attr(), "A moment in the work of a stream.")
      .def(nb::init<>())
      .def("done", [](const Event& e) { return e.done(); })
      .def("wait", [](const Event& e) { waiting([&] { e.wait(); }); })
      .def("wait_for", [](const Event& e, double seconds) { return waiting([&] { return e.wait_for(seconds); }); });
  nb::class_<Stream>(m, "Stream", nb::dynamic_attr(), "A queue of work on one device.")
      .def("record", [](const Stream& s) { return s.record(); })
      .def("wait", [](const Stream& s, const Event& e) { s.wait(e); })
      .def("submit", [](Stream& s) { s.submit(); })
      .def("synchronize", [](Stream& s) { waiting([&] { s.synchronize(); }); })
      .def("__eq__",
           [](const Stream& a, nb::handle b) {
             const Stream* const other = as<const Stream>(b);
             return other && &detail::state_of(a) == &detail::state_of(*other);
           })
      .def("__hash__", [](const Stream& s) { return reinterpret_cast<std::intptr_t>(&detail::state_of(s)) >> 4; });
  nb::class_<Scope>(m, "StreamScope", "Sends this thread's work to a stream, from enter() to exit().")
      .def("__init__", [](Scope* self, nb::handle stream) { new (self) Scope(stream_from(stream)); })
      .def("enter", &Scope::enter)
      .def("exit", &Scope::exit);
  m.def("device_list", &Device::list);
  m.def("best_device", [] { return Device::best(); });
  m.def("current_device", [] { return current_device(); });
  m.def("used_devices", &used_devices);
  m.def(
      "set_current_device",
      [](nb::handle device) {
        if (device.is_none())
          chosen.reset();
        else
          chosen.emplace(device_from(device));
      },
      nb::arg("device").none());
}

}  // namespace weft::python
