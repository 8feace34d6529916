// Tapes in Python.
#include "tapes.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "../../../runtime/tape/gradient.h"
#include "../../../runtime/work/observe.h"
#include "../module.h"
#include "reports.h"

namespace weft::python {

namespace {

thread_local PyTape* recording = nullptr;

Seed seed_from(nb::handle pair) {
  const nb::tuple given = nb::cast<nb::tuple>(pair);
  if (given.size() != 2) throw nb::type_error("a seed is a pair of an array and the gradient of it");
  const Array &of = array_from(given[0]), &gradient = array_from(given[1]);
  if (&of.dtype() != &gradient.dtype() || of.ndim() != gradient.ndim())
    throw nb::type_error("a seed has the type and the number of dimensions of its array");
  return {of, gradient, of.leaves()};
}

/// The gradient storage of an array whose gradient is another array. What goes back is added to the storage, which
/// other arrays on the same memory may use: it is cleared before, moved to the gradient, and put back as it was.
class Moved {
 public:
  static void add(std::vector<Moved>& all, const Array& array) {
    Array own(array.dtype(), static_cast<const ArrayBase&>(array));
    own.become_gradient(array);
    nb::object gradient = gradient_of(array);
    if (array_from(gradient).address() == own.address()) return;  // one memory: nothing is to be moved
    all.push_back(Moved(std::move(own), std::move(gradient)));
  }
  void move() {
    detail::accumulate(array_from(gradient_), own_, own_.leaves());
    own_.zero();
  }
  void put_back() { own_.copy(before_); }

 private:
  Moved(Array own, nb::object gradient)
      : own_(std::move(own)),
        before_(Array::empty(own_.device(), own_.extent(), own_.dtype())),
        gradient_(std::move(gradient)) {
    before_.copy(own_);
    own_.zero();
  }

  Array own_, before_;
  nb::object gradient_;
};

void backward(PyTape& tape, nb::sequence given) {
  std::vector<Seed> seeds;
  for (nb::handle pair : given) seeds.push_back(seed_from(pair));
  std::vector<Moved> moved;
  for (nb::handle object : tape.arrays())
    if (array_from(object).has_given_gradient()) Moved::add(moved, array_from(object));
  {
    // Users go back inside the `with` of a tape, too: the way back itself is on no tape.
    const detail::HeardBy nobody(nullptr);
    nb::gil_scoped_release released;
    tape.tape().backward(seeds, Loc{});
  }
  for (Moved& each : moved) each.move();
  // Backwards, because parts of one memory were cleared more than once.
  for (std::size_t k = moved.size(); k-- > 0;) moved[k].put_back();
}

nb::object gradient(PyTape& tape, const Array& array) {
  Array g(array.dtype(), static_cast<const ArrayBase&>(array));
  tape.tape().take_gradient(g);
  return make_object(std::move(g));
}

void record_func(PyTape& tape, nb::object function, nb::sequence arrays) {
  std::vector<const ArrayBase*> list;
  for (nb::handle a : arrays) list.push_back(&array_from(a));
  tape.tape().add_function(
      [held = hold(std::move(function))] {
        nb::gil_scoped_acquire gil;
        nb::borrow(held->get())();
      },
      std::move(list));
}

/// A scope in which no tape records, for a `with` statement.
class Pause {
 public:
  void enter() {
    if (quiet_) throw nb::value_error("the scope is open already");
    quiet_.emplace();
  }
  void exit() { quiet_.reset(); }

 private:
  std::optional<detail::Quiet> quiet_;
};

void accumulate(const Array& to, const Array& from) {
  if (&to.dtype() != &from.dtype() || to.ndim() != from.ndim())
    throw nb::type_error("gradients that are added are of one type and number of dimensions");
  for (int k = 0; k < to.ndim(); ++k)
    if (to.shape(k) != from.shape(k)) throw nb::value_error("gradients that are added have one shape");
  detail::accumulate(to, from, to.leaves());
}

}  // namespace

PyTape* PyTape::current() { return recording; }

void PyTape::begin() {
  Open open{std::make_unique<TapeScope>(tape_), std::this_thread::get_id(), recording};
  open_.push_back(std::move(open));
  recording = this;
}

void PyTape::end() {
  if (open_.empty()) throw nb::value_error("the tape does not record");
  if (open_.back().thread != std::this_thread::get_id()) throw nb::value_error("the tape records on another thread");
  if (recording != this) throw nb::value_error("another tape began to record later, and ends first");
  recording = open_.back().outer;
  open_.pop_back();
}

void PyTape::reset() {
  tape_.reset();
  known_.clear();
  arrays_.clear();
}

void PyTape::note(nb::handle array) {
  Array& a = array_from(array);
  if (a.gradient_source.is_valid()) a.need_gradient();
  if (!a.has_grad() || !known_.insert(array.ptr()).second) return;
  arrays_.push_back(nb::borrow(array));
}

nb::list PyTape::arrays() const {
  nb::list list;
  for (const nb::object& a : arrays_) list.append(a);
  return list;
}

void add_tapes(nb::module_& m) {
  const TapeOptions defaults;
  nb::class_<PyTape>(m, "Tape", nb::dynamic_attr(), nb::is_weak_referenceable(),
                     "Records launches and copies, and goes back through them.")
      .def(
          "__init__",
          [](PyTape* self, std::uint64_t scratch_bytes, std::uint32_t loop_slots, bool deterministic) {
            new (self) PyTape({scratch_bytes, loop_slots, deterministic});
          },
          nb::arg("scratch_bytes") = defaults.scratch_bytes, nb::arg("loop_slots") = defaults.loop_slots,
          nb::arg("deterministic") = defaults.deterministic)
      .def("begin", &PyTape::begin, "Records what this thread does, until end().")
      .def("end", &PyTape::end)
      .def("backward", &backward, nb::arg("seeds"), "Goes back from pairs of an array and the gradient of it.")
      .def("gradient", &gradient)
      .def("arrays", &PyTape::arrays, "The arrays with gradients that recorded launches and copies were given.")
      .def("zero", [](PyTape& t) { t.tape().zero(); })
      .def("reset", &PyTape::reset)
      .def_prop_ro("size", [](PyTape& t) { return t.tape().size(); })
      .def("record_func", &record_func, nb::arg("function"), nb::arg("arrays"));
  nb::class_<Pause>(m, "Unrecorded", "No tape records this thread, from enter() to exit().")
      .def(nb::init<>())
      .def("enter", &Pause::enter)
      .def("exit", &Pause::exit);
  m.def("accumulate", &accumulate, "Adds one array of gradients to another.");
  m.def("is_recording", [] { return recording != nullptr; });
}

}  // namespace weft::python
