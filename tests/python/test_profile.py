"""Profiles: which kernels ran how often, in which scopes, and Warp's functions for single activities."""

import json

import numpy as np
import pytest

import weft as wp


@wp.kernel
def squares(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def doubles(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 2.0 * x[i]


@pytest.fixture
def arrays():
    x = wp.array(np.arange(1000.0), dtype=float, requires_grad=True)
    y = wp.zeros(1000, dtype=float, requires_grad=True)
    wp.launch(squares, dim=1000, inputs=[x, y])  # compiled before anything is measured
    wp.launch(doubles, dim=1000, inputs=[y])
    wp.synchronize()
    return x, y


def test_a_profile_counts_the_launches_of_kernels_and_adjoints(arrays):
    x, y = arrays
    with wp.Profiler() as profiler:
        for _ in range(3):
            wp.launch(doubles, dim=1000, inputs=[y])
        with wp.Tape() as tape:
            wp.launch(squares, dim=1000, inputs=[x, y])
        tape.backward(grads={y: wp.ones(1000)})
    kernels = {k.name: k for k in profiler.kernels}
    assert kernels["doubles"].count == 3
    assert kernels["squares"].count == 1 and kernels["squares (adjoint)"].count == 1
    for kernel in profiler.kernels:
        times = [o.end - o.begin for o in profiler.operations if o.name == kernel.name]
        assert len(times) == kernel.count and min(times) >= 0
        np.testing.assert_allclose([kernel.total, kernel.min, kernel.max], [sum(times), min(times), max(times)])
    np.testing.assert_allclose(sum(k.share for k in profiler.kernels), 1.0)
    assert [k.total for k in profiler.kernels] == sorted((k.total for k in profiler.kernels), reverse=True)
    assert 0 < profiler.kernels[0].total < profiler.seconds
    assert "doubles" in profiler.table() and "squares (adjoint)" in profiler.table()


def test_scopes_nest_and_have_the_time_of_their_work(arrays, capsys):
    _, y = arrays
    with wp.Profiler() as profiler:
        for _ in range(2):
            with wp.Timer("step"):
                wp.launch(doubles, dim=1000, inputs=[y])
                with wp.ScopedTimer("forces"):
                    wp.launch(doubles, dim=1000, inputs=[y])
    scopes = {s.path: s for s in profiler.scopes}
    assert list(scopes) == ["step", "step/forces"]
    assert [(s.depth, s.count) for s in profiler.scopes] == [(0, 2), (1, 2)]
    outer, inner = scopes["step"], scopes["step/forces"]
    assert outer.host > inner.host > 0 and outer.device > inner.device > 0
    assert [t.name for t in profiler.timers] == ["step", "forces"] * 2
    assert [t.parent for t in profiler.timers] == [-1, 0, -1, 2]
    assert sorted(o.scope for o in profiler.operations) == [0, 1, 2, 3]
    assert capsys.readouterr().out.count("forces took") == 2


def test_a_trace_names_operations_and_scopes(arrays, tmp_path):
    _, y = arrays
    with wp.Profiler() as profiler, wp.Timer("all"):
        wp.launch(doubles, dim=1000, inputs=[y])
    profiler.save_trace(tmp_path / "folder" / "trace.json")
    events = json.loads((tmp_path / "folder" / "trace.json").read_text())["traceEvents"]
    assert {"doubles", "all"} <= {e["name"] for e in events if e["ph"] == "X"}
    assert events == json.loads(profiler.trace())["traceEvents"]


def test_one_profiler_measures_at_a_time(arrays):
    with wp.Profiler() as profiler:
        with pytest.raises(RuntimeError, match="after its `with` block"):
            profiler.kernels
        with pytest.raises(wp.Error, match="while another one collects"), wp.Profiler():
            pass
    assert profiler.kernels == []


def test_a_profiler_ends_where_its_block_fails(arrays):
    with pytest.raises(KeyError), wp.Profiler():
        raise KeyError
    with wp.Profiler() as profiler:
        pass
    assert profiler.seconds > 0


def test_a_graph_is_measured_by_kernel_or_as_a_whole(arrays):
    _, y = arrays
    with wp.ScopedCapture() as capture:
        for _ in range(4):
            wp.launch(doubles, dim=1000, inputs=[y])
    with wp.Profiler() as single:
        wp.capture_launch(capture.graph)
    with wp.Profiler(whole_graphs=True) as whole:
        wp.capture_launch(capture.graph)
    assert [(k.name, k.count) for k in single.kernels] == [("doubles", 4)]
    assert [(k.name, k.count) for k in whole.kernels] == [("graph of 4 operations", 1)]


def test_timing_gives_the_activities_that_are_asked_for(arrays):
    x, y = arrays

    def work():
        wp.launch(squares, dim=1000, inputs=[x, y])
        y.zero_()
        wp.copy(y, x)

    results = {}
    for wanted in (wp.TIMING_KERNEL, wp.TIMING_MEMSET, wp.TIMING_MEMCPY, wp.TIMING_KERNEL | wp.TIMING_MEMSET):
        wp.timing_begin(cuda_filter=wanted)
        work()
        results[wanted] = wp.timing_end()
    assert [r.name for r in results[wp.TIMING_KERNEL]] == ["forward kernel squares"]
    assert [r.name for r in results[wp.TIMING_MEMSET]] == ["memset"]
    assert [r.name for r in results[wp.TIMING_MEMCPY]] == ["memcpy DtoD"]
    assert [r.filter for r in results[wp.TIMING_KERNEL | wp.TIMING_MEMSET]] == [wp.TIMING_KERNEL, wp.TIMING_MEMSET]
    for result in sum(results.values(), []):
        assert result.device == x.device and 0 <= result.elapsed < 1e4


def test_timing_tells_adjoints_and_the_librarys_kernels(arrays):
    x, y = arrays
    with wp.Tape() as tape:
        wp.launch(squares, dim=1000, inputs=[x, y])
    wp.timing_begin()
    tape.backward(grads={y: wp.ones(1000)})
    wp.utils.array_scan(y, y)
    results = wp.timing_end()
    names = [r.name for r in results if r.filter == wp.TIMING_KERNEL]
    assert names == ["backward kernel squares"]
    assert any(r.name.startswith("builtin kernel ") for r in results if r.filter == wp.TIMING_KERNEL_BUILTIN)


def test_timing_is_begun_and_ended_in_turn():
    with pytest.raises(RuntimeError, match="without timing_begin"):
        wp.timing_end()
    wp.timing_begin()
    with pytest.raises(RuntimeError, match="called twice"):
        wp.timing_begin()
    assert wp.timing_end() == []


def test_timing_print_sums_up_by_activity_and_device(capsys):
    device = wp.get_device()
    results = [wp.TimingResult(device, name, 1, t) for name, t in (("a", 1.0), ("b", 2.0), ("a", 4.0))]
    wp.timing_print(results, indent="  ")
    lines = capsys.readouterr().out.splitlines()
    assert f"      5.000000 ms |       2 | a" in lines and f"      2.000000 ms |       1 | b" in lines
    assert f"      7.000000 ms |       3 | {device.alias}" in lines
    wp.timing_print([])
    assert capsys.readouterr().out == "No activity\n"


def test_a_scoped_timer_reports_activities(arrays, capsys):
    _, y = arrays
    reports = []
    with wp.ScopedTimer("outer"):
        with wp.ScopedTimer("inner", cuda_filter=wp.TIMING_ALL, report_func=lambda r, indent: reports.append((r, indent))) as timer:
            wp.launch(doubles, dim=1000, inputs=[y])
            timer.extra_msg = "of work"
    assert [(r.name, r.filter) for r in timer.timing_results] == [("forward kernel doubles", wp.TIMING_KERNEL)]
    assert reports == [(timer.timing_results, "    ")]
    out = capsys.readouterr().out
    assert f"    inner took {timer.elapsed:.2f} ms of work\nouter took" in out
