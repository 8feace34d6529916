// Tapes in Python.
#include "tapes.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <string_view>

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
    Released released;
    tape.tape().backward(seeds, Loc{});
  }
  for (Moved& each : moved) each.move();
  // Backwards, because parts of one memory were cleared more than once.
  for (std::size_t k = moved.size(); k-- > 0;) moved[k].put_back();
}

/// Whether recorded work computes an array, so that the way back may begin there. The library looks at the seeds in
/// their order before it goes: the second one here, which is no array, ends the call where the first one is taken.
bool computes(PyTape& tape, const Array& array) {
  const Array none(array.dtype(), array.ndim());
  const Seed seeds[] = {{array, array, array.leaves()}, {none, none, none.leaves()}};
  const detail::HeardBy nobody(nullptr);
  try {
    tape.tape().backward(seeds, Loc{});
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::invalid_argument) throw;
    return std::string_view(e.what()).find("a null array") != std::string_view::npos;
  }
  return false;
}

nb::object gradient(PyTape& tape, const Array& array) {
  if (array.gradient_is_taken) throw nb::key_error("the gradient was taken away from the array");
  Array g(array.dtype(), static_cast<const ArrayBase&>(array));
  tape.tape().take_gradient(g);
  return make_object(std::move(g));
}

/// A gradient that is an array of its own, while a function of the way back runs: it holds what has come to its array
/// so far, and what the function leaves there goes on.
class Lent {
 public:
  explicit Lent(const Array& array)
      : own_(array.dtype(), static_cast<const ArrayBase&>(array)),
        before_(Array::empty(array.device(), array.extent(), array.dtype())),
        gradient_(gradient_of(array)) {
    own_.become_gradient(array);
    Array& given = array_from(gradient_);
    before_.copy(given);
    given.copy(own_);
  }
  void go_on() { own_.copy(array_from(gradient_)); }
  void put_back() { array_from(gradient_).copy(before_); }

 private:
  Array own_, before_;
  nb::object gradient_;
};

void call_backward(const Held& function, const std::vector<HeldPointer>& arrays) {
  Acquired gil;
  std::vector<Lent> lent;
  for (const HeldPointer& array : arrays)
    if (const Array& a = array_from(array->get()); a.has_given_gradient()) lent.emplace_back(a);
  nb::borrow(function.get())();
  for (Lent& each : lent) each.go_on();
  // Backwards, because several may lie on one memory.
  for (std::size_t k = lent.size(); k-- > 0;) lent[k].put_back();
}

void record_func(PyTape& tape, nb::object function, nb::sequence arrays) {
  std::vector<const ArrayBase*> list;
  std::vector<HeldPointer> objects;
  for (nb::handle a : arrays) {
    list.push_back(&array_from(a));
    objects.push_back(hold(nb::borrow(a)));
  }
  const HeldPointer held = hold(std::move(function));
  tape.tape().add_function([held, objects] { call_backward(*held, objects); }, std::move(list));
  tape.keep(held);
  for (const HeldPointer& object : objects) {
    tape.keep(object);
    tape.note(object->get());
  }
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

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<PyTape>(self)->traverse(visit, arg) : 0;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<PyTape>(self)->clear();
  return 0;
}

PyType_Slot tape_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)}, {Py_tp_clear, reinterpret_cast<void*>(&clear)}, {0, nullptr}};

}  // namespace

PyTape* PyTape::current() { return recording; }

void PyTape::begin(nb::object self) {
  Open open{std::make_unique<TapeScope>(tape_, Loc{}), std::this_thread::get_id(), recording, std::move(self)};
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
  drop_notes();
  held_.clear();
}

void PyTape::note(nb::handle array) {
  Array& a = array_from(array);
  if (a.gradient_source.is_valid()) a.need_gradient();
  if (!a.shows_gradient() || !known_.insert(array.ptr()).second) return;
  arrays_.push_back(nb::borrow(array));
}

