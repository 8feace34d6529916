"""What a tape records, how it goes back, and how it is drawn."""

import numpy as np
import pytest

import weft as wp


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def product(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = x[i] * y[i]


@wp.kernel
def total(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, x[wp.tid()])


@wp.struct
class Pair:
    x: wp.array(dtype=float)
    y: wp.array(dtype=float)
    factor: float


@wp.kernel
def product_of(pair: Pair, z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = pair.factor * pair.x[i] * pair.y[i]


def real(*numbers):
    return wp.array(numbers, dtype=float, requires_grad=True)


# ---- Going back from what gradients hold


def test_backward_from_gradients_adds_what_comes_from_all_of_them(device):
    x, a, b = real(1.0, 2.0), real(0.0, 0.0), real(0.0, 0.0)
    tape = wp.Tape()
    with tape:
        wp.launch(double, 2, [x], [a])
        wp.launch(product, 2, [x, a], [b])  # 2 x^2
    a.grad.assign([1.0, 10.0])
    b.grad.assign([100.0, 1000.0])
    tape.backward()
    # d/dx of a is 2, of b is 4 x.
    assert not a.grad.numpy().any() and not b.grad.numpy().any()  # nothing comes from what they held before
    assert x.grad.numpy().tolist() == [2.0 + 400.0, 20.0 + 8000.0]


def test_backward_from_gradients_calls_recorded_functions_once(device):
    x, a, b = real(1.0, 2.0), real(0.0, 0.0), real(0.0, 0.0)
    calls = []
    tape = wp.Tape()
    with tape:
        wp.launch(double, 2, [x], [a])
        tape.record_func(lambda: calls.append(None), [])
        wp.launch(double, 2, [x], [b])
    a.grad.fill_(1.0)
    b.grad.fill_(1.0)
    tape.backward()
    assert len(calls) == 1
    assert x.grad.numpy().tolist() == [4.0, 4.0]


def test_gradients_of_an_array_and_its_parts_count_once(device):
    x, y = real(1.0, 2.0), real(0.0, 0.0)
    tape = wp.Tape()
    with tape:
        wp.launch(double, 2, [x], [y])
        wp.launch(double, 1, [x[1:]], [y[1:]])
    y.grad.assign([1.0, 10.0])
    tape.backward()
    assert x.grad.numpy().tolist() == [2.0, 20.0]


def test_gradients_of_inputs_are_no_beginnings(device):
    x, y = real(1.0, 2.0), real(0.0, 0.0)
    x.grad.fill_(5.0)
    y.grad.fill_(1.0)
    tape = wp.Tape()
    with tape:
        wp.launch(double, 2, [x], [y])
    tape.backward()
    assert x.grad.numpy().tolist() == [7.0, 7.0]


def test_backward_of_a_tape_on_which_nothing_is_computed_does_nothing(device):
    x = real(1.0)
    tape = wp.Tape()
    tape.backward()
    with tape:
        wp.clone(x)
    wp.Tape().backward()
    assert x.grad.numpy().tolist() == [0.0]


# ---- Functions and launches in the record


def test_a_recorded_function_moves_gradients_between_arrays(device):
    x, y, loss = real(1.0, 2.0, 3.0), real(0.0, 0.0, 0.0), real(0.0)
    tape = wp.Tape()
    with tape:
        y.assign(np.exp(x.numpy()).astype(np.float32))  # work that the tape does not see

        def back():
            x.grad.assign(x.grad.numpy() + y.grad.numpy() * np.exp(x.numpy()))
            y.grad.zero_()

        tape.record_func(back, [x, y])
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    assert np.allclose(x.grad.numpy(), np.exp([1.0, 2.0, 3.0]), rtol=1e-6)


def test_a_recorded_function_works_on_gradients_that_a_program_has_set(device):
    x, y, loss = real(1.0, 2.0, 3.0), real(0.0, 0.0, 0.0), real(0.0)
    given_x, given_y = wp.full(3, 10.0, dtype=float), wp.full(3, 20.0, dtype=float)
    x.grad, y.grad = given_x, given_y
    tape = wp.Tape()
    with tape:

        def back():
            wp.launch(double, 3, [y.grad], [x.grad])  # y is twice x
            y.grad.zero_()

        tape.record_func(back, [x, y, y[:2], x])
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    assert given_x.numpy().tolist() == [12.0] * 3
    assert given_y.numpy().tolist() == [20.0] * 3


def test_a_recorded_function_sees_the_values_of_its_place(device):
    x, y, loss = real(3.0), real(0.0), real(0.0)
    seen = []
    tape = wp.Tape()
    with tape:
        wp.launch(double, 1, [x], [y])
        tape.record_func(lambda: seen.append(float(y.numpy()[0])), [y])
        wp.launch(product, 1, [y, y], [y])
        wp.launch(total, 1, [y], [loss])
    tape.backward(loss)
    assert seen == [6.0] and y.numpy().tolist() == [36.0]
    assert x.grad.numpy().tolist() == [24.0]  # of 4 x^2


def test_functions_are_recorded_outside_the_block_too(device):
    x, loss = real(1.0, 2.0), real(0.0)
    called = []
    tape = wp.Tape()
    with tape:
        wp.launch(total, 2, [x], [loss])
    tape.record_func(lambda: called.append(loss.grad.numpy().tolist()), [loss])
    tape.backward(loss)
    assert called == [[1.0]] and x.grad.numpy().tolist() == [1.0, 1.0]


def test_an_error_of_a_recorded_function_is_that_of_backward(device):
    x, loss = real(1.0), real(0.0)
    tape = wp.Tape()
    with tape:
        tape.record_func(lambda: 1 // 0, [x])
        wp.launch(total, 1, [x], [loss])
    with pytest.raises(ZeroDivisionError):
        tape.backward(loss)


def test_a_launch_outside_the_tape_goes_back_where_it_was_recorded(device):
    x, y, loss = real(3.0, 4.0), real(0.0, 0.0), real(0.0)
    wp.launch(product, 2, [x, x], [y])
    tape = wp.Tape()
    tape.record_launch(product, 2, 0, [x, x], [y], device)
    with tape:
        wp.launch(total, 2, [y], [loss])
    tape.backward(loss)
    assert x.grad.numpy().tolist() == [6.0, 8.0] and not y.grad.numpy().any()


def test_a_launch_outside_the_tape_goes_back_to_what_it_adds_to_and_to_structs(device):
    pair, loss = Pair(real(1.0, 2.0), real(3.0, 4.0), 2.0), real(0.0)
    z = real(0.0, 0.0)
    z.grad = wp.full(2, 5.0, dtype=float)
    tape = wp.Tape()
    tape.record_launch(product_of, 2, 0, [pair], [z], device)
    tape.record_launch(total, 2, 0, [z], [loss], device, metadata={"a": 1})
    loss.grad.fill_(1.0)
    tape.backward()
    assert pair.x.grad.numpy().tolist() == [36.0, 48.0] and pair.y.grad.numpy().tolist() == [12.0, 24.0]
    assert loss.grad.numpy().tolist() == [1.0]  # to which the launch adds
    assert [launch[7] for launch in tape.launches] == [{}, {"a": 1}]


def test_a_tape_lists_launches_and_functions(device):
    x, y = real(1.0, 2.0), real(0.0, 0.0)
    tape = wp.Tape()

    def back():
        pass

    with tape:
        wp.launch(double, 2, [x], [y], block_dim=64)
        tape.record_func(back, [y])
        wp.launch(double, dim=2, inputs=[x, y])
        wp.launch(double, 2, [x], [y], record_tape=False)
    first, function, second = tape.launches
    assert first[:7] == [double, 2, 0, [x], [y], device, 64]
    caller = first[7]["caller"]
    assert caller["file"] == __file__ and caller["func"] == "test_a_tape_lists_launches_and_functions"
    assert second[7]["caller"]["lineno"] == caller["lineno"] + 2
    assert function is back and second[3:5] == [[x, y], []]
    tape.reset()
    assert tape.launches == []


def test_arrays_in_structs_are_arrays_of_the_tape(device):
    pair = Pair(real(1.0, 2.0), real(3.0, 4.0), 2.0)
    pair.x.grad = wp.array([10.0, 10.0], dtype=float)
    z = real(0.0, 0.0)
    tape = wp.Tape()
    with tape:
        wp.launch(product_of, 2, [pair], [z])
    tape.backward(grads={z: np.ones(2, np.float32)})
    assert pair.x.grad.numpy().tolist() == [16.0, 18.0] and pair.y.grad.numpy().tolist() == [2.0, 4.0]
    assert tape.gradients[pair].x.numpy().tolist() == [16.0, 18.0]
    tape.zero()
    assert not pair.x.grad.numpy().any() and not pair.y.grad.numpy().any()


def test_the_adjoint_of_an_argument_is_its_gradient_or_a_struct_of_gradients(device):
    pair, plain = Pair(real(1.0, 2.0), wp.zeros(2, dtype=float), 2.0), wp.zeros(2, dtype=float)
    tape = wp.Tape()
    assert tape.get_adjoint(pair.x) is pair.x.grad
    assert tape.get_adjoint(plain) is None and tape.get_adjoint(3.0) is None
    made = tape.get_adjoint(pair)
    assert made.x is pair.x.grad and made.y is None and made.factor == 2.0
    pair.x.grad.fill_(1.0)
    tape.zero()
    assert pair.x.grad.numpy().tolist() == [0.0, 0.0]


def test_adjoint_launches_take_structs_of_gradients(device):
    pair = Pair(real(1.0, 2.0), real(3.0, 4.0), 2.0)
    gradients = Pair(wp.zeros(2, dtype=float), wp.zeros(2, dtype=float), 0.0)
    z = wp.zeros(2, dtype=float)
    wp.launch(
        product_of,
        2,
        [pair],
        [z],
        adj_inputs=[gradients],
        adj_outputs=[wp.array([1.0, 10.0], dtype=float)],
        adjoint=True,
    )
    assert gradients.x.numpy().tolist() == [6.0, 80.0] and gradients.y.numpy().tolist() == [2.0, 40.0]
    assert not pair.x.grad.numpy().any()


# ---- Scopes and drawings


def test_scopes_are_marked_in_the_record():
    tape = wp.Tape()
    tape.record_scope_begin("outer")
    tape.record_scope_begin("inner", {"a": 1})
    x = real(1.0)
    with tape:
        wp.launch(double, 1, [x], [x])
    tape.record_scope_end()
    tape.record_scope_begin("empty")
    tape.record_scope_end()
    tape.record_scope_end()
    assert tape.scopes == [(0, "outer", {}), (0, "inner", {"a": 1}), (1, None, None), (1, None, None)]
    with pytest.raises(RuntimeError, match="scope not present"):
        tape.record_scope_end()


def edges_of(text):
    """The edges of a drawing."""
    return {line.strip().split(" [")[0].rstrip(";") for line in text.splitlines() if "->" in line}


def nodes_of(text):
    """The names of the arrays in a drawing, by label."""
    lines = [line.strip() for line in text.splitlines() if "shape=ellipse" in line]
    return {line.split('label="')[1].split('"')[0]: line.split(" ")[0] for line in lines}


def test_a_drawing_has_launches_arrays_and_the_edges_between_them(cpu, tmp_path):
    x, y, loss = real(1.0, 2.0), real(0.0, 0.0), real(0.0)
    tape = wp.Tape()
    with tape:
        tape.record_scope_begin("first part")
        wp.launch(double, 2, [x], [y])
        tape.record_scope_end()
        wp.launch(total, 2, [y], [loss])
    text = tape.visualize(tmp_path / "tape.dot", array_labels={x: 'the "input"'})
    assert (tmp_path / "tape.dot").read_text() == text
    assert text.startswith("digraph") and text.count("{") == text.count("}") == 2
    assert "<b>first part</b>" in text and text.count("<b>double</b>") == text.count("<b>total</b>") == 1
    lines = [line.strip() for line in text.splitlines()]
    assert any(line.startswith(r'array_cpu') and r'label="the \"input\""' in line for line in lines)
    named = nodes_of(text)
    of_x = next(line.split(" ")[0] for line in lines if "the " in line and "ellipse" in line)
    assert set(named) >= {"y", "loss"}  # the longest of the parameters' names
    assert edges_of(text) == {
        f"{of_x} -> kernel0:in_0",
        f"kernel0:out_0 -> {named['y']}",
        f"{named['y']} -> kernel1:in_0",
        f"kernel1:out_0 -> {named['loss']}",
    }
    assert "rankdir=LR" in text and "rankdir=TB" in tape.visualize(graph_direction="TB")
    assert "first part" not in tape.visualize(ignore_graph_scopes=True)


def test_launches_that_repeat_each_other_are_drawn_once(cpu):
    tape = wp.Tape()
    x = state = real(1.0, 2.0)
    with tape:
        tape.record_scope_begin("steps")
        for _ in range(7):
            half, following = real(0.0, 0.0), real(0.0, 0.0)
            wp.launch(double, 2, [state], [half])
            wp.launch(product, 2, [half, x], [following])
            state = following
        tape.record_scope_end()
        loss = real(0.0)
        wp.launch(total, 2, [state], [loss])
    text = tape.visualize()
    assert "steps (repeated 7x)" in text
    assert text.count("<b>double</b>") == text.count("<b>product</b>") == text.count("<b>total</b>") == 1
    assert text.count("ellipse") == 4  # x, half, following, loss
    around = [line for line in text.splitlines() if "constraint=false" in line]
    assert len(around) == 1  # what a step gives the next one
    full = tape.visualize(simplify_graph=False)
    assert full.count("<b>double</b>") == 7 and full.count("ellipse") == 1 + 2 * 7 + 1 and "repeated" not in full


def test_repetitions_inside_repetitions_are_found(cpu):
    x = real(1.0)
    tape = wp.Tape()
    with tape:
        for _ in range(3):
            for _ in range(2):
                wp.launch(double, 1, [x], [x])
            wp.launch(product, 1, [x, x], [x])
    text = tape.visualize()
    assert text.count("repeated 3x") == text.count("repeated 2x") == 1
    assert text.count("<b>double</b>") == text.count("<b>product</b>") == 1


def test_arrays_that_no_launch_writes_can_be_left_out_of_a_drawing(cpu):
    x, y = real(1.0, 2.0), real(0.0, 0.0)
    tape = wp.Tape()
    with tape:
        wp.launch(double, 2, [x], [y])
    assert set(nodes_of(tape.visualize())) == {"x", "y"}
    assert set(nodes_of(tape.visualize(hide_readonly_arrays=True))) == {"y"}
    tracked = tape.visualize(hide_readonly_arrays=True, track_inputs=[x], track_input_names=["start"])
    assert set(nodes_of(tracked)) == {"start", "y"}
    assert set(nodes_of(tape.visualize(track_inputs=[x], track_outputs=[y]))) == {"input_0", "output_0"}


def test_names_of_drawn_arrays_are_the_longest_or_the_last(cpu):
    x = real(1.0, 2.0)
    tape = wp.Tape()
    with tape:
        wp.launch(total, 2, [real(1.0, 1.0)], [x])  # its name there is loss
        wp.launch(double, 2, [x], [real(0.0, 0.0)])
    assert "loss" in nodes_of(tape.visualize())
    assert "loss" not in nodes_of(tape.visualize(choose_longest_node_name=False))


def test_arrays_in_structs_are_drawn_with_the_names_of_their_fields(cpu):
    pair, z = Pair(real(1.0, 2.0), real(3.0, 4.0), 2.0), real(0.0, 0.0)
    tape = wp.Tape()
    with tape:
        wp.launch(product_of, 2, [pair], [z])
    text = tape.visualize()
    assert set(nodes_of(text)) == {"pair.x", "pair.y", "z"}
    assert len([e for e in edges_of(text) if e.endswith("kernel0:in_0")]) == 2


def test_arrays_behind_indices_are_drawn(cpu):
    @wp.kernel
    def gather(x: wp.indexedarray(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i]

    tape = wp.Tape()
    with tape:
        wp.launch(gather, 2, [wp.indexedarray(real(1.0, 2.0, 3.0), [wp.array([0, 2], dtype=int)])], [real(0.0, 0.0)])
    assert set(nodes_of(tape.visualize())) == {"x", "y"}


def test_the_longest_sequence_that_repeats_is_found():
    from weft.runtime.drawing import repetitions

    def plainly(keys, start):
        best = (1, 1)
        for length in range(1, (len(keys) - start) // 2 + 1):
            count = 1
            while keys[start + count * length : start + (count + 1) * length] == keys[start : start + length]:
                count += 1
            if count > 1 and count * length > best[0] * best[1]:
                best = (length, count)
        return best

    random = np.random.default_rng(3)
    for size in (0, 1, 2, 5, 40):
        for kinds in (1, 2, 3):
            keys = random.integers(kinds, size=size).tolist()
            assert list(zip(*repetitions(keys))) == [plainly(keys, k) for k in range(size)]
