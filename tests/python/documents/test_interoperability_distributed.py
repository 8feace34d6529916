"""The program of the page on interoperability that distributes an array over processes."""

import os
import socket
import subprocess
import sys

import pytest

pytest.importorskip("jax")

PROGRAM = '''
import os

import weft as wp
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
from jax.experimental.multihost_utils import process_allgather as allgather
from jax import shard_map
from weft.jax_experimental import jax_kernel
import numpy as np

# Initialize JAX distributed environment
jax.distributed.initialize("127.0.0.1:" + os.environ["PORT"], 2, int(os.environ["RANK"]))
num_gpus = jax.device_count()


def print_on_process_0(*args, **kwargs):
    if jax.process_index() == 0:
        print(*args, **kwargs)


print_on_process_0(f"Running on {num_gpus} GPU(s)")


@wp.kernel
def multiply_by_two_kernel(
    a_in: wp.array(dtype=wp.float32),
    a_out: wp.array(dtype=wp.float32),
):
    index = wp.tid()
    a_out[index] = a_in[index] * 2.0


jax_warp_multiply = jax_kernel(multiply_by_two_kernel)


def warp_multiply(x):
    result = jax_warp_multiply(x)
    return result


# a_in here is the full sharded array with shape (M,)
# The output will also be a sharded array with shape (M,)
def warp_distributed_operator(a_in):
    def _sharded_operator(a_in):
        # Inside the sharded operator, a_in is a local shard on each device
        # If we have N devices and input size M, each shard has shape (M/N,)

        # warp_multiply applies the Warp kernel to the local shard
        result = warp_multiply(a_in)[0]

        # result has the same shape as the input shard (M/N,)
        return result

    # shard_map distributes the computation across devices
    return shard_map(
        _sharded_operator,
        mesh=jax.sharding.Mesh(np.array(jax.devices()), "x"),
        in_specs=(P("x"),),  # Input is sharded along the 'x' axis
        out_specs=P("x"),    # Output is also sharded along the 'x' axis
        check_vma=False,
    )(a_in)


print_on_process_0("Test distributed multiplication using JAX + Warp")

devices = jax.devices()
mesh = jax.sharding.Mesh(np.array(devices), "x")
sharding_spec = jax.sharding.NamedSharding(mesh, P("x"))

input_size = num_gpus * 5  # 5 elements per device
single_device_arrays = jnp.arange(input_size, dtype=jnp.float32)

# Define the shape of the input array based on the total input size
shape = (input_size,)

# Create a list of arrays by distributing the single_device_arrays across the available devices
# Each device will receive a portion of the input data
arrays = [
    jax.device_put(single_device_arrays[index], d)  # Place each element on the corresponding device
    for d, index in sharding_spec.addressable_devices_indices_map(shape).items()
]

# Combine the individual device arrays into a single sharded array
sharded_array = jax.make_array_from_single_device_arrays(shape, sharding_spec, arrays)

# sharded_array has shape (input_size,) but is distributed across devices
gathered = allgather(sharded_array, tiled=True)
print_on_process_0(f"Input array: {gathered}")

# warp_result has the same shape and sharding as sharded_array
warp_result = warp_distributed_operator(sharded_array)

# allgather collects results from all devices, resulting in a full array of shape (input_size,)
gathered = allgather(warp_result, tiled=True)
print_on_process_0("Warp Output:", gathered)
'''


@pytest.mark.usefixtures("host")
def test_jax_distributed_computation_of_two_processes(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu", "PORT": port}
    processes = [
        subprocess.Popen(
            [sys.executable, str(file)],
            env={**os.environ, **flags, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=300) for process in processes]
    for process, (_, errors) in zip(processes, outputs):
        assert process.returncode == 0, errors
    numbers = " ".join(outputs[0][0].replace("[", " ").replace("]", " ").split())
    assert "Running on 4 GPU(s)" in numbers
    assert "Warp Output: " + " ".join(f"{2 * k}." for k in range(20)) in numbers
    assert "Warp Output" not in outputs[1][0]
