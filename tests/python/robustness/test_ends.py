"""Processes that end while things of the package are alive: with the code that they say, and without a word."""

import pytest

ALIVE = """
x = wp.ones(1000, dtype=float, requires_grad=True)
view, shared = x[10:20], x.numpy()
stream, event = wp.Stream(), wp.Event()
with wp.ScopedStream(stream):
    wp.launch(add, dim=1000, inputs=[x, 1.0])
    wp.record_event(event)
with wp.ScopedCapture() as capture:
    wp.launch(add, dim=1000, inputs=[x, 1.0])
with wp.Tape() as tape:
    wp.launch(add, dim=1000, inputs=[x, 1.0])
    tape.record_func(lambda: None, [x])
launch = wp.launch(add, dim=1000, inputs=[x, 1.0], record_cmd=True)
corners = wp.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=wp.vec3)
mesh = wp.Mesh(corners, wp.array([0, 1, 2], dtype=int))
bvh, grid = wp.Bvh(corners, corners), wp.HashGrid(4, 4, 4)
grid.build(corners, 1.0)
volume = wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0)
mapped = wp.map(wp.sin, x)
held = [x, view, shared, stream, event, capture, tape, launch, mesh, bvh, grid, volume, mapped]
held.append(held)
"""


def test_with_everything_alive(run, device):
    assert run(ALIVE + "wp.capture_launch(capture.graph)\n", device) == ""


@pytest.mark.parametrize("scope", ["wp.Tape().__enter__()", "wp.ScopedStream(stream).__enter__()", "wp.capture_begin()"])
def test_inside_a_scope(run, device, scope):
    text = f"other = wp.zeros(1000, dtype=float)\n{scope}\nwp.launch(add, dim=1000, inputs=[other, 1.0])\n"
    assert run(ALIVE + text, device) == ""


@pytest.mark.parametrize("scope", ["wp.Tape()", "wp.ScopedCapture()"])
def test_by_sys_exit_inside_a_scope(run, device, scope):
    assert run(ALIVE + f"with {scope}:\n    sys.exit(5)\n", device, code=5) == ""


def test_by_an_exception_in_a_capture(run, device):
    text = ALIVE + "with wp.ScopedCapture():\n    raise KeyError('mine')\n"
    assert run(text, device, code=1, said="KeyError: 'mine'") == ""


def test_in_a_module_whose_objects_end_last(run, device):
    text = """
    import atexit
    import types

    module = sys.modules["kept"] = types.ModuleType("kept")
    module.x = wp.ones(100, dtype=float)
    module.tape = wp.Tape()
    atexit.register(lambda: wp.launch(add, dim=100, inputs=[module.x, 1.0]))
    atexit.register(lambda: print(module.x.numpy()[0]))


    class Last:
        def __init__(self):
            self.x = module.x

        def __del__(self):
            self.x.numpy()
            wp_launch(add_, dim=100, inputs=[self.x, 1.0])


    module.last = Last()
    wp_launch, add_ = wp.launch, add
    """
    assert run(text, device) == "1.0\n"


def test_with_a_daemon_thread_that_launches(run, device):
    text = """
    def work():
        x = wp.zeros(1000, dtype=float)
        while True:
            wp.launch(turn, dim=1000, inputs=[x, 50])
            x.numpy()


    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    """
    for _ in range(3):
        assert run(text, device) == ""


def test_with_a_thread_that_still_works(run, device):
    text = """
    def work():
        x = wp.zeros(8, dtype=float)
        time.sleep(0.3)
        for _ in range(100):
            wp.launch(add, dim=8, inputs=[x, 1.0])
        print(x.numpy()[0])


    threading.Thread(target=work).start()
    """
    assert run(text, device) == "100.0\n"


@pytest.mark.parametrize("fails", [False, True])
def test_what_kernels_printed_is_shown_at_the_end(run, device, fails):
    text = f"""
    wp.config.mode = "debug"


    @wp.kernel
    def said(x: wp.array(dtype=float)):
        v = x[wp.tid()]
        wp.printf("v = %g\\n", v)
        assert v > {2.0 if fails else 0.0}


    wp.launch(said, dim=1, inputs=[wp.ones(1, dtype=float)])
    """
    assert run(text, device, said="an assertion failed: v > 2.0" if fails else "") == "v = 1\n"
