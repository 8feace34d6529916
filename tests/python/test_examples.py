"""The examples in Python: small runs of each, checked against formulas and brute force."""

import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import weft as wp

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
sys.path.insert(0, str(FOLDER))

pytestmark = pytest.mark.usefixtures("cpu")


@pytest.mark.parametrize("name", ["grains", "ocean", "sph", "throw"])
def test_each_runs_from_its_command_line(name, tmp_path):
    small = {
        "grains": ["--count", "200", "--frames", "2", "--save", str(tmp_path)],
        "ocean": ["--size", "32", "--frames", "2", "--save", str(tmp_path)],
        "sph": ["--count", "200", "--frames", "2", "--save", str(tmp_path)],
        "throw": ["--balls", "4", "--rounds", "2"],
    }
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--device", "cpu", *small[name]]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()
    if "--save" in small[name]:
        assert len(list(tmp_path.glob("*.npy"))) == 2


def test_forces_between_grains_are_those_of_all_pairs():
    import grains

    heap = grains.Heap(300)
    heap.x = wp.array(heap.x.numpy() * 0.9, dtype=wp.vec3)  # they overlap
    heap.advance(0, 0.0)
    heap.grid.build(heap.x, grains.REACH)
    wp.launch(grains.forces, dim=300, inputs=[heap.grid.id, heap.x, heap.v, heap.force])
    x, v = heap.x.numpy().astype(np.float64), heap.v.numpy().astype(np.float64)
    apart = x[:, None] - x[None, :]
    distance = np.linalg.norm(apart, axis=-1)
    near = (distance > 0) & (distance < grains.REACH)
    assert near.sum() > 300
    away = apart / np.where(distance > 0, distance, 1.0)[..., None]
    motion = v[:, None] - v[None, :]
    approach = (away * motion).sum(axis=-1)
    push = grains.STIFFNESS * (grains.REACH - distance) - grains.DAMPING * np.minimum(approach, 0.0)
    across = motion - away * approach[..., None]
    speed = np.linalg.norm(across, axis=-1)
    against = np.minimum(speed * grains.RUB, push * 0.5) / np.maximum(speed, 1e-12)
    force = (near[..., None] * (away * push[..., None] - across * against[..., None])).sum(axis=1)
    force[:, 1] -= grains.GRAVITY * grains.MASS
    floor = x[:, 1] < grains.RADIUS
    assert not floor.any()
    assert np.allclose(heap.force.numpy(), force, rtol=1e-4, atol=1e-3)


def test_a_heap_of_grains_loses_energy_and_stays_above_the_floor():
    import grains

    heap = grains.Heap(500)
    before = heap.energy()
    heap.advance(1200, 1.0 / 960.0)
    x = heap.x.numpy()
    assert np.isfinite(x).all() and heap.energy() < 0.8 * before
    assert x[:, 1].min() > 0.5 * grains.RADIUS


def test_densities_of_water_are_those_of_all_pairs_and_forces_cancel():
    import sph

    water = sph.Water(400)
    water.v = wp.array(np.random.default_rng(2).normal(size=(400, 3)), dtype=wp.vec3)
    water.grid.build(water.x, sph.REACH)
    wp.launch(sph.densities, dim=400, inputs=[water.grid.id, water.x, water.density])
    x = water.x.numpy().astype(np.float64)
    square = ((x[:, None] - x[None, :]) ** 2).sum(axis=-1)
    kernel = 315.0 / (64.0 * np.pi * sph.REACH**9) * np.maximum(sph.REACH**2 - square, 0.0) ** 3
    assert np.allclose(water.density.numpy(), sph.MASS * kernel.sum(axis=1), rtol=1e-4)
    inputs = [water.grid.id, water.x, water.v, water.density]
    wp.launch(sph.forces, dim=400, inputs=inputs, outputs=[water.acceleration])
    density = water.density.numpy().astype(np.float64)
    force = (water.acceleration.numpy() - [0.0, -9.81, 0.0]) * density[:, None]
    # Each pair's forces differ by the densities by which they are divided alone.
    assert np.abs((force * density[:, None]).sum(axis=0)).max() < 2e-2 * np.abs(force * density[:, None]).sum()
    water.advance(200)
    x = water.x.numpy()
    assert np.isfinite(x).all() and x[:, 1].min() >= 0.0 and x[:, 0].max() <= sph.WIDTH


def test_the_surface_of_the_ocean_is_the_sum_of_its_waves():
    import ocean

    sea = ocean.Ocean(16, floats=20)
    sea.advance(1.5)
    sea.advance(0.25)
    wave = sea.wave.numpy().astype(np.float64).reshape(-1, 2)
    start = np.ascontiguousarray(sea.start.numpy()).view(np.complex64).astype(np.complex128).reshape(-1)
    opposite = np.ascontiguousarray(sea.opposite.numpy()).view(np.complex64).astype(np.complex128).reshape(-1)
    phase = np.sqrt(9.81 * np.linalg.norm(wave, axis=1)) * 1.75
    amplitude = start * np.exp(1j * phase) + np.conj(opposite) * np.exp(-1j * phase)
    places = np.stack(np.meshgrid(np.arange(16), np.arange(16), indexing="ij"), axis=-1).reshape(-1, 2) * sea.spacing
    heights = (amplitude[None] * np.exp(1j * places @ wave.T)).sum(axis=1)
    assert np.abs(heights.imag).max() < 1e-3 * np.abs(heights.real).max()
    assert np.allclose(sea.heights.numpy().reshape(-1), heights.real, atol=1e-3)
    floats = sea.floats.numpy()
    assert np.abs(floats[:, 1]).max() <= np.abs(sea.heights.numpy()).max() + 1e-3


def test_the_gradient_of_flights_is_that_of_differences():
    import throw

    throws = throw.Throws(3, steps=50)
    tape = throws.gradient()
    gradient = throws.v[0].grad.numpy().copy()
    tape.zero()
    start = throws.v[0].numpy().copy()
    for ball in range(3):
        for axis in range(3):
            losses = []
            for sign in (1.0, -1.0):
                moved = start.copy()
                moved[ball, axis] += sign * 1e-2
                throws.v[0].assign(moved)
                throws.fly()
                losses.append(float(throws.loss.numpy()[0]))
            assert np.isclose(gradient[ball, axis], (losses[0] - losses[1]) / 2e-2, rtol=2e-2, atol=1e-2)


def test_throws_hit_in_the_end():
    import throw

    throws = throw.Throws(16)
    losses = list(throws.improve(150))
    assert losses[-1] < 0.02 * losses[0]


def test_waves_are_the_same_on_any_number_of_processes(tmp_path):
    pytest.importorskip("mpi4py")
    mpiexec = pathlib.Path(sys.executable).with_name("mpiexec")
    mpiexec = str(mpiexec) if mpiexec.exists() else shutil.which("mpiexec")
    if not mpiexec:
        pytest.skip("there is no mpiexec")
    saved = []
    for ranks in (1, 2, 4):
        file = tmp_path / f"{ranks}.npy"
        command = [mpiexec, "-n", str(ranks), sys.executable, str(FOLDER / "mpi_wave.py")]
        ended = subprocess.run(
            [*command, "--size", "50", "--steps", "60", "--save", str(file)], capture_output=True, text=True, timeout=300
        )
        assert ended.returncode == 0, ended.stderr
        saved.append(np.load(file))
    assert saved[0].std() > 1e-3
    assert np.array_equal(saved[0], saved[1]) and np.array_equal(saved[0], saved[2])
