"""What the documents' programs find in place: a GPU's name, and numbers of elements."""

import pytest

import weft as wp


@pytest.fixture
def gpu():
    """The device of programs that name ``"cuda"``: a GPU where there is one, else the device that is current."""
    if wp.is_cuda_available():
        return "cuda"
    if not wp.is_cpu_available():
        pytest.skip("there is no GPU, and the processor is no device here: LLVM is not installed")
    return "cpu"


@pytest.fixture
def host():
    """The processor, by the name that programs give it."""
    if not wp.is_cpu_available():
        pytest.skip("the processor is no device here: LLVM is not installed")
    return "cpu"


@pytest.fixture(autouse=True)
def current_device(gpu):
    """Programs that name no device run on the GPU where there is one."""
    with wp.ScopedDevice(gpu):
        yield
