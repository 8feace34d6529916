"""Processes that fork after and before they use the package: the child gets an error, or works, and never hangs."""

import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="there are no forks here")

WATCHED = """
import signal


def in_child(work):
    '''What the work raises in a child of a fork, as its code: 0 nothing, 1 an error of the package, 9 after ten seconds.'''
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            work()
        except wp.Error as error:
            os._exit(1 if error.kind == "device lost" else 2)
        except BaseException:
            os._exit(3)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else os.WTERMSIG(status)


"""

EVERYTHING = """
x = wp.ones(8, dtype=float)
wp.launch(add, dim=8, inputs=[x, 1.0])
wp.synchronize()
y = wp.ones(8, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(add, dim=8, inputs=[y, 1.0])
with wp.ScopedCapture() as capture:
    wp.launch(add, dim=8, inputs=[x, 1.0])
stream, event = wp.Stream(), wp.record_event()
new = []

works = {
    "launch": lambda: wp.launch(add, dim=8, inputs=[x, 1.0]),
    "make": lambda: wp.zeros(8, dtype=float),
    "wait": wp.synchronize,
    "fill": lambda: x.fill_(2.0),
    "copy": lambda: wp.clone(x),
    "graph": lambda: wp.capture_launch(capture.graph),
    "gradient": lambda: tape.backward(grads={y: x}),
    "stream": lambda: wp.launch(add, dim=8, inputs=[x, 1.0], stream=stream),
    "open": lambda: wp.get_device(DEVICE).native.__class__(DEVICE),
}
"""


def test_a_child_of_a_process_that_used_the_processor_gets_errors(run, cpu):
    found = run(WATCHED + EVERYTHING + "print({name: in_child(work) for name, work in works.items()})", "cpu")
    assert set(eval(found).values()) == {1}, found


def test_the_parent_goes_on_after_a_fork(run, cpu):
    text = """
    for _ in range(3):
        assert in_child(lambda: wp.zeros(4)) == 1
        wp.launch(add, dim=8, inputs=[x, 1.0])
    print(x.numpy().tolist() == [5.0] * 8, tape.backward(grads={y: x}))
    """
    assert run(WATCHED + EVERYTHING + text.replace("\n    ", "\n"), "cpu") == "True None\n"


def test_a_child_drops_what_it_inherits_and_ends_as_any_other(run, cpu):
    text = """
import gc

child = os.fork()
if child == 0:
    del x, y, tape, capture, stream, event, works
    gc.collect()
    sys.exit(0)
print(os.waitpid(child, 0)[1])
"""
    assert run(WATCHED + EVERYTHING + text, "cpu").strip() == "0"


def test_the_reference_device_goes_on_in_both(run):
    text = "assert in_child(works['launch']) == 0 and in_child(works['make']) == 0\nprint(x.numpy()[0])"
    assert run(WATCHED + EVERYTHING + text, "reference") == "2.0\n"


def test_children_of_a_process_that_only_imported_the_package_work(run, cpu):
    text = """
def work():
    with wp.ScopedDevice("cpu"):
        x = wp.ones(8, dtype=float)
        wp.launch(add, dim=8, inputs=[x, 1.0])
        assert x.numpy().tolist() == [2.0] * 8


print([in_child(work) for _ in range(2)], in_child(work))
work()
print(in_child(work))
"""
    assert run(WATCHED + text) == "[0, 0] 0\n1\n"


@pytest.mark.parametrize("method, said", [("fork", "device_lost"), ("spawn", "[2.0, 2.0]")])
def test_multiprocessing(run, cpu, method, said):
    text = f"""
import multiprocessing


def work(queue):
    try:
        with wp.ScopedDevice("cpu"):
            x = wp.ones(2, dtype=float)
            wp.launch(add, dim=2, inputs=[x, 1.0])
            queue.put(x.numpy().tolist())
    except wp.Error as error:
        queue.put(error.kind.replace(" ", "_"))


if __name__ == "__main__":
    wp.synchronize_device("cpu")
    context = multiprocessing.get_context("{method}")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(queue.get(timeout=60))
    process.join(60)
    assert process.exitcode == 0
"""
    assert run(text).strip() == said


@pytest.mark.skipif(sys.platform != "linux", reason="of Linux")
def test_a_fork_beside_threads_that_launch(run, cpu):
    text = """
stop = False
arrays = [wp.zeros(1000, dtype=float) for _ in range(3)]


def work(x):
    while not stop:
        wp.launch(add, dim=1000, inputs=[x, 1.0])


threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
for thread in threads:
    thread.start()
codes = {in_child(lambda: wp.zeros(4)) for _ in range(20)}
stop = True
for thread in threads:
    thread.join()
print(codes)
"""
    assert run(WATCHED + text, "cpu") == "{1}\n"
