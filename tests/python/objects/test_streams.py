"""Streams, events, and the scopes in which a thread's work goes to a stream."""

import threading

import numpy as np
import pytest

import weft as wp

COUNT = 1 << 12


@wp.kernel
def add_slowly(x: wp.array(dtype=float), rounds: int):
    i = wp.tid()
    total = float(0.0)
    for _ in range(rounds):
        total = wp.sin(total) * 0.0 + 1.0
    x[i] = x[i] + total


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


def test_a_launch_on_a_stream_computes_what_it_computes_elsewhere(device):
    stream = wp.Stream(device)
    x, y = wp.ones(COUNT, dtype=float), wp.zeros(COUNT, dtype=float)
    wp.launch(add_slowly, COUNT, [x, 10], stream=stream)
    wp.launch(double, COUNT, [x], [y], stream=stream)
    wp.synchronize_stream(stream)
    assert y.numpy().tolist() == [4.0] * COUNT
    assert stream.is_complete


def test_a_stream_waits_for_an_event_of_another(device):
    first, second = wp.Stream(device), wp.Stream(device)
    x, y = wp.zeros(COUNT, dtype=float), wp.zeros(COUNT, dtype=float)
    wp.synchronize_device(device)
    for _ in range(20):
        wp.launch(add_slowly, COUNT, [x, 100], stream=first)
    event = first.record_event()
    second.wait_event(event)
    wp.launch(double, COUNT, [x], [y], stream=second)
    wp.synchronize_stream(second)
    assert event.is_complete
    assert y.numpy().tolist() == [40.0] * COUNT


def test_a_stream_waits_for_all_work_of_another(device):
    first, second = wp.Stream(device), wp.Stream(device)
    x, y = wp.zeros(COUNT, dtype=float), wp.zeros(COUNT, dtype=float)
    wp.synchronize_device(device)
    with wp.ScopedStream(first):
        for _ in range(5):
            wp.launch(add_slowly, COUNT, [x, 100])
    with wp.ScopedStream(second, sync_enter=False):
        wp.wait_stream(first)
        wp.launch(double, COUNT, [x], [y])
    assert y.numpy().tolist() == [10.0] * COUNT


def test_the_current_stream_waits_for_an_event(device):
    stream = wp.Stream(device)
    x = wp.zeros(COUNT, dtype=float)
    wp.launch(add_slowly, COUNT, [x, 100], stream=stream)
    event = stream.record_event()
    wp.wait_event(event)
    wp.launch(add_slowly, COUNT, [x, 100])
    assert x.numpy().tolist() == [2.0] * COUNT and event.is_complete


def test_an_event_that_was_not_recorded_holds_nothing_up(device):
    event = wp.Event(device)
    assert event.is_complete
    wp.wait_event(event)
    wp.synchronize_event(event)
    with pytest.raises(RuntimeError, match="recorded, and made with enable_timing"):
        wp.get_event_elapsed_time(event, event)


def test_an_event_is_reached_when_the_work_before_it_is_done(device):
    x = wp.zeros(COUNT, dtype=float)
    given = wp.Event(device)
    wp.launch(add_slowly, COUNT, [x, 1000])
    event = wp.record_event(given)
    assert event is given
    wp.synchronize_event(event)
    assert event.is_complete
    assert wp.record_event() is not given


def test_the_time_between_events_is_that_of_the_work_between_them(device):
    start, end = wp.Event(device, enable_timing=True), wp.Event(device, enable_timing=True)
    x = wp.zeros(COUNT, dtype=float)
    wp.launch(add_slowly, COUNT, [x, 1])  # compiles
    times = []
    for rounds in (10, 2000):
        wp.record_event(start)
        wp.launch(add_slowly, COUNT, [x, rounds])
        wp.record_event(end)
        times.append(wp.get_event_elapsed_time(start, end))
    assert 0.0 < times[0] < times[1]


