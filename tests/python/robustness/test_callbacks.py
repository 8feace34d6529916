"""Functions of Python's that the library calls, and that raise: the exception comes to the caller, and all goes on."""

import numpy as np
import pytest

import weft as wp


class Mine(Exception):
    """What the callbacks here raise."""


def raises(*_, **__):
    raise Mine("on purpose")


@wp.kernel
def add(x: wp.array(dtype=float), s: float):
    wp.atomic_add(x, wp.tid(), s)


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


def check_all_goes_on(device):
    """Launches, records and captures."""
    x = wp.full(4, 3.0, dtype=float, device=device, requires_grad=True)
    y = wp.zeros(4, dtype=float, device=device, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=4, inputs=[x, y], device=device)
    tape.backward(grads={y: wp.ones(4, dtype=float, device=device)})
    assert y.numpy().tolist() == [9.0] * 4 and x.grad.numpy().tolist() == [6.0] * 4
    with wp.ScopedCapture(device) as capture:
        wp.launch(add, dim=4, inputs=[y, 1.0], device=device)
    wp.capture_launch(capture.graph)
    assert y.numpy().tolist() == [10.0] * 4


def test_a_recorded_function_raises_on_the_way_back(device):
    x = wp.full(4, 3.0, dtype=float, requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    calls = []

    def backward():
        calls.append(1)
        if len(calls) == 1:
            raises()

    with wp.Tape() as tape:
        wp.launch(square, dim=4, inputs=[x, y])
        tape.record_func(backward, [y])
    seed = wp.ones(4, dtype=float)
    with pytest.raises(Mine, match="on purpose"):
        tape.backward(grads={y: seed})
    tape.zero()
    tape.backward(grads={y: seed})
    assert len(calls) == 2 and x.grad.numpy().tolist() == [6.0] * 4
    check_all_goes_on(device)


def test_a_gradient_of_another_library_raises_where_it_is_made(device):
    x = wp.ones(4, dtype=float)
    x.gradient_source = raises
    y = wp.zeros(4, dtype=float, requires_grad=True)
    with pytest.raises(Mine), wp.Tape() as tape:
        wp.launch(square, dim=4, inputs=[x, y])
        tape.backward(grads={y: wp.ones(4, dtype=float)})
    check_all_goes_on(device)


@pytest.mark.parametrize("function", [wp.capture_if, wp.capture_while])
def test_the_work_of_a_condition_raises(device, function):
    flag = wp.ones(1, dtype=int)
    with pytest.raises(Mine):
        function(flag, raises)
    more = {"limit": 3} if function is wp.capture_while else {}
    with pytest.raises(Mine), wp.ScopedCapture() as capture:
        function(flag, raises, **more)
    assert capture.graph is None
    check_all_goes_on(device)


def test_a_capture_is_no_graph_after_its_condition_raised(device):
    x, flag = wp.zeros(4, dtype=float), wp.ones(1, dtype=int)
    with pytest.raises(wp.Error, match="only a part of it was captured"), wp.ScopedCapture():
        wp.launch(add, dim=4, inputs=[x, 1.0])
        with pytest.raises(Mine):
            wp.capture_if(flag, raises)
        wp.launch(add, dim=4, inputs=[x, 1.0])
    assert x.numpy().tolist() == [0.0] * 4
    check_all_goes_on(device)


def test_a_function_of_map_raises_while_it_is_traced(device):
    x = wp.ones(4, dtype=float)

    def function(v):
        return v + wp.static(raises())

    for _ in range(2):
        with pytest.raises(Exception, match="on purpose"):
            wp.map(function, x)
    assert wp.map(wp.sin, x).numpy().shape == (4,)
    check_all_goes_on(device)


def test_a_static_expression_raises_and_then_does_not(device):
    numbers = iter([None, None, 2.0])  # where the kernel is defined, and at its two launches

    def number():
        found = next(numbers)
        return raises() if found is None else found

    @wp.kernel
    def scaled(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] * wp.static(number())

    x = wp.ones(4, dtype=float)
    with pytest.raises(Exception, match="on purpose"):
        wp.launch(scaled, dim=4, inputs=[x])
    wp.launch(scaled, dim=4, inputs=[x])
    assert x.numpy().tolist() == [2.0] * 4


def test_keyboard_interrupts_while_a_kernel_is_traced(device):
    pending = [Mine, KeyboardInterrupt, None]  # where the kernel is defined, and at its two launches

    def number():
        error = pending.pop(0)
        if error is not None:
            raise error
        return 3.0

    @wp.kernel
    def scaled(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] * wp.static(number())

    x = wp.ones(4, dtype=float)
    with pytest.raises(KeyboardInterrupt):
        wp.launch(scaled, dim=4, inputs=[x])
    wp.launch(scaled, dim=4, inputs=[x])
    assert x.numpy().tolist() == [3.0] * 4


def test_an_argument_raises_when_it_is_asked_for_its_memory(device):
    class Hostile:
        shape, ndim, dtype = (4,), 1, np.dtype(np.float32)

        @property
        def __array_interface__(self):
            raises()

        @property
        def __dlpack__(self):
            raises()

    with pytest.raises((Mine, RuntimeError, TypeError)):
        wp.launch(add, dim=4, inputs=[Hostile(), 1.0])
    check_all_goes_on(device)


def test_a_sequence_of_arguments_raises(device):
    class Hostile:
        def __len__(self):
            return 2

        def __getitem__(self, k):
            raises()

    for place in ("inputs", "outputs"):
        with pytest.raises((Mine, TypeError)):
            wp.launch(add, dim=4, **{place: Hostile()})
    with pytest.raises(Mine):
        wp.launch(add, dim=Hostile(), inputs=[wp.zeros(4, dtype=float), 1.0])
    check_all_goes_on(device)


def test_the_output_raises_when_a_kernel_prints(device, monkeypatch):
    import sys

    @wp.kernel
    def said(x: wp.array(dtype=float)):
        print(x[wp.tid()])

    class Closed:
        write = flush = staticmethod(raises)

    x = wp.ones(2, dtype=float)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", Closed())
        with pytest.raises(Mine):
            wp.launch(said, dim=2, inputs=[x])
            wp.synchronize()
    check_all_goes_on(device)


def test_a_deleter_is_called_once(device):
    numbers = np.ones(4, dtype=np.float32)
    if not wp.get_device().native.wraps_host:
        pytest.skip("the device does not share the host's memory")
    found = []

    def deleter(ptr, size):
        found.append((ptr, size))

    x = wp.array(ptr=numbers.ctypes.data, dtype=float, shape=4, deleter=deleter)
    x.numpy()
    del x
    wp.synchronize()
    wp.zeros(1)
    assert found == [(numbers.ctypes.data, 16)]


INTERRUPTED = """
import signal

x = wp.ones(2, dtype=float)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.perf_counter()
try:
    while time.perf_counter() - begin < 60:
        wp.launch(turn, dim=2, inputs=[x, 1000000])
        {wait}
    print("never interrupted")
except KeyboardInterrupt:
    print("interrupted")
wp.launch(add, dim=2, inputs=[x, 1.0])
print(np.isfinite(x.numpy()).all())
"""


@pytest.mark.parametrize("wait", ["wp.synchronize()", "x.numpy()", "wp.synchronize_stream()", "wp.clone(x).list()"])
def test_keyboard_interrupts_during_a_wait(run, device, wait):
    assert run(INTERRUPTED.format(wait=wait), device) == "interrupted\nTrue\n"


def test_keyboard_interrupts_between_many_launches(run, device):
    text = """
    import signal

    x = wp.zeros(100, dtype=float)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    count = 0
    try:
        while True:
            wp.launch(add, dim=100, inputs=[x, 1.0])
            count += 1
    except KeyboardInterrupt:
        pass
    done = x.numpy()
    print(len(set(done.tolist())) == 1, 0 <= done[0] - count <= 1)
    """
    assert run(text, device) == "True True\n"


def test_callbacks_of_jax_raise(cpu):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    fails = [True]

    def function(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        if fails[0]:
            raises()
        wp.launch(square, dim=a.shape, inputs=[a, b], device="cpu")

    called = wp.jax_callable(function)
    x = jnp.arange(4, dtype=jnp.float32)
    with pytest.raises(Exception, match="on purpose"):
        jax.block_until_ready(jax.jit(called)(x))
    fails[0] = False
    assert jax.jit(called)(x)[0].tolist() == [0.0, 1.0, 4.0, 9.0]
    check_all_goes_on("cpu")


def test_an_ffi_callback_of_jax_raises(cpu):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    fails = [True]

    def function(inputs, outputs, attrs, ctx):
        if fails[0]:
            raises()
        outputs[0][:] = inputs[0] + 1.0

    wp.register_ffi_callback("weft_tests_raising", function)
    x = jnp.zeros(4, dtype=jnp.float32)
    call = jax.jit(jax.ffi.ffi_call("weft_tests_raising", jax.ShapeDtypeStruct(x.shape, x.dtype), has_side_effect=True))
    with pytest.raises(Exception, match="on purpose"):
        jax.block_until_ready(call(x))
    fails[0] = False
    assert call(x).tolist() == [1.0] * 4
