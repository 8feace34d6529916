"""Several threads of Python: waits leave the others free, and launches at the same time do what they do one after the other."""

import threading
import time

import numpy as np
import pytest

import weft as wp

THREADS = 6


@wp.kernel
def add(x: wp.array(dtype=float), s: float):
    wp.atomic_add(x, wp.tid(), s)


@wp.kernel
def turn(x: wp.array(dtype=float), rounds: int):
    i = wp.tid()
    v = x[i]
    for k in range(rounds):
        v = wp.sin(v) + 1.0e-3 * float(k % 7)
    x[i] = v


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def at_once(work, count=THREADS):
    """Calls work(k) on several threads that begin together. Returns the results; what one raises is raised."""
    results, errors = [None] * count, []
    barrier = threading.Barrier(count)

    def run(k):
        barrier.wait()
        try:
            results[k] = work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results


class Ticker:
    """Counts on a thread of its own, every millisecond, while a `with` block runs."""

    def __enter__(self):
        self.ticks, self.stop = 0, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        self.begin = time.perf_counter()
        return self

    def run(self):
        while not self.stop:
            time.sleep(0.001)
            self.ticks += 1

    def __exit__(self, *_):
        self.took = time.perf_counter() - self.begin
        self.stop = True
        self.thread.join()


def rounds_for(device, seconds):
    """The rounds of turn() that take about so long with two threads."""
    x, rounds = wp.ones(2, dtype=float, device=device), 1000
    while True:
        begin = time.perf_counter()
        wp.launch(turn, dim=2, inputs=[x, rounds], device=device)
        wp.synchronize_device(device)
        took = time.perf_counter() - begin
        if took > 0.05:
            return int(rounds * seconds / took) + 1
        rounds *= 4


