"""Members of Warp's classes that the package lacks say why; those that it has work."""

import re

import pytest

import weft as wp
from weft.absent import ABSENT, MEMBERS


@wp.kernel
def fill(x: wp.array(dtype=float), value: float):
    x[wp.tid()] = value


@wp.kernel
def fill_any(x: wp.array(dtype=wp.Scalar), value: wp.Scalar):
    x[wp.tid()] = value


def objects():
    """An object of each class of which members are missing."""
    x = wp.zeros(2, dtype=float)
    with wp.ScopedCapture() as capture:
        wp.launch(fill, 2, [x, 1.0])
    return {
        "array": x,
        "Device": wp.get_device(),
        "Event": wp.Event(),
        "Graph": capture.graph,
        "Kernel": fill,
        "Launch": wp.launch(fill, 2, [x, 1.0], record_cmd=True),
        "Module": wp.get_module("some"),
        "Stream": wp.Stream(),
    }


def test_what_is_missing_is_refused_by_name_and_reason():
    made = objects()
    assert set(made) == set(MEMBERS)
    for kind, members in MEMBERS.items():
        for name, reason in members.items():
            assert not hasattr(made[kind], name), (kind, name)
            with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}: {reason}")):
                getattr(made[kind], name)


def test_a_kernel_tells_its_parameters_and_its_overloads():
    assert fill.arg_indices == {"x": 0, "value": 1}
    kinds = [wp.array(dtype=wp.int32), wp.int32]
    assert fill_any.get_overload(kinds) is None
    made = wp.overload(fill_any, kinds)
    assert fill_any.get_overload(kinds) is made and made.generic_parent is fill_any and fill.generic_parent is None
    x = wp.zeros(2, dtype=wp.float64)
    assert fill_any.infer_argument_types([x, wp.float64(1.0)]) == [wp.array(dtype=wp.float64), wp.float64]


def test_recorded_launches_take_all_parameters_at_once():
    x = wp.zeros(2, dtype=float)
    launch = wp.launch(fill, 2, [x, 1.0], record_cmd=True)
    launch.set_params_from_ctypes([x, 3.0])
    launch.launch()
    assert x.numpy().tolist() == [3.0, 3.0]


def test_a_device_is_made_the_current_one():
    with wp.ScopedDevice("reference"):
        for device in wp.get_devices():
            device.make_current()
            assert wp.get_device() == device and device.has_context == device.is_gpu


def test_missing_names_of_the_package_are_refused_by_name_and_reason():
    for name, reason in ABSENT.items():
        with pytest.raises(AttributeError, match=re.escape(f"module 'weft' has no attribute {name!r}: {reason}")):
            getattr(wp, name)
