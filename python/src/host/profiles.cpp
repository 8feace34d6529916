// Profiles in Python: how long scopes of the host take, and how long devices spend on each kernel.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "../../../runtime/profile.h"
#include "../module.h"
#include "arrays.h"
#include "reports.h"

namespace weft::python {

namespace {

/// A Profiler that Python begins and ends.
class ProfilerObject {
 public:
  ProfilerObject(nb::sequence devices, bool whole_graphs) {
    std::vector<Device> measured;
    for (nb::handle device : devices) measured.push_back(device_from(device));
    Released released;
    profiler_ = std::make_unique<Profiler>(measured, ProfilerOptions{whole_graphs});
  }
  ~ProfilerObject() {
    Released released;
    profiler_.reset();
  }

  Profile stop() {
    Profile profile = [&] {
      Released released;
      return profiler_->stop();
    }();
    show_reports();
    return profile;
  }

 private:
  std::unique_ptr<Profiler> profiler_;
};

/// A Timer for a `with` statement.
class TimerObject {
 public:
  explicit TimerObject(std::string name) : name_(std::move(name)) {}
  void enter() { timer_.emplace(name_); }
  void exit() { timer_.reset(); }

 private:
  std::string name_;
  std::optional<Timer> timer_;
};

/// The rows of one of a profile's lists, as tuples of the values that a function gives.
template <class T, class F>
nb::list rows_of(const std::vector<T>& rows, F values) {
  nb::list list;
  for (const T& row : rows) list.append(values(row));
  return list;
}

nb::list kernels_of(const Profile& profile) {
  return rows_of(profile.kernels, [](const Profile::Kernel& k) {
    return nb::make_tuple(k.name, k.device, k.count, k.total, k.min, k.max, k.share);
  });
}

nb::list scopes_of(const Profile& profile) {
  return rows_of(profile.scopes,
                 [](const Profile::Scope& s) { return nb::make_tuple(s.path, s.depth, s.count, s.host, s.device); });
}

nb::list operations_of(const Profile& profile) {
  return rows_of(profile.operations, [](const Profile::Operation& o) {
    return nb::make_tuple(o.name, o.device, o.stream, o.scope, o.launched, o.begin, o.end);
  });
}

nb::list timers_of(const Profile& profile) {
  return rows_of(profile.timers,
                 [](const Profile::Span& s) { return nb::make_tuple(s.name, s.parent, s.thread, s.begin, s.end); });
}

}  // namespace

void add_profiles(nb::module_& m) {
  nb::class_<Profile>(m, "Profile", "The measurements of a Profiler.")
      .def_ro("seconds", &Profile::seconds)
      .def_prop_ro("kernels", &kernels_of)
      .def_prop_ro("scopes", &scopes_of)
      .def_prop_ro("operations", &operations_of)
      .def_prop_ro("timers", &timers_of)
      .def("table", &Profile::table)
      .def("trace", &Profile::trace)
      .def("save_trace", &Profile::save_trace, nb::arg("path"));
  nb::class_<ProfilerObject>(m, "Profiler", "Measures all work of some devices until it is stopped.")
      .def(nb::init<nb::sequence, bool>(), nb::arg("devices"), nb::arg("whole_graphs") = false)
      .def("stop", &ProfilerObject::stop);
  nb::class_<TimerObject>(m, "Timer", "A scope with a name, from enter() to exit().")
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("enter", &TimerObject::enter)
      .def("exit", &TimerObject::exit);
}

}  // namespace weft::python
