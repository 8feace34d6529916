"""Tapes that record and go back inside a capture: the graph holds both, and the arrays are free for other work."""

import pytest

import weft as wp


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def add_up(y: wp.array(dtype=float), total: wp.array(dtype=float)):
    wp.atomic_add(total, 0, y[wp.tid()])


class Loss:
    """The sum of squares, with its gradient, in a graph."""

    def __init__(self):
        self.x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
        self.y = wp.zeros(3, dtype=float, requires_grad=True)
        self.total = wp.zeros(1, dtype=float, requires_grad=True)
        self.tape = wp.Tape()
        with wp.ScopedCapture() as capture:
            with self.tape:
                self.run()
            self.tape.backward(self.total)
        self.graph = capture.graph

    def run(self):
        wp.launch(square, dim=3, inputs=[self.x, self.y])
        wp.launch(add_up, dim=3, inputs=[self.y, self.total])


def test_the_same_arrays_are_changed_in_another_capture(device):
    loss = Loss()
    with wp.ScopedCapture() as forward:
        wp.launch(square, dim=3, inputs=[loss.x, loss.y])
    for k in range(3):
        first = 1.0 + k
        loss.x.assign([first, 2.0, 3.0])
        wp.capture_launch(loss.graph)
        assert loss.total.numpy()[0] == first * first + 13.0
        assert loss.x.grad.numpy().tolist() == [2.0 * first, 4.0, 6.0]
        assert loss.tape.gradients[loss.x].numpy().tolist() == [2.0 * first, 4.0, 6.0]
        loss.y.zero_()
        wp.capture_launch(forward.graph)
        assert loss.y.numpy().tolist() == [first * first, 4.0, 9.0]
        loss.tape.zero()
        loss.total.zero_()
        assert loss.x.grad.numpy().tolist() == [0.0] * 3
    assert len(loss.tape.launches) == 2


def test_such_a_tape_goes_back_outside_when_it_has_recorded_again(device):
    loss = Loss()
    with pytest.raises(RuntimeError, match="part of a graph"):
        loss.tape.backward(loss.total)
    loss.tape.reset()
    with loss.tape:
        loss.run()
    loss.tape.backward(loss.total)
    assert loss.x.grad.numpy().tolist() == [2.0, 4.0, 6.0]


def test_a_tape_goes_back_in_a_later_capture(device):
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with wp.ScopedCapture() as forward, tape:
        wp.launch(square, dim=3, inputs=[x, y])
    with wp.ScopedCapture() as back:
        tape.backward(grads={y: wp.ones(3, dtype=float)})
    for first in (1.0, 5.0):
        x.assign([first, 2.0, 3.0])
        x.grad.zero_()
        wp.capture_launch(forward.graph)
        wp.capture_launch(back.graph)
        assert x.grad.numpy().tolist() == [2.0 * first, 4.0, 6.0]
