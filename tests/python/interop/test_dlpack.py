"""DLPack's protocol of Python, both ways, and CUDA's interface of arrays: arguments, flags, who frees what, refusals."""

import ctypes
import gc

import numpy as np
import pytest

import weft as wp

CPU, CUDA, VULKAN, METAL = 1, 2, 7, 8
READ_ONLY, COPIED = 1, 2
# Functions of the test's own: other libraries give those of ctypes.pythonapi other types.
get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """DLManagedTensor, of DLPack before 1.0."""

    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def look(capsule):
    """The name of a capsule and the struct in it."""
    name = get_name(capsule)
    kind = Versioned if name == b"dltensor_versioned" else Managed
    struct = kind.from_address(get_pointer(capsule, name))
    struct.capsule = capsule  # whose end deletes the tensor
    return name.decode(), struct


class Given:
    """A capsule with numbers of this test's, which counts the calls of its deleter."""

    def __init__(self, numbers, version=None, flags=0, **fields):
        self.numbers = numbers
        self.deleted = 0
        self.shape = (ctypes.c_int64 * numbers.ndim)(*numbers.shape)
        self.strides = (ctypes.c_int64 * numbers.ndim)(*(s // numbers.itemsize for s in numbers.strides))
        self.struct = Managed() if version is None else Versioned(major=version, minor=0, flags=flags)
        self.struct.deleter = self.deleter = Deleter(self.delete)
        t = self.struct.tensor
        t.data, t.device_type, t.ndim = numbers.ctypes.data, CPU, numbers.ndim
        t.code, t.bits, t.lanes = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}[numbers.dtype.kind], numbers.itemsize * 8, 1
        t.shape, t.strides = self.shape, self.strides
        for name, value in fields.items():
            setattr(t, name, value)
        name = b"dltensor" if version is None else b"dltensor_versioned"
        self.capsule = new_capsule(ctypes.addressof(self.struct), name, None)

    def delete(self, _):
        self.deleted += 1


@wp.kernel
def double(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 2.0 * x[i]


# ---- Arrays for others


def test_capsules_have_the_version_that_is_asked_for(device):
    a = wp.array(np.arange(6.0).reshape(2, 3), dtype=float)
    for asked, name in ((None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"), ((2, 3), "dltensor_versioned")):
        found, struct = look(a.__dlpack__(max_version=asked))
        assert found == name
        t = struct.tensor
        assert (t.device_type, t.device_id, t.code, t.bits, t.lanes) == (CPU, 0, 2, 32, 1)
        assert t.shape[: t.ndim] == [2, 3] and t.strides[: t.ndim] == [3, 1]
        if "versioned" in name:
            assert (struct.major, struct.flags) == (1, 0)


def test_vectors_and_matrices_are_last_dimensions_of_tensors(device):
    a = wp.zeros((2, 4), dtype=wp.mat22)
    struct = look(a[:, ::2].__dlpack__())[1]
    t = struct.tensor
    assert t.shape[: t.ndim] == [2, 2, 2, 2] and t.strides[: t.ndim] == [16, 8, 2, 1]


def test_the_device_is_told_without_a_word_to_tapes(device):
    x = wp.ones(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        assert x.__dlpack_device__() == (CPU, 0)
        wp.launch(double, dim=3, inputs=[x])
    tape.backward(grads={x: wp.ones(3, dtype=float)})
    assert wp.zeros(0, dtype=float).__dlpack_device__() == (CPU, 0)


def test_streams_that_the_processor_does_not_have_are_refused(device):
    a = wp.zeros(3, dtype=float)
    for stream in (None, -1):
        assert look(a.__dlpack__(stream=stream))[0] == "dltensor"
    assert look(a.__dlpack__(None))[0] == "dltensor"
    for stream in (0, 1, 2, 1 << 80):
        with pytest.raises(BufferError, match="no streams"):
            a.__dlpack__(stream=stream)
    with pytest.raises(ValueError, match="-1 or greater"):
        a.__dlpack__(stream=-2)
    for stream in (1.0, True, "1"):
        with pytest.raises(TypeError, match="whole number"):
            a.__dlpack__(stream=stream)


def test_copies_are_made_when_they_are_asked_for_and_say_so(device):
    a = wp.array([1.0, 2.0, 3.0], dtype=float)
    for asked, flags in ((None, 0), (False, 0), (True, COPIED)):
        capsule = a.__dlpack__(max_version=(1, 0), copy=asked)
        assert look(capsule)[1].flags == flags
        other = wp.from_dlpack(capsule)
        other.fill_(5.0)
        assert a.numpy().tolist() == ([1.0, 2.0, 3.0] if asked else [5.0] * 3)
        a.assign([1.0, 2.0, 3.0])
    struct = look(wp.array(np.arange(6.0), dtype=float)[::2].__dlpack__(copy=True))[1]
    t = struct.tensor
    assert t.strides[0] == 1 and list((ctypes.c_float * 3).from_address(t.data)) == [0.0, 2.0, 4.0]


def test_devices_that_have_not_the_memory_are_refused_by_name(device):
    a = wp.zeros(3, dtype=float)
    struct = look(a.__dlpack__(dl_device=(CPU, 0)))[1]
    assert struct.tensor.device_type == CPU
    for wanted in ((CPU, 1), (CUDA, 5), (METAL, 0), (99, 0)):
        for copy in (None, True, False):
            with pytest.raises(BufferError, match=rf"{device}.*\({wanted[0]}, {wanted[1]}\)"):
                a.__dlpack__(dl_device=wanted, copy=copy)
    for wanted in (1, (1,), "cpu"):
        with pytest.raises(TypeError):
            a.__dlpack__(dl_device=wanted)


def test_what_has_no_memory_or_no_numbers_is_no_tensor(device):
    @wp.struct
    class Pair:
        a: float
        b: int

    with pytest.raises(TypeError, match="structs"):
        wp.zeros(3, dtype=Pair).__dlpack__()
    with pytest.raises(TypeError):
        wp.zeros(3, dtype=float).__dlpack__(None, (1, 0))  # all but the stream are named
    empty = wp.from_dlpack(wp.zeros((0, 3), dtype=float))
    assert empty.shape == (0, 3)


def test_numpy_takes_arrays_as_its_own_arguments_say(device):
    a = wp.array([1.0, 2.0, 3.0], dtype=float)
    shared, copied = np.from_dlpack(a, copy=False), np.from_dlpack(a, device="cpu", copy=True)
    a.fill_(7.0)
    wp.synchronize()
    assert shared.tolist() == [7.0] * 3 and copied.tolist() == [1.0, 2.0, 3.0]


def test_the_memory_lives_as_long_as_the_tensor(device):
    a = wp.array(np.arange(1000.0), dtype=float)
    shared = np.from_dlpack(a)
    del a
    gc.collect()
    others = [wp.full(1000, -1.0, dtype=float) for _ in range(8)]
    wp.synchronize()
    assert np.array_equal(shared, np.arange(1000.0)) and len(others) == 8


# ---- Tensors of others


@pytest.mark.parametrize("version", [None, 1])
def test_a_tensor_is_taken_once_and_deleted_once(device, version):
    given = Given(np.arange(6, dtype=np.float32), version)
    a = wp.from_dlpack(given.capsule)
    assert look_name(given.capsule) == ("used_dltensor_versioned" if version else "used_dltensor")
    with pytest.raises(TypeError, match="taken already"):
        wp.from_dlpack(given.capsule)
    part = a[2:4]
    wp.launch(double, dim=2, inputs=[part])
    wp.synchronize()
    assert given.numbers.tolist() == [0.0, 1.0, 4.0, 6.0, 4.0, 5.0]
    del a
    gc.collect()
    assert given.deleted == 0
    del part
    gc.collect()
    wp.synchronize()
    wp.zeros(1, dtype=float)
    assert given.deleted == 1


def look_name(capsule):
    return get_name(capsule).decode()


@pytest.mark.parametrize("version", [None, 1])
def test_a_copied_tensor_is_deleted_at_once(device, version):
    given = Given(np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2], version, READ_ONLY if version else 0)
    a = wp.from_dlpack(given.capsule, copy=True)
    gc.collect()
    wp.zeros(1, dtype=float)
    assert given.deleted == 1
    given.numbers[:] = -1.0
    assert a.numpy().tolist() == [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]


@pytest.mark.parametrize("version", [None, 1])
def test_a_tensor_that_is_refused_stays_in_its_capsule(device, version):
    given = Given(np.arange(6, dtype=np.float32), version)
    for wrong in (wp.float64, wp.int32, wp.vec3):
        with pytest.raises((TypeError, RuntimeError)):
            wp.from_dlpack(given.capsule, dtype=wrong)
    assert given.deleted == 0
    assert wp.from_dlpack(given.capsule).numpy().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_read_only_memory_is_refused_unless_it_is_copied(device):
    given = Given(np.ones(3, dtype=np.float32), 1, READ_ONLY)
    numbers = np.ones(3, dtype=np.float32)
    numbers.flags.writeable = False
    for source in (given.capsule, numbers):
        with pytest.raises(BufferError, match="read only"):
            wp.from_dlpack(source)
        copied = wp.from_dlpack(source, copy=True)
        copied.fill_(2.0)
        assert copied.numpy().tolist() == [2.0] * 3 and numbers.tolist() == [1.0] * 3


def test_later_versions_and_foreign_objects_are_refused(device):
    with pytest.raises(BufferError, match="later version"):
        wp.from_dlpack(Given(np.ones(3, dtype=np.float32), 2).capsule)
    for source in (3, "text", new_capsule(1, b"another", None)):
        with pytest.raises(TypeError):
            wp.from_dlpack(source)


@pytest.mark.parametrize(
    "fields, error, text",
    [
        ({"code": 5, "bits": 64}, TypeError, "type is none"),
        ({"code": 4, "bits": 16}, TypeError, "type is none"),
        ({"lanes": 2}, TypeError, "type is none"),
        ({"ndim": 0}, TypeError, "dimensions"),
        ({"device_type": VULKAN}, RuntimeError, "Vulkan"),
        ({"device_type": METAL}, RuntimeError, "Metal"),
        ({"device_type": CUDA, "device_id": 3}, RuntimeError, "CUDA"),
        ({"data": None}, TypeError, "memory"),
        ({"byte_offset": 2}, ValueError, "multiple"),
    ],
)
def test_tensors_that_no_device_reads_are_refused(cpu, fields, error, text):
    given = Given(np.ones(3, dtype=np.float32), **fields)
    with pytest.raises(error, match=text):
        wp.from_dlpack(given.capsule)
    assert given.deleted == 0


def test_offsets_and_missing_strides_are_read(device):
    given = Given(np.arange(6, dtype=np.float32), byte_offset=8, strides=None)
    given.shape[0] = 4
    assert wp.from_dlpack(given.capsule).numpy().tolist() == [2.0, 3.0, 4.0, 5.0]


def test_an_array_is_on_the_device_that_is_named():
    numbers = np.arange(3, dtype=np.float32)
    a = wp.from_dlpack(numbers, device="reference")
    assert a.device == "reference" and a.ptr == numbers.ctypes.data
    with wp.ScopedDevice("reference"):
        assert wp.from_dlpack(np.arange(3, dtype=np.float32)).device == "reference"


def test_integers_are_read_as_those_of_the_other_sign(device):
    numbers = np.array([1, -1], dtype=np.int32)
    assert wp.from_dlpack(numbers, dtype=wp.uint32).numpy().tolist() == [1, 2**32 - 1]
    assert wp.from_dlpack(np.array([True, False] * 2), dtype=wp.uint8).numpy().tolist() == [1, 0] * 2


def test_an_error_of_the_other_library_is_passed_on(device):
    class Broken:
        def __dlpack__(self, **arguments):
            raise KeyError("no such thing")

    class Old:
        def __dlpack__(self):
            return np.arange(3, dtype=np.float32).__dlpack__()

    with pytest.raises(KeyError, match="no such thing"):
        wp.from_dlpack(Broken())
    assert wp.from_dlpack(Old()).numpy().tolist() == [0.0, 1.0, 2.0]


# ---- CUDA's interface of arrays


class Described:
    """An object with CUDA's interface of arrays."""

    def __init__(self, **changes):
        self.__cuda_array_interface__ = {
            "shape": (3,),
            "typestr": "<f4",
            "data": (1 << 20, False),
            "version": 3,
            **changes,
        }


def test_arrays_of_the_processor_have_no_interface_of_cudas(device):
    a = wp.zeros(3, dtype=float)
    assert not hasattr(a, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match=f"{device} is not CUDA's"):
        a.__cuda_array_interface__
    assert np.asarray(a).tolist() == [0.0] * 3


@pytest.mark.skipif(wp.is_cuda_available(), reason="a GPU may be one of CUDA's")
def test_memory_of_cudas_is_refused_where_there_is_none(cpu):
    with pytest.raises(BufferError, match="CUDA's, and that of device"):
        wp.array(Described())
    with pytest.raises(RuntimeError, match="'double', argument 'x'.*CUDA's, and that of device"):
        wp.launch(double, dim=3, inputs=[Described()])


def test_descriptions_that_are_none_are_refused(cpu):
    for changes in ({"typestr": "<c8"}, {"typestr": ">f4"}, {"typestr": "f"}, {"shape": 3}, {"data": 5}, {"strides": (3,)}):
        with pytest.raises(TypeError):
            wp.array(Described(**changes))
    with pytest.raises(BufferError, match="read only"):
        wp.array(Described(data=(1 << 20, True)), copy=False)


def test_cupy_and_arrays_share_memory_on_a_gpu_of_cudas():
    cp = pytest.importorskip("cupy")
    if not wp.is_cuda_available():
        pytest.skip("there is no GPU")
    with wp.ScopedDevice("cuda"):
        a = wp.array([1.0, 2.0, 3.0], dtype=float)
        if not hasattr(a, "__cuda_array_interface__"):
            pytest.skip("the GPU is none of CUDA's")
        shared = cp.asarray(a)
        shared += 1.0
        cp.cuda.Stream.null.synchronize()
        assert a.numpy().tolist() == [2.0, 3.0, 4.0]
        assert wp.array(cp.arange(3, dtype=cp.float32)).numpy().tolist() == [0.0, 1.0, 2.0]
