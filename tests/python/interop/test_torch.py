"""PyTorch's tensors: memory and gradients that both libraries share."""

import gc
import weakref

import numpy as np
import pytest

import weft as wp

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("cpu")


@wp.struct
class Particle:
    mass: float


@wp.kernel
def double(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 2.0 * x[i]


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def shift(to: wp.array(dtype=float), source: wp.array(dtype=float)):
    i = wp.tid()
    to[i] = source[i] + 1.0


@wp.kernel
def copy2d(to: wp.array2d(dtype=float), source: wp.array2d(dtype=float)):
    i, j = wp.tid()
    to[i, j] = source[i, j]


@wp.kernel
def add_vectors(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.mat22)):
    i = wp.tid()
    x[i] = x[i] + wp.vec3(1.0, 2.0, 3.0)
    y[i] = y[i] + wp.mat22(1.0, 2.0, 3.0, 4.0)


PAIRS = [
    (torch.float16, wp.float16),
    (torch.float32, wp.float32),
    (torch.float64, wp.float64),
    (torch.int8, wp.int8),
    (torch.int16, wp.int16),
    (torch.int32, wp.int32),
    (torch.int64, wp.int64),
    (torch.uint8, wp.uint8),
    (torch.bool, wp.bool),
]


@pytest.mark.parametrize("theirs, ours", PAIRS)
def test_types_go_both_ways(theirs, ours):
    assert wp.dtype_from_torch(theirs) is ours
    assert wp.dtype_to_torch(ours) is theirs
    tensor = torch.tensor([1, 0, 1]).to(theirs)
    array = wp.from_torch(tensor)
    assert array.dtype is ours and array.ptr == tensor.data_ptr()
    back = wp.to_torch(array)
    assert back.dtype is theirs and back.data_ptr() == tensor.data_ptr() and torch.equal(back, tensor)


@pytest.mark.parametrize("name, signed", [("uint16", torch.int16), ("uint32", torch.int32), ("uint64", torch.int64)])
def test_unsigned_integers_are_tensors_of_signed_ones(name, signed):
    array = wp.array([1, 2, 3], dtype=getattr(wp, name))
    tensor = wp.to_torch(array)
    assert tensor.dtype is signed and tensor.tolist() == [1, 2, 3] and tensor.data_ptr() == array.ptr
    assert wp.from_torch(tensor, dtype=getattr(wp, name)).numpy().tolist() == [1, 2, 3]


def test_vectors_and_matrices_are_last_dimensions():
    x, y = torch.zeros(4, 3), torch.zeros(4, 2, 2)
    wp.launch(add_vectors, dim=4, inputs=[wp.from_torch(x, dtype=wp.vec3), wp.from_torch(y, dtype=wp.mat22)])
    wp.launch(add_vectors, dim=4, inputs=[x, y])
    assert torch.equal(x, torch.tensor([[2.0, 4.0, 6.0]] * 4))
    assert torch.equal(y, torch.tensor([[[2.0, 4.0], [6.0, 8.0]]] * 4))
    assert tuple(wp.to_torch(wp.zeros((2, 5), dtype=wp.mat22)).shape) == (2, 5, 2, 2)
    assert tuple(wp.to_torch(wp.zeros((1, 0), dtype=wp.vec2)).shape) == (1, 0, 2)


@pytest.mark.parametrize("part", [np.s_[1:3, 2:5], np.s_[::2, ::3], np.s_[:, 4], np.s_[3]])
def test_parts_of_tensors_are_arrays_with_strides(part):
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    tensor = base[part]
    array = wp.from_torch(tensor)
    assert array.ptr == tensor.data_ptr() and array.shape == tuple(tensor.shape)
    assert np.array_equal(array.numpy(), tensor.numpy())


def test_expanded_and_transposed_tensors_are_read_in_their_order():
    base = torch.arange(6, dtype=torch.float32)
    for tensor in (base.unsqueeze(0).expand(3, -1), base.unsqueeze(1).expand(-1, 3), base.reshape(2, 3).T):
        copy = torch.empty(tensor.shape)
        wp.launch(copy2d, dim=tuple(tensor.shape), inputs=[copy, tensor])
        assert torch.equal(copy, tensor)


