"""What all tests of the package share: the devices on which they run."""

import os

import pytest

import weft as wp

# WEFT_TEST_DEVICES names others, as for the tests in C++.
DEVICES = os.environ.get("WEFT_TEST_DEVICES", "cpu,reference").split(",")


@pytest.fixture(params=DEVICES)
def device(request):
    """Each device in turn, made the current one."""
    skip_without(request.param)
    with wp.ScopedDevice(request.param) as device:
        yield device


def skip_without(name):
    """Skips a test on a machine that cannot run kernels on the processor, as it has no LLVM."""
    if name == "cpu" and not wp.is_cpu_available():
        pytest.skip("the processor is no device here: LLVM is not installed")


@pytest.fixture
def cpu():
    """The processor, made the current device."""
    skip_without("cpu")
    with wp.ScopedDevice("cpu") as device:
        yield device
