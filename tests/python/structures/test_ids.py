"""Ids that launches are given: what names no structure of the kind that the kernel asks is an error that says so."""

from typing import Any

import numpy as np
import pytest

import weft as wp

pytestmark = pytest.mark.usefixtures("device")


def a_mesh():
    points = wp.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=wp.vec3)
    return wp.Mesh(points, wp.array([0, 1, 2], dtype=int))


def a_bvh():
    return wp.Bvh(wp.zeros(1, dtype=wp.vec3), wp.ones(1, dtype=wp.vec3))


def a_grid():
    grid = wp.HashGrid(4, 4, 4)
    grid.build(wp.zeros(1, dtype=wp.vec3), 1.0)
    return grid


def a_volume():
    return wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0, bg_value=3.0)


@wp.kernel
def ask_mesh(mesh: wp.uint64, out: wp.array(dtype=float)):
    hit = wp.mesh_query_point_no_sign(mesh, wp.vec3(0.25, 0.25, 1.0), 10.0)
    out[0] = wp.where(hit.result, 1.0, -1.0)


@wp.kernel
def ask_bvh(out: wp.array(dtype=float), bvh: wp.uint64):
    query = wp.bvh_query_aabb(bvh, wp.vec3(0.1), wp.vec3(0.2))
    found = int(0)
    out[0] = -1.0
    while wp.bvh_query_next(query, found):
        out[0] = 1.0


@wp.kernel
def ask_grid(grid: wp.uint64, out: wp.array(dtype=float)):
    out[0] = -1.0
    for _i in wp.hash_grid_query(grid, wp.vec3(0.0), 0.5):
        out[0] = 1.0


@wp.kernel
def ask_volume(volume: wp.uint64, out: wp.array(dtype=float)):
    out[0] = wp.where(wp.volume_lookup_f(volume, 1, 2, 3) == 3.0, 1.0, -1.0)


MAKERS = {"a mesh": a_mesh, "a hierarchy of boxes": a_bvh, "a hash grid": a_grid, "a volume": a_volume}
KERNELS = {"a mesh": ask_mesh, "a hierarchy of boxes": ask_bvh, "a hash grid": ask_grid, "a volume": ask_volume}


def answer(kernel, number):
    out = wp.zeros(1)
    wp.launch(kernel, dim=1, inputs=[out, number] if kernel is ask_bvh else [number, out])
    return out.numpy()[0]


@pytest.mark.parametrize("kind", KERNELS)
def test_an_id_of_the_right_kind_is_taken(kind):
    structure = MAKERS[kind]()
    assert answer(KERNELS[kind], structure.id) == 1.0
    assert answer(KERNELS[kind], wp.uint64(structure.id)) == 1.0


@pytest.mark.parametrize("kind", KERNELS)
def test_nothing_is_found_by_0(kind):
    assert answer(KERNELS[kind], 0) == -1.0


@pytest.mark.parametrize("kind", KERNELS)
def test_a_number_that_is_no_id_is_refused(kind):
    kernel = KERNELS[kind]
    argument = r"argument 2 \(bvh\)" if kernel is ask_bvh else r"argument 1 \((mesh|grid|volume)\)"
    text = rf'kernel "{kernel.key}", {argument}: 12345 is not the id of {kind} .* gone, or no id at all'
    with pytest.raises(ValueError, match=text):
        answer(kernel, 12345)


@pytest.mark.parametrize("kind", KERNELS)
def test_the_id_of_a_structure_that_is_gone_is_refused(kind):
    structure = MAKERS[kind]()
    number = structure.id
    assert answer(KERNELS[kind], number) == 1.0
    del structure
    with pytest.raises(ValueError, match=f"{number} is not the id of {kind} .* of a structure that is gone"):
        answer(KERNELS[kind], number)


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("other", KERNELS)
def test_the_id_of_another_kind_is_refused(kind, other):
    structure = MAKERS[other]()
    if kind == other:
        assert answer(KERNELS[kind], structure.id) == 1.0
        return
    with pytest.raises(ValueError, match=f"is not the id of {kind} on the device of the launch, but that of {other}"):
        answer(KERNELS[kind], structure.id)


def test_an_id_of_another_device_is_refused():
    devices = [d for d in wp._weft.device_list() if d == "cpu" or d.startswith("vulkan")]
    if len(devices) < 2:
        pytest.skip("there is one device")
    with wp.ScopedDevice(devices[0]):
        mesh = a_mesh()
        assert answer(ask_mesh, mesh.id) == 1.0
    with wp.ScopedDevice(devices[1]), pytest.raises(ValueError, match="but that of a mesh on another device"):
        answer(ask_mesh, mesh.id)


@wp.struct
class Shape:
    weight: float
    mesh: wp.uint64


@wp.struct
class Scene:
    values: wp.array(dtype=float)
    grid: wp.uint64


@wp.func
def distance(mesh: wp.uint64, p: wp.vec3):
    return wp.mesh_query_point_no_sign(mesh, p, 10.0)