def test_overlapping_parts_of_a_tensor_are_arguments_of_one_launch():
    x = torch.arange(8, dtype=torch.float32)
    y = torch.zeros(10)
    wp.launch(shift, dim=7, inputs=[y[1:8], x[1:]])
    wp.launch(shift, dim=4, inputs=[x[:4], x[4:]])
    wp.launch(shift, dim=2, inputs=[wp.from_torch(y[8:]), y[6:8]])
    assert torch.equal(x, torch.tensor([5.0, 6, 7, 8, 4, 5, 6, 7]))
    assert torch.equal(y, torch.tensor([0.0, 2, 3, 4, 5, 6, 7, 8, 8, 9]))


def test_a_tensor_of_an_array_is_that_array_for_launches():
    array = wp.array([1.0, 2.0, 3.0], dtype=float)
    tensor = wp.to_torch(array)
    wp.launch(double, dim=3, inputs=[tensor])
    assert wp.from_torch(tensor[1:]).numpy().tolist() == [4.0, 6.0]
    assert array.numpy().tolist() == [2.0, 4.0, 6.0]
    tensor += 1.0
    assert array.numpy().tolist() == [3.0, 5.0, 7.0]


def test_each_side_keeps_the_memory_that_the_other_made():
    array = wp.from_torch(torch.arange(1000, dtype=torch.float32))
    tensor = wp.to_torch(wp.array(np.arange(1000), dtype=float))
    gc.collect()
    assert np.array_equal(array.numpy(), np.arange(1000)) and np.array_equal(tensor.numpy(), np.arange(1000))
    replaced = torch.ones(1000)
    array = wp.from_torch(replaced)
    replaced.data = torch.zeros(1000)
    assert array.numpy().sum() == 1000


def test_nothing_keeps_a_tensor_whose_array_is_gone():
    tensor = torch.ones(4, requires_grad=True)
    array = wp.from_torch(tensor)
    array.grad.zero_()
    seen = weakref.ref(tensor)
    tensor.itself = array  # a cycle
    del tensor, array
    gc.collect()
    assert seen() is None


# ---- Gradients


def squared(x, y):
    """A tape with y = x * x."""
    tape = wp.Tape()
    with tape:
        wp.launch(square, dim=len(x), inputs=[x], outputs=[y])
    return tape


def test_a_gradient_is_made_when_a_tape_goes_back():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    array = wp.from_torch(x)
    y = wp.zeros(3, requires_grad=True)
    tape = squared(array, y)
    assert array.requires_grad and x.grad is None
    tape.backward(grads={y: wp.ones(3)})
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    assert array.grad.ptr == x.grad.data_ptr()
    tape.backward(grads={y: wp.ones(3)})
    assert x.grad.tolist() == [4.0, 8.0, 12.0]
    tape.zero()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_zeroing_a_tape_makes_no_gradients():
    x = torch.ones(3, requires_grad=True)
    tape = squared(wp.from_torch(x), wp.zeros(3, requires_grad=True))
    tape.zero()
    assert x.grad is None


def test_a_gradient_that_torch_lets_go_is_made_again():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    array, y = wp.from_torch(x), wp.zeros(2, requires_grad=True)
    tape = squared(array, y)
    for _ in range(3):
        x.grad = None
        tape.zero()
        tape.backward(grads={y: wp.ones(2)})
        assert x.grad.tolist() == [2.0, 4.0]
    x.grad = torch.tensor([5.0, 5.0])
    assert array.grad.numpy().tolist() == [5.0, 5.0]


def test_gradients_of_views_are_views_of_the_gradient():
    x = torch.arange(6, dtype=torch.float32).requires_grad_(True)
    view = wp.from_torch(x)[2:4]
    y = wp.zeros(2, requires_grad=True)
    tape = squared(view, y)
    assert x.grad is None
    tape.backward(grads={y: wp.ones(2)})
    assert x.grad.tolist() == [0.0, 0.0, 4.0, 6.0, 0.0, 0.0]
    assert wp.from_torch(x.reshape(2, 3).detach(), requires_grad=True).reshape(6).grad.shape == (6,)


def test_views_of_an_array_with_a_given_gradient_have_views_of_it():
    x = wp.ones(4, requires_grad=True)
    x.grad = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float)
    assert x[1:3].grad.numpy().tolist() == [2.0, 3.0]


