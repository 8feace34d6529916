// Captures and graphs in Python.
#include <memory>
#include <thread>

#include "../../../runtime/graph.h"
#include "../../../runtime/work/capture.h"
#include "../module.h"
#include "arrays.h"
#include "streams.h"

namespace weft::python {

namespace {

/// A capture with a beginning and an end of its own.
class PyCapture {
 public:
  explicit PyCapture(Device device) : device_(std::move(device)) {}

  void begin() {
    if (scope_) throw nb::value_error("the capture has begun");
    scope_ = std::make_unique<CaptureScope>(device_, Loc{});
    thread_ = std::this_thread::get_id();
  }
  Graph end() {
    check();
    const auto scope = std::move(scope_);
    return scope->finish();
  }
  void abandon() {
    check();
    scope_.reset();
  }

 private:
  void check() const {
    if (!scope_) throw nb::value_error("nothing is captured");
    if (thread_ != std::this_thread::get_id()) throw nb::value_error("the capture runs on another thread");
  }

  Device device_;
  std::unique_ptr<CaptureScope> scope_;
  std::thread::id thread_;
};

weft::Array<int> flag_from(nb::handle object) { return typed<int>(object, "the flag of a condition"); }

}  // namespace

void add_graphs(nb::module_& m) {
  nb::class_<Graph>(m, "Graph", nb::dynamic_attr(), "Captured work, to be launched again and again.")
      .def_prop_ro("size", &Graph::size)
      .def_prop_ro("device", &Graph::device)
      .def(
          "launch",
          [](const Graph& g, nb::handle stream) {
            if (stream.is_none()) {
              Released released;
              return g.launch();
            }
            const Stream on = stream_from(stream);
            Released released;
            g.launch(on);
          },
          nb::arg("stream").none() = nb::none());
  nb::class_<PyCapture>(m, "Capture", "Collects this thread's work for a graph, from begin() to end().")
      .def(
          "__init__", [](PyCapture* self, nb::handle device) { new (self) PyCapture(device_from(device)); },
          nb::arg("device").none() = nb::none())
      .def("begin", &PyCapture::begin)
      .def("end", &PyCapture::end)
      .def("abandon", &PyCapture::abandon);
  m.def("is_capturing", [] { return detail::Capture::current() != nullptr; });
  m.def("graph_if", [](nb::handle flag, nb::object work) { graph_if(flag_from(flag), [&] { work(); }); });
  m.def("graph_while",
        [](nb::handle flag, int limit, nb::object work) { graph_while(flag_from(flag), limit, [&] { work(); }); });
}

}  // namespace weft::python
