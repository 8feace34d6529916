// Collects what kernels print: lines come while a wait holds locks of the library's, under which no code of Python may
// run.
#include "reports.h"

#include <nanobind/stl/string.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "../../../runtime/report.h"
#include "../module.h"

namespace weft::python {

namespace {

struct Lines {
  std::mutex mutex;
  std::vector<std::string> waiting;
  std::atomic<bool> any = false;
  PyObject* write = nullptr;  ///< the package's function; under the GIL
};
// Never destroyed: threads of the library may wait until the end of the process.
Lines& lines() {
  static Lines* const all = new Lines;
  return *all;
}

void keep(void*, std::string_view line) {
  Lines& all = lines();
  const std::lock_guard lock(all.mutex);
  all.waiting.emplace_back(line);
  all.any.store(true, std::memory_order_relaxed);
}

}  // namespace

void show_reports() {
  Lines& all = lines();
  if (!all.any.load(std::memory_order_relaxed)) return;
  std::vector<std::string> now;
  {
    const std::lock_guard lock(all.mutex);
    now.swap(all.waiting);
    all.any.store(false, std::memory_order_relaxed);
  }
  if (!all.write) return;
  const nb::object write = nb::borrow(all.write);
  for (const std::string& line : now) write(nb::str(line.data(), line.size()));
}

void show_reports_without_gil() {
  if (!lines().any.load(std::memory_order_relaxed)) return;
  const Acquired gil;
  show_reports();
}

void add_reports(nb::module_& m) {
  m.def(
      "set_print_sink",
      [](nb::object write) {
        Lines& all = lines();
        Py_XDECREF(all.write);
        all.write = write.is_none() ? nullptr : write.release().ptr();
        set_print_sink(all.write ? PrintSink{&keep, nullptr} : PrintSink{});
      },
      nb::arg("write").none(), "Gives each line that kernels print to a function; None: to the standard output.");
  m.def("show_reports", &show_reports);
}

}  // namespace weft::python