def test_the_gradient_can_be_a_tensor_or_an_array():
    for gradient in (torch.zeros(3), wp.zeros(3)):
        x, y = torch.tensor([1.0, 2.0, 3.0]), wp.zeros(3, requires_grad=True)
        tape = squared(wp.from_torch(x, grad=gradient), y)
        tape.backward(grads={y: wp.ones(3)})
        assert (gradient.tolist() if torch.is_tensor(gradient) else gradient.numpy().tolist()) == [2.0, 4.0, 6.0]
        assert x.grad is None
    with pytest.raises(RuntimeError, match="shape"):
        wp.from_torch(torch.ones(3), grad=torch.ones(2))


def test_an_adjoint_launch_adds_to_the_tensors_gradient():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = wp.zeros(2, requires_grad=True)
    y.grad.fill_(1.0)
    wp.launch(square, dim=2, inputs=[wp.from_torch(x)], outputs=[y], adjoint=True)
    assert x.grad.tolist() == [2.0, 4.0]


def test_gradients_have_the_strides_of_their_tensors():
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    x = base[:, 1].detach().requires_grad_(True)
    array, y = wp.from_torch(x), wp.zeros(3, requires_grad=True)
    squared(array, y).backward(grads={y: wp.ones(3)})
    assert not array.is_contiguous and x.grad.tolist() == [2.0, 10.0, 18.0]


def test_results_of_torch_and_functions_of_autograd_have_gradients_of_the_arrays_own():
    leaf = torch.ones(3, requires_grad=True)
    result = 2.0 * leaf
    array = wp.from_torch(result)
    assert array.requires_grad and array.grad.numpy().tolist() == [0.0, 0.0, 0.0]
    with torch.no_grad():
        array = wp.from_torch(leaf)
        assert array.grad.numpy().tolist() == [0.0, 0.0, 0.0] and leaf.grad is None
        leaf.grad = torch.ones(3)
        assert wp.from_torch(leaf).grad.ptr == leaf.grad.data_ptr()


