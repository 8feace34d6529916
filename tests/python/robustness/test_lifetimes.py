"""What holds what: arrays, views, devices, streams, graphs and tapes that end in any order."""

import gc
import weakref

import numpy as np

import weft as wp


@wp.kernel
def add(x: wp.array(dtype=float), s: float):
    wp.atomic_add(x, wp.tid(), s)


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def test_arrays_outlive_the_scope_of_their_device(device):
    with wp.ScopedDevice("reference"):
        x = wp.ones(4, dtype=float)
    wp.launch(add, dim=4, inputs=[x, 1.0], device="reference")
    assert str(x.device) == "reference" and x.numpy().tolist() == [2.0] * 4


def test_arrays_outlive_their_stream(device):
    stream = wp.Stream(device)
    with wp.ScopedStream(stream):
        x = wp.ones(1000, dtype=float)
        for _ in range(50):
            wp.launch(add, dim=1000, inputs=[x, 1.0])
    watched = weakref.ref(stream)
    del stream
    gc.collect()
    assert watched() is None
    assert x.numpy().tolist() == [51.0] * 1000


def test_views_outlive_what_they_are_of(device):
    x = wp.array(np.arange(12, dtype=np.float32).reshape(3, 4), dtype=float)
    views = [x[1], x[:, 1], x.transpose()[2], x.flatten()[5:], x.reshape((2, 6))[1]]
    numbers = x.numpy()
    del x
    gc.collect()
    wp.zeros(1000, dtype=float).fill_(7.0)
    assert [v.numpy().tolist() for v in views] == [
        [4, 5, 6, 7], [1, 5, 9], [2, 6, 10], [5, 6, 7, 8, 9, 10, 11], [6, 7, 8, 9, 10, 11]
    ]  # fmt: skip
    views.clear()
    gc.collect()
    assert numbers[2, 3] == 11.0


def test_weak_references_end_with_arrays(device):
    ended = []
    x = wp.ones(4, dtype=float, requires_grad=True)
    weakref.finalize(x, ended.append, "x")
    held = weakref.WeakValueDictionary(x=x)
    wp.launch(add, dim=4, inputs=[x, 1.0])
    assert held["x"] is x and not ended
    del x
    gc.collect()
    assert ended == ["x"] and not held


def test_weak_references_to_objects_of_every_kind(device):
    corners = wp.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=wp.vec3)
    x = wp.ones(4, dtype=float)
    with wp.ScopedCapture() as capture:
        wp.launch(add, dim=4, inputs=[x, 1.0])
    made = [
        wp.Tape(), wp.Stream(), wp.Event(), capture.graph, capture, wp.HashGrid(2, 2, 2), wp.Bvh(corners, corners),
        wp.Mesh(corners, wp.array([0, 1, 2], dtype=int)), wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0),
        wp.launch(add, dim=4, inputs=[x, 1.0], record_cmd=True), wp.indexedarray(x, [wp.array([0, 2], dtype=int)]),
    ]  # fmt: skip
    watched = [weakref.ref(thing) for thing in made]
    assert all(w() is not None for w in watched)
    del capture
    made.clear()
    gc.collect()
    assert [w for w in watched if w() is not None] == []


def test_a_tape_holds_what_it_needs(device):
    x = wp.full(4, 3.0, dtype=float, requires_grad=True)
    y, z = (wp.zeros(4, dtype=float, requires_grad=True) for _ in range(2))
    with wp.Tape() as tape:
        wp.launch(square, dim=4, inputs=[x, y])
        wp.launch(square, dim=4, inputs=[y, z])
    watched = weakref.ref(y)
    del y
    gc.collect()
    tape.backward(grads={z: wp.ones(4, dtype=float)})
    assert x.grad.numpy().tolist() == [4.0 * 27.0] * 4
    tape.reset()
    gc.collect()
    assert watched() is None


def test_a_graph_holds_the_memory_that_it_uses(device):
    x = wp.ones(4, dtype=float)
    total = wp.zeros(4, dtype=float)

    def captured():
        own = wp.full(4, 2.0, dtype=float)
        with wp.ScopedCapture() as capture:
            wp.launch(square, dim=4, inputs=[own, x])
            wp.launch(add, dim=4, inputs=[total, 1.0])
        return capture.graph

    graph = captured()
    gc.collect()
    fresh = [wp.full(4, 9.0, dtype=float) for _ in range(20)]
    wp.capture_launch(graph)
    assert x.numpy().tolist() == [4.0] * 4 and total.numpy().tolist() == [1.0] * 4
    assert all(f.numpy().tolist() == [9.0] * 4 for f in fresh)


def test_kernels_that_are_gone_have_done_their_work(device):
    x = wp.zeros(4, dtype=float)

    def launched():
        @wp.kernel
        def own(x: wp.array(dtype=float)):
            wp.atomic_add(x, wp.tid(), 1.0)

        wp.launch(own, dim=4, inputs=[x])
        with wp.ScopedCapture() as capture:
            wp.launch(own, dim=4, inputs=[x])
        return capture.graph

    graph = launched()
    gc.collect()
    wp.capture_launch(graph)
    assert x.numpy().tolist() == [2.0] * 4


def test_cycles_of_arrays_and_tapes_are_collected(device):
    def cycle():
        x = wp.ones(4, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(add, dim=4, inputs=[x, 1.0])
            tape.record_func(lambda: tape.zero(), [x])
        return weakref.ref(tape), weakref.ref(x)

    watched = [ref for _ in range(5) for ref in cycle()]
    gc.collect()
    assert [w for w in watched if w() is not None] == []
