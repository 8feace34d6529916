"""What programs for Warp say that is not about kernels: memory pools, peers, versions and caches, which need no care here."""

import pytest

import weft as wp


def test_pools_and_caches_are_spoken_of_and_change_nothing(device):
    assert wp.get_cuda_driver_version() is None and wp.get_cuda_toolkit_version() is None
    wp.set_mempool_enabled(device, False)
    wp.set_mempool_release_threshold(device, 0.5)
    assert wp.get_mempool_release_threshold(device) == 0
    wp.clear_kernel_cache()
    wp.clear_lto_cache()
    with wp.ScopedMempool(device, False):
        assert wp.ones(3, dtype=float).numpy().tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="nowhere"):
        wp.set_mempool_enabled("nowhere", True)


def test_a_device_uses_its_own_memory_alone(cpu):
    wp.set_peer_access_enabled("cpu", "cpu", True)
    wp.set_mempool_access_enabled("cpu", "reference", False)
    with pytest.raises(RuntimeError, match="reference cannot use the memory of cpu"):
        wp.set_peer_access_enabled("cpu", "reference", True)


def test_the_rotation_between_vectors(device):
    @wp.kernel
    def k(out: wp.array(dtype=wp.vec3)):
        q = wp.quat_between_vectors(wp.vec3(2.0, 0.0, 0.0), wp.vec3(0.0, 0.0, 3.0))
        out[0] = wp.quat_rotate(q, wp.vec3(1.0, 0.0, 0.0))

    out = wp.zeros(1, dtype=wp.vec3)
    wp.launch(k, dim=1, inputs=[out])
    assert abs(out.numpy()[0] - [0.0, 0.0, 1.0]).max() < 1e-6