nb::list PyTape::arrays() const {
  nb::list list;
  for (const nb::object& a : arrays_) list.append(a);
  return list;
}

void PyTape::begin_note(std::initializer_list<PyObject*> about, Py_ssize_t inputs, Py_ssize_t outputs, int place) {
  for (PyObject* object : about) noted_.push_back(Py_NewRef(object));
  launches_.push_back({inputs, outputs, place});
}

void PyTape::drop_note() {
  const Note note = launches_.back();
  launches_.pop_back();
  const std::size_t begin = noted_.size() - (kAbout + std::size_t(note.inputs + note.outputs));
  const std::vector<PyObject*> dropped(noted_.begin() + std::ptrdiff_t(begin), noted_.end());
  noted_.resize(begin);
  for (PyObject* object : dropped) Py_DECREF(object);
}

void PyTape::drop_notes() {
  launches_.clear();
  for (PyObject* object : std::exchange(noted_, {})) Py_DECREF(object);
}

nb::list PyTape::take_launches() {
  // Taken out first, because to make lists may run any code.
  const std::vector<Note> launches = std::exchange(launches_, {});
  const std::vector<PyObject*> noted = std::exchange(noted_, {});
  nb::list list;
  std::size_t at = 0;
  const auto next = [&] { return nb::steal(noted[at++]); };
  const auto next_tuple = [&](Py_ssize_t count) {
    nb::list items;
    for (Py_ssize_t k = 0; k < count; ++k) items.append(next());
    return nb::tuple(items);
  };
  for (const Note& note : launches) {
    nb::list about;
    for (std::size_t k = 0; k < kAbout; ++k) about.append(next());
    const nb::tuple inputs = next_tuple(note.inputs), outputs = next_tuple(note.outputs);
    about.append(note.place), about.append(inputs), about.append(outputs);
    list.append(nb::tuple(about));
  }
  return list;
}

int PyTape::traverse(visitproc visit, void* arg) const {
  for (const nb::object& array : arrays_) Py_VISIT(array.ptr());
  for (PyObject* object : noted_) Py_VISIT(object);
  for (const HeldPointer& object : held_) Py_VISIT(object->get().ptr());
  return 0;
}

void PyTape::clear() {
  {
    // Taken out before they end, because that may run any code.
    const Tape tape = std::move(tape_);
    const auto arrays = std::exchange(arrays_, {});
    const auto held = std::exchange(held_, {});
    known_.clear();
    drop_notes();
  }
  drop_now();
}

void add_tapes(nb::module_& m) {
  const TapeOptions defaults;
  nb::class_<PyTape>(m, "Tape", nb::type_slots(tape_slots), nb::is_weak_referenceable(),
                     "Records launches and copies, and goes back through them.")
      .def(
          "__init__",
          [](PyTape* self, std::uint64_t scratch_bytes, std::uint32_t loop_slots, bool deterministic) {
            new (self) PyTape({scratch_bytes, loop_slots, deterministic});
          },
          nb::arg("scratch_bytes") = defaults.scratch_bytes, nb::arg("loop_slots") = defaults.loop_slots,
          nb::arg("deterministic") = defaults.deterministic)
      .def(
          "begin", [](nb::handle_t<PyTape> self) { nb::cast<PyTape&>(self).begin(nb::borrow(self)); },
          "Records what this thread does, until end().")
      .def("end", &PyTape::end)
      .def("backward", &backward, nb::arg("seeds"), "Goes back from pairs of an array and the gradient of it.")
      .def("computes", &computes, nb::arg("array"), "Whether recorded work computes an array.")
      .def("gradient", &gradient)
      .def("note", &PyTape::note, nb::arg("array"), "Adds an array to arrays(), if it has a gradient.")
      .def("arrays", &PyTape::arrays, "The arrays with gradients that recorded launches and copies were given.")
      .def("take_launches", &PyTape::take_launches,
           "The launches since the last call: (kernel, dim, device, block_dim, max_blocks, code, place, inputs, "
           "outputs).")
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
