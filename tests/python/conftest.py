"""What all tests of the package share: the devices on which they run."""

import os

import pytest

import weft as wp

# WEFT_TEST_DEVICES names others, as for the tests in C++.
DEVICES = os.environ.get("WEFT_TEST_DEVICES", "cpu,reference").split(",")


@pytest.fixture(params=DEVICES)
def device(request):
    """Each device in turn, made the current one."""
    with wp.ScopedDevice(request.param) as device:
        yield device


@pytest.fixture
def line_of():
    """The line of this test's file on which a piece of text stands, to compare errors with."""

    def find(text, file):
        with open(file) as lines:
            for number, line in enumerate(lines, 1):
                if text in line and "line_of" not in line:
                    return number
        raise AssertionError(f"{text!r} stands nowhere in {file}")

    return find