@pytest.mark.parametrize("wait", ["synchronize", "numpy", "clone", "stream", "event", "graph", "tape"])
def test_other_threads_run_while_one_waits(device, wait):
    rounds = rounds_for(device, 0.4)
    x = wp.ones(2, dtype=float, requires_grad=wait == "tape")
    stream = wp.Stream(device)
    if wait == "graph":
        with wp.ScopedCapture() as capture:
            wp.launch(turn, dim=2, inputs=[x, rounds])
    waits = {
        "synchronize": wp.synchronize,
        "numpy": x.numpy,
        "clone": lambda: wp.clone(x, device="cpu" if wp.is_cpu_available() else "reference").numpy(),
        "stream": lambda: wp.synchronize_stream(stream),
        "event": lambda: wp.synchronize_event(wp.record_event()),
        "graph": lambda: (wp.capture_launch(capture.graph), wp.synchronize()),
        "tape": wp.synchronize,
    }
    with Ticker() as ticker:
        if wait == "tape":
            with wp.Tape() as tape:
                wp.launch(turn, dim=2, inputs=[x, rounds // 20])
            tape.backward(grads={x: wp.ones(2, dtype=float)})
        elif wait != "graph":
            wp.launch(turn, dim=2, inputs=[x, rounds], stream=stream if wait == "stream" else None)
        waits[wait]()
    # A thread that gets the lock only between two calls ticks a few times.
    assert ticker.ticks > 20 * ticker.took, (ticker.ticks, ticker.took)


def test_launches_on_one_array(device):
    x = wp.zeros(257, dtype=float)

    def work(k):
        for _ in range(100):
            wp.launch(add, dim=257, inputs=[x, 1.0], device=device)

    at_once(work)
    assert x.numpy().tolist() == [100.0 * THREADS] * 257


def test_launches_on_an_array_each(device):
    arrays = [wp.zeros(1000, dtype=float) for _ in range(THREADS)]

    def work(k):
        for _ in range(100):
            wp.launch(add, dim=1000, inputs=[arrays[k], float(k)], device=device)
        return arrays[k].numpy().copy()

    for k, numbers in enumerate(at_once(work)):
        assert numbers.tolist() == [100.0 * k] * 1000


def test_the_first_launch_of_a_kernel_on_several_threads(device):
    for _ in range(5):

        @wp.kernel
        def fresh(x: wp.array(dtype=float), s: float):
            i = wp.tid()
            v = x[i]
            if v < 10.0:
                v += wp.sqrt(s)
            x[i] = v * 2.0

        def work(k):
            x = wp.ones(16, dtype=float, device=device)
            wp.launch(fresh, dim=16, inputs=[x, 4.0], device=device)
            return x.numpy().tolist()

        assert at_once(work) == [[6.0] * 16] * THREADS


def test_a_generic_kernel_for_other_types_on_each_thread(device):
    from typing import Any

    @wp.func
    def doubled(v: Any):
        return v + v

    @wp.kernel
    def generic(x: wp.array(dtype=Any)):
        i = wp.tid()
        x[i] = doubled(x[i])

    kinds = [wp.float32, wp.float64, wp.int32, wp.vec3, wp.vec2d, wp.uint8]

    def work(k):
        x = wp.ones(4, dtype=kinds[k], device=device)
        wp.launch(generic, dim=4, inputs=[x], device=device)
        return np.unique(x.numpy()).tolist()

    assert at_once(work) == [[2]] * THREADS


def test_tapes_record_their_own_thread(device):
    def work(k):
        x = wp.full(8, float(k), dtype=float, device=device, requires_grad=True)
        y = wp.zeros(8, dtype=float, device=device, requires_grad=True)
        tape = wp.Tape()
        for _ in range(10):
            tape.zero()
            with tape:
                wp.launch(square, dim=8, inputs=[x, y], device=device)
            tape.backward(grads={y: wp.ones(8, dtype=float, device=device)})
            gradient = x.grad.numpy().tolist()
            tape.reset()
        return len(tape.launches), gradient

    assert at_once(work) == [(0, [2.0 * k] * 8) for k in range(THREADS)]


def test_a_tape_does_not_hear_of_another_thread(device):
    x = wp.zeros(8, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        at_once(lambda k: wp.launch(add, dim=8, inputs=[x, 1.0], device=device), count=2)
    assert len(tape.launches) == 0


def test_streams_of_a_thread_each(device):
    x = wp.zeros((THREADS, 100), dtype=float)

    def work(k):
        with wp.ScopedStream(wp.Stream(device), sync_exit=True):
            for _ in range(50):
                wp.launch(add, dim=100, inputs=[x[k], 1.0])

    at_once(work)
    wp.synchronize()
    assert np.all(x.numpy() == 50.0)


def test_captures_of_a_thread_each(device):
    arrays = [wp.zeros(10, dtype=float) for _ in range(THREADS)]

    def work(k):
        with wp.ScopedCapture(device) as capture:
            for _ in range(10):
                wp.launch(add, dim=10, inputs=[arrays[k], 1.0], device=device)
        for _ in range(k + 1):
            wp.capture_launch(capture.graph)

    at_once(work)
    assert [a.numpy()[9] for a in arrays] == [10.0 * (k + 1) for k in range(THREADS)]


def test_the_current_device_is_the_threads_own(cpu):
    with wp.ScopedDevice("reference"):
        names = at_once(lambda k: str(wp.get_device()), count=2)
        assert str(wp.get_device()) == "reference"
    assert "reference" not in names


def test_maps_and_functions_of_the_host_on_several_threads(device):
    x = wp.array(np.arange(100, dtype=np.float32), dtype=float)

    def work(k):
        y = wp.map(lambda v: v * 2.0 + 1.0, x)
        length = wp.length(wp.vec3(3.0, 4.0, float(k)))
        return y.numpy().tolist() == [2.0 * n + 1.0 for n in range(100)], length

    for k, (right, length) in enumerate(at_once(work)):
        assert right and length == pytest.approx(np.sqrt(25 + k * k))


def test_arrays_are_made_and_dropped_on_several_threads(device):
    def work(k):
        for n in range(200):
            x = wp.full(n + 1, k, dtype=int, device=device)
            view = x[n // 2 :]
            del x
            assert view.numpy()[-1] == k
        return True

    assert all(at_once(work))


def test_a_function_that_is_defined_again_while_others_launch(device):
    x = wp.zeros(4, dtype=float)

    @wp.func
    def shifted(v: float):
        return v + 1.0

    @wp.kernel
    def shift(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = shifted(0.0)

    def work(k):
        if k:
            for _ in range(50):
                wp.launch(shift, dim=4, inputs=[x], device=device)
            return
        for _ in range(10):
            shift.native = shift.fixed = None  # as when a cell of a notebook runs again
            time.sleep(0.001)

    at_once(work)
    assert x.numpy().tolist() == [1.0] * 4
