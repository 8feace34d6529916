"""Objects that refer to each other in circles, with the module's objects among them, end when nobody has them."""

import gc
import sys
import threading
import weakref

import numpy as np

import weft as wp


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


class Held:
    """Something that a test waits for the end of."""


def ended(reference):
    """Whether an object is gone once Python has looked for circles."""
    for _ in range(3):  # an object that another one held ends in the next round
        gc.collect()
    return reference() is None


def test_a_tape_whose_recorded_functions_refer_to_it_is_collected(cpu):
    def run():
        tape, held = wp.Tape(), Held()
        x = wp.zeros(2, dtype=float, requires_grad=True)
        with tape:
            wp.launch(double, 2, [x], [wp.zeros_like(x)])
            tape.record_func(lambda: (tape, held), [x])
        return weakref.ref(tape), weakref.ref(held), weakref.ref(x)

    assert all(map(ended, run()))


def test_a_tape_is_collected_that_its_recorded_arrays_and_arguments_refer_to(cpu):
    def run():
        tape, held = wp.Tape(), Held()
        x = wp.zeros(2, dtype=float, requires_grad=True)
        x.owner = (tape, held)
        dim = DimensionOf(tape)
        with tape:
            wp.launch(double, dim, [x], [wp.zeros_like(x)])
        return weakref.ref(tape), weakref.ref(held), weakref.ref(dim)

    class DimensionOf:
        """A number of threads that refers to a tape."""

        def __init__(self, tape):
            self.tape = tape

        def __index__(self):
            return 2

    assert all(map(ended, run()))


def test_a_tape_in_use_is_not_collected(cpu):
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    tape, called = wp.Tape(), []
    with tape:
        y = wp.zeros_like(x)
        wp.launch(double, 2, [x], [y])
        tape.record_func(lambda: called.append(tape), [y])
    gc.collect()
    tape.backward(grads={y: np.ones(2, np.float32)})
    assert called == [tape] and x.grad.numpy().tolist() == [2.0, 2.0]


def test_a_tape_that_is_dropped_while_it_records_stays_until_it_ends(cpu):
    x = wp.zeros(2, dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    native = wp.Tape().native
    native.begin()
    kept = weakref.ref(native)
    del native
    gc.collect()
    wp.launch(double, 2, [x], [y])
    assert kept().size == 1
    kept().end()
    assert ended(kept)


def test_a_thread_may_end_inside_a_tape(cpu):
    made = []

    def work():
        tape = wp.Tape()
        tape.__enter__()
        made.append(weakref.ref(tape.native))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()
    x = wp.zeros(2, dtype=float, requires_grad=True)
    wp.launch(double, 2, [x], [wp.zeros_like(x)])  # records on nothing
    assert not wp._weft.is_recording()


def test_an_array_that_is_its_own_gradients_owner_is_collected(cpu):
    def run():
        x, held = wp.zeros(2, dtype=float, requires_grad=True), Held()
        x.grad.array = (x, held)
        return weakref.ref(x), weakref.ref(held)

    assert all(map(ended, run()))


def test_kernels_and_functions_of_an_object_that_holds_them_are_collected(cpu):
    class Simulation:
        def __init__(self, factor):
            self.factor = factor

            @wp.func
            def scaled(x: float):
                return x * wp.static(self.factor)

            @wp.kernel(module="unique")
            def scale(x: wp.array(dtype=float)):
                i = wp.tid()
                x[i] = scaled(x[i]) + wp.static(self.factor)

            self.scaled = scaled
            self.scale = scale

    def run(factor):
        simulation = Simulation(factor)
        x = wp.ones(3, dtype=float)
        wp.launch(simulation.scale, 3, [x])
        assert x.numpy().tolist() == [2.0 * factor] * 3
        return weakref.ref(simulation)

    first = run(3.0)
    run(5.0)  # the module keeps the function that was defined last
    assert ended(first)


def test_a_kernel_is_not_collected_while_a_tape_has_its_launch(cpu):
    x = wp.array([3.0], dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()

    def run():
        held = Held()

        @wp.kernel(module="unique")
        def square(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
            loss[0] = x[0] * x[0]

        square.held = held
        with tape:
            wp.launch(square, 1, [x, loss])
        return weakref.ref(square), weakref.ref(held)

    references = run()
    assert not ended(references[0])
    tape.backward(loss)
    assert x.grad.numpy().tolist() == [6.0]
    tape.reset()
    assert all(map(ended, references))


def test_recorded_launches_leave_the_counts_of_their_arguments_as_they_were(cpu):
    x, y = wp.zeros(2, dtype=float, requires_grad=True), wp.zeros(2, dtype=float, requires_grad=True)
    tape = wp.Tape()
    before = sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(double)
    for _ in range(10):
        with tape:
            wp.launch(double, 2, [x], [y])
        assert len(tape.launches) == 1
        tape.reset()
    assert (sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(double)) == before