def test_a_scoped_stream_is_current_inside_and_the_one_before_after_it(device):
    before, stream, inner = wp.get_stream(device), wp.Stream(device), wp.Stream(device)
    with wp.ScopedStream(stream) as scoped:
        assert scoped is stream and wp.get_stream(device) == stream == device.stream
        with wp.ScopedStream(inner):
            assert wp.get_stream(device) == inner
        assert wp.get_stream(device) == stream
        with wp.ScopedStream(None) as none:
            assert none is None and wp.get_stream(device) == stream
    assert wp.get_stream(device) == before


def test_a_scoped_stream_ends_what_was_set_inside_it(device):
    before, stream, other = wp.get_stream(device), wp.Stream(device), wp.Stream(device)
    with wp.ScopedStream(stream):
        wp.set_stream(other, device)
    assert wp.get_stream(device) == before
    x = wp.zeros(COUNT, dtype=float)
    wp.launch(add_slowly, COUNT, [x, 100])
    event = before.record_event()
    wp.synchronize_event(event)
    assert device.native.stream() == before.native
    assert x.numpy().tolist() == [1.0] * COUNT


def test_a_scoped_stream_ends_when_its_block_raises(device):
    before = wp.get_stream(device)
    with pytest.raises(ZeroDivisionError), wp.ScopedStream(wp.Stream(device)):
        raise ZeroDivisionError
    assert wp.get_stream(device) == before


def test_a_scoped_stream_makes_its_device_the_current_one():
    devices = [d for d in ("cpu", "reference") if d == "reference" or wp.is_cpu_available()]
    for name in devices:
        with wp.ScopedDevice("reference"), wp.ScopedStream(wp.Stream(name)):
            assert wp.get_device() == name
            assert wp.zeros(1, dtype=float).device == name


def test_streams_are_those_of_one_thread(device):
    stream, seen = wp.Stream(device), []
    with wp.ScopedStream(stream):
        thread = threading.Thread(target=lambda: seen.append(wp.get_stream(device)))
        thread.start()
        thread.join()
        assert seen != [stream]


def test_a_device_has_its_stream_set(device):
    before, stream = device.stream, wp.Stream(device)
    device.set_stream(stream)
    try:
        assert device.stream == stream == wp.get_stream(device)
        device.stream = before
        assert wp.get_stream(device) == before
    finally:
        wp.set_stream(before, device)
    other = "reference" if device == "cpu" else "cpu"
    if other == "reference" or wp.is_cpu_available():
        with pytest.raises(RuntimeError, match="the stream is of device"):
            device.set_stream(wp.Stream(other))


def test_a_stream_of_high_priority_computes_the_same(device):
    stream = wp.Stream(device, priority=-1)
    x = wp.zeros(COUNT, dtype=float)
    wp.launch(add_slowly, COUNT, [x, 10], stream=stream)
    assert x.numpy().tolist() == [1.0] * COUNT
    assert stream.priority == -1 and not stream.is_blocking
    assert stream.cached_event is stream.cached_event


def test_a_stream_has_no_handle_of_cudas(device):
    with pytest.raises(AttributeError, match="no handles of CUDA's"):
        wp.Stream(device).cuda_stream
    with pytest.raises(AttributeError, match="nothing is shared between processes"):
        wp.Event(device).ipc_handle()
    assert not hasattr(wp.Stream(device), "__cuda_stream__")


def test_work_on_a_stream_is_on_the_tape_of_its_thread(device):
    stream = wp.Stream(device)
    x = wp.array(np.arange(4.0), dtype=float, requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    with wp.Tape() as tape, wp.ScopedStream(stream):
        wp.launch(double, 4, [x], [y])
    tape.backward(grads={y: np.array([1.0, 2.0, 3.0, 4.0], np.float32)})
    assert x.grad.numpy().tolist() == [2.0, 4.0, 6.0, 8.0]