def test_ids_in_structs_are_checked():
    @wp.kernel
    def ask(shape: Shape, scene: Scene):
        hit = distance(shape.mesh, wp.vec3(0.25, 0.25, 1.0))
        for _i in wp.hash_grid_query(scene.grid, wp.vec3(0.0), 0.5):
            scene.values[0] = wp.where(hit.result, shape.weight, -1.0)

    mesh, grid = a_mesh(), a_grid()
    shape, scene = Shape(), Scene()
    shape.weight, shape.mesh = 5.0, mesh.id
    scene.values, scene.grid = wp.zeros(1), grid.id
    wp.launch(ask, dim=1, inputs=[shape, scene])
    assert scene.values.numpy()[0] == 5.0
    shape.mesh = grid.id
    with pytest.raises(ValueError, match=r"argument 1 \(shape\.mesh\): \d+ is not the id of a mesh .* a hash grid"):
        wp.launch(ask, dim=1, inputs=[shape, scene])
    shape.mesh, scene.grid = mesh.id, 99
    with pytest.raises(ValueError, match=r"argument 2 \(scene\.grid\): 99 is not the id of a hash grid"):
        wp.launch(ask, dim=1, inputs=[shape, scene])


def test_ids_are_checked_through_functions_names_and_defaults_of_types():
    @wp.kernel
    def ask(mesh: wp.uint64, out: wp.array(dtype=Any)):
        same = mesh
        hit = distance(same, wp.vec3(0.25, 0.25, 1.0))
        out[0] = out.dtype(hit.face)

    mesh = a_mesh()
    for dtype in (float, wp.float64):
        out = wp.full(1, value=7.0, dtype=dtype)
        wp.launch(ask, dim=1, inputs=[mesh.id, out])
        assert out.numpy()[0] == 0
        with pytest.raises(ValueError, match=r"argument 1 \(mesh\)"):
            wp.launch(ask, dim=1, inputs=[mesh.id + 8, out])


def test_a_number_may_be_the_id_of_one_of_two_kinds():
    @wp.kernel
    def ask(kind: int, number: wp.uint64, out: wp.array(dtype=float)):
        if kind == 0:
            out[0] = float(wp.mesh_query_point_no_sign(number, wp.vec3(0.25, 0.25, 1.0), 10.0).face)
        else:
            out[0] = wp.volume_lookup_f(number, 1, 2, 3)

    mesh, volume, grid, out = a_mesh(), a_volume(), a_grid(), wp.zeros(1)
    wp.launch(ask, dim=1, inputs=[0, mesh.id, out])
    assert out.numpy()[0] == 0.0
    wp.launch(ask, dim=1, inputs=[1, volume.id, out])
    assert out.numpy()[0] == 3.0
    with pytest.raises(ValueError, match="is not the id of a mesh or a volume"):
        wp.launch(ask, dim=1, inputs=[1, grid.id, out])


def test_other_numbers_of_64_bits_are_free():
    @wp.kernel
    def ask(seed: wp.uint64, mesh: wp.uint64, out: wp.array(dtype=wp.uint64)):
        if wp.mesh_query_ray(mesh, wp.vec3(0.25, 0.25, 1.0), wp.vec3(0.0, 0.0, -1.0), 10.0).result:
            out[0] = seed + wp.uint64(1)

    mesh, out = a_mesh(), wp.zeros(1, dtype=wp.uint64)
    wp.launch(ask, dim=1, inputs=[12345, mesh.id, out])
    assert out.numpy()[0] == 12346


def test_recorded_and_adjoint_launches_check_ids():
    @wp.kernel
    def ask(mesh: wp.uint64, p: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
        hit = wp.mesh_query_point_no_sign(mesh, p[0], 10.0)
        out[0] = wp.length(p[0] - wp.mesh_eval_position(mesh, hit.face, hit.u, hit.v))

    mesh = a_mesh()
    p = wp.array([[0.25, 0.25, 2.0]], dtype=wp.vec3, requires_grad=True)
    out = wp.zeros(1, requires_grad=True)
    recorded = wp.launch(ask, dim=1, inputs=[mesh.id, p, out], record_cmd=True)
    recorded.launch()
    assert out.numpy()[0] == 2.0
    recorded.set_param_by_name("mesh", 77)
    with pytest.raises(ValueError, match="77 is not the id of a mesh"):
        recorded.launch()
    gradient = wp.zeros(1, dtype=wp.vec3)
    adjoint = {"adj_inputs": [None, gradient], "adj_outputs": [wp.ones(1)], "adjoint": True}
    wp.launch(ask, dim=1, inputs=[mesh.id, p], outputs=[out], **adjoint)
    np.testing.assert_allclose(gradient.numpy(), [[0, 0, 1]])
    with pytest.raises(ValueError, match="77 is not the id of a mesh"):
        wp.launch(ask, dim=1, inputs=[77, p], outputs=[out], **adjoint)


def test_a_kernel_that_cannot_be_traced_says_so_and_not_that_of_its_ids():
    @wp.kernel
    def wrong(mesh: wp.uint64, out: wp.array(dtype=float)):
        out[0] = wp.mesh_eval_position(mesh, 0, 0.5, 0.5) + 1

    with pytest.raises(Exception, match="out\\[0\\] = "):
        wp.launch(wrong, dim=1, inputs=[12345, wp.zeros(1)])