class Square(torch.autograd.Function):
    """The square on a tape."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = wp.from_torch(x, requires_grad=True)
        ctx.y = wp.zeros(len(x), requires_grad=True)
        ctx.tape = squared(ctx.x, ctx.y)
        return wp.to_torch(ctx.y, requires_grad=False).clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.tape.zero()
        ctx.tape.backward(grads={ctx.y: wp.from_torch(gradient)})
        return wp.to_torch(ctx.x.grad).clone()


def test_a_function_of_autograd_gives_the_right_gradients_in_the_middle_of_torchs():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(2):
        x.grad = None
        (3.0 * Square.apply(2.0 * x)).sum().backward()
        assert x.grad.tolist() == [24.0, 48.0, 72.0]
    x.grad = None
    Square.apply(x).sum().backward()
    Square.apply(x[1:]).sum().backward()
    assert x.grad.tolist() == [2.0, 8.0, 12.0]


def test_tensors_of_arrays_have_their_gradients():
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    tensor = wp.to_torch(x)
    assert tensor.requires_grad and tensor.grad.data_ptr() == x.grad.ptr
    (tensor * tensor).sum().backward()
    assert x.grad.numpy().tolist() == [2.0, 4.0]
    assert not wp.to_torch(x, requires_grad=False).requires_grad
    assert not wp.to_torch(wp.zeros(2, dtype=int)).requires_grad
    assert wp.to_torch(wp.zeros(2), requires_grad=True).requires_grad


# ---- Arguments and descriptors


def test_descriptors_are_arguments_with_addresses():
    x = torch.ones(3, 3)
    given = wp.from_torch(x, dtype=wp.vec3, return_ctype=True)
    assert (given.data, given.grad, given.ndim) == (x.data_ptr(), 0, 1)
    assert given.shape[0] == 3 and given.strides[0] == 12
    with_gradient = wp.from_torch(x, dtype=wp.vec3, requires_grad=True, return_ctype=True)
    assert with_gradient.grad == x.grad.data_ptr()
    array = wp.zeros(3, dtype=wp.vec3)
    assert wp.from_torch(x, dtype=wp.vec3, grad=array, return_ctype=True).grad == array.ptr
    y = torch.tensor([1.0, 2.0])
    wp.launch(double, dim=2, inputs=[wp.from_torch(y, return_ctype=True)])
    assert y.tolist() == [2.0, 4.0]


def test_parameters_of_modules_are_arguments():
    layer = torch.nn.Linear(1, 3)
    before = layer.bias.detach().clone()
    wp.launch(double, dim=3, inputs=[layer.bias])
    assert torch.equal(layer.bias.detach(), 2.0 * before)


@wp.kernel
def doubled_any(x: wp.array(dtype=wp.Float)):
    i = wp.tid()
    x[i] = x[i] + x[i]


def test_generic_kernels_take_tensors():
    for dtype in (torch.float32, torch.float64):
        x = torch.ones(3, dtype=dtype)
        wp.launch(doubled_any, dim=3, inputs=[x])
        assert x.tolist() == [2.0, 2.0, 2.0]


def test_values_are_made_of_tensors():
    assert list(wp.vec3(torch.tensor([1.0, 2.0, 3.0]))) == [1.0, 2.0, 3.0]
    assert wp.mat22(torch.tensor([1.0, 2.0, 3.0, 4.0]))[1, 0] == 3.0
    assert list(wp.transform(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0, 7.0]))) == [1, 2, 3, 4, 5, 6, 7]
    array = wp.array(torch.tensor([[1.0, 2.0, 3.0]]), dtype=wp.vec3)
    assert array.numpy().tolist() == [[1.0, 2.0, 3.0]]


# ---- Refusals


@pytest.mark.parametrize(
    "tensor, dtype, text",
    [
        (torch.ones(3, dtype=torch.int32), wp.float32, "Cannot convert Torch type"),
        (torch.ones(3), wp.vec3, "number of dimensions|1 to 4"),
        (torch.ones(3, 2), wp.vec3, "last dimensions"),
        (torch.ones(3, 6)[:, ::2], wp.vec3, "side by side"),
        (torch.ones(2, 2, 2, 2, 2), wp.float32, "1 to 4 dimensions"),
        (torch.ones(()), wp.float32, "1 to 4 dimensions"),
        (torch.ones(3), Particle, "Cannot convert Torch type"),
    ],
)
def test_tensors_that_are_no_such_arrays_are_refused(tensor, dtype, text):
    with pytest.raises(RuntimeError, match=text):
        wp.from_torch(tensor, dtype=dtype)


def test_tensors_without_plain_memory_are_refused():
    for tensor in (
        torch.ones(3, 3).to_sparse(),
        torch.ones(3, device="meta"),
        torch.imag(torch.ones(3, dtype=torch.complex64).conj()),
    ):
        with pytest.raises((RuntimeError, TypeError, NotImplementedError)):
            wp.from_torch(tensor)
    with pytest.raises(TypeError, match="complex64"):
        wp.from_torch(torch.ones(3, dtype=torch.complex64))


def test_wrong_arguments_are_refused_with_their_names():
    with pytest.raises(RuntimeError, match="'double', argument 'x'"):
        wp.launch(double, dim=3, inputs=[torch.ones(3, dtype=torch.float64)])
    with pytest.raises(RuntimeError, match="'double', argument 'x'"):
        wp.launch(double, dim=3, inputs=[torch.ones(3, 3)])


def test_structs_and_memory_of_recording_tapes_are_no_tensors():
    with pytest.raises(TypeError, match="Particle"):
        wp.to_torch(wp.zeros(2, dtype=Particle))
    x = wp.ones(2, requires_grad=True)
    with wp.Tape():
        with pytest.raises(RuntimeError, match="tape"):
            wp.to_torch(x)


def test_devices_go_both_ways():
    assert wp.device_to_torch("cpu") == "cpu"
    assert wp.device_from_torch(torch.device("cpu")) == "cpu" and wp.device_from_torch("cpu").alias == "cpu"
    with pytest.raises(RuntimeError, match="meta"):
        wp.device_from_torch(torch.device("meta"))
    assert wp.device_to_torch("reference") == "cpu"


def test_a_tensor_is_taken_out_of_a_capsule_once():
    capsule = torch.utils.dlpack.to_dlpack(torch.arange(1000.0))
    a = wp.from_dlpack(capsule)
    for take in (torch.utils.dlpack.from_dlpack, wp.from_dlpack):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            take(capsule)
    del capsule
    gc.collect()
    assert a.numpy()[-1] == 999.0


def test_tensors_without_memory_are_refused():
    fakes = pytest.importorskip("torch._subclasses.fake_tensor")
    with fakes.FakeTensorMode():
        fake = torch.ones(3)
    with pytest.raises((TypeError, RuntimeError)):
        wp.from_torch(fake).numpy()
