"""Gradients that pass to the points of meshes which kernels name by their ids."""

import numpy as np
import pytest

import weft as wp

pytestmark = pytest.mark.usefixtures("device")

POINTS = np.array([[0, 0, 0], [1, 0, 0.2], [0, 1, -0.3], [1, 1, 0.4]], dtype=np.float32)
TRIANGLES = np.array([0, 1, 2, 1, 3, 2])


def a_mesh(points, requires_grad=True):
    return wp.Mesh(wp.array(points, dtype=wp.vec3, requires_grad=requires_grad), wp.array(TRIANGLES, dtype=int))


@wp.kernel
def heights(mesh: wp.uint64, starts: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    hit = wp.mesh_query_ray(mesh, starts[i], wp.vec3(0.1, 0.0, -1.0), 10.0)
    if hit.result:
        wp.atomic_add(loss, 0, hit.t * hit.t)


@wp.kernel
def distances(mesh: wp.uint64, starts: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    hit = wp.mesh_query_point_no_sign(mesh, starts[i], 10.0)
    away = wp.mesh_eval_position(mesh, hit.face, hit.u, hit.v) - starts[i]
    wp.atomic_add(loss, 0, wp.dot(away, away))


@wp.func
def corner(mesh: wp.uint64, k: int):
    arrays = wp.mesh_get(mesh)
    return arrays.points[arrays.indices[k]]


@wp.kernel
def areas(mesh: wp.uint64, starts: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    for face in range(2):
        a, b, c = corner(mesh, 3 * face), corner(mesh, 3 * face + 1), corner(mesh, 3 * face + 2)
        wp.atomic_add(loss, 0, wp.length_sq(wp.cross(b - a, c - a)))
        wp.atomic_add(loss, 0, wp.mesh_eval_face_normal(mesh, face)[0])


STARTS = np.array([[0.2, 0.3, 1.0], [0.7, 0.8, 1.5], [0.4, 0.1, 2.0], [5.0, 5.0, 1.0]], dtype=np.float32)


def loss_of(kernel, points):
    """The loss, and the gradient of the points by a tape."""
    mesh, loss = a_mesh(points), wp.zeros(1, requires_grad=True)
    starts = wp.array(STARTS, dtype=wp.vec3)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1 if kernel is areas else len(STARTS), inputs=[mesh.id, starts, loss])
    tape.backward(loss)
    return loss.numpy()[0], mesh.points.grad.numpy()


@pytest.mark.parametrize("kernel", [heights, distances, areas], ids=lambda k: k.key)
def test_gradients_of_points_are_those_of_differences(kernel):
    _, gradient = loss_of(kernel, POINTS)
    assert np.abs(gradient).max() > 0.1
    step, expected = 2e-3, np.zeros_like(POINTS)
    for k in np.ndindex(POINTS.shape):
        ends = []
        for sign in (1, -1):
            moved = POINTS.copy()
            moved[k] += sign * step
            ends.append(float(loss_of(kernel, moved)[0]))
        expected[k] = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(gradient, expected, rtol=2e-2, atol=2e-2)


def test_one_kernel_serves_with_gradients_and_without():
    starts = wp.array(STARTS, dtype=wp.vec3, requires_grad=True)
    results = []
    for requires_grad in (False, True, False, True):
        mesh, loss = a_mesh(POINTS, requires_grad), wp.zeros(1, requires_grad=True)
        wp.launch(heights, dim=4, inputs=[mesh.id, starts, wp.zeros(1)])
        starts.grad.zero_()
        with wp.Tape() as tape:
            wp.launch(heights, dim=4, inputs=[mesh.id, starts, loss])
        tape.backward(loss)
        results.append((loss.numpy()[0], starts.grad.numpy().copy()))
        assert (mesh.points.grad is not None) == requires_grad
    for value, gradient in results[1:]:
        np.testing.assert_allclose(value, results[0][0], rtol=1e-6)
        np.testing.assert_allclose(gradient, results[0][1], rtol=1e-5, atol=1e-6)


@wp.struct
class Scene:
    weight: float
    mesh: wp.uint64
    starts: wp.array(dtype=wp.vec3)


def test_the_meshes_of_structs_and_of_two_arguments_have_gradients():
    @wp.kernel
    def both(scene: Scene, other: wp.uint64, loss: wp.array(dtype=float)):
        i = wp.tid()
        first = wp.mesh_query_ray(scene.mesh, scene.starts[i], wp.vec3(0.0, 0.0, -1.0), 10.0)
        second = wp.mesh_query_ray(other, scene.starts[i], wp.vec3(0.0, 0.0, -1.0), 10.0)
        if first.result and second.result:
            wp.atomic_add(loss, 0, scene.weight * first.t + second.t)

    mesh, other = a_mesh(POINTS), a_mesh(POINTS - np.float32([0, 0, 1]), requires_grad=False)
    scene = Scene()
    scene.weight, scene.mesh, scene.starts = 3.0, mesh.id, wp.array(STARTS, dtype=wp.vec3)
    loss = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(both, dim=4, inputs=[scene, other.id, loss])
    tape.backward(loss)
    # Each of three rays down moves with the height of its face: the weights of the corners add up to one.
    np.testing.assert_allclose(mesh.points.grad.numpy()[:, 2].sum(), -9.0, rtol=1e-4)


def test_a_mesh_is_fitted_to_rays_by_descent():
    target = 0.5
    mesh = a_mesh(POINTS)
    starts = wp.array(STARTS[:3], dtype=wp.vec3)

    @wp.kernel
    def misfit(mesh: wp.uint64, starts: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
        i = wp.tid()
        hit = wp.mesh_query_ray(mesh, starts[i], wp.vec3(0.0, 0.0, -1.0), 10.0)
        height = starts[i][2] - hit.t - target
        wp.atomic_add(loss, 0, height * height)

    losses = []
    for _ in range(60):
        loss = wp.zeros(1, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(misfit, dim=3, inputs=[mesh.id, starts, loss])
        tape.backward(loss)
        losses.append(loss.numpy()[0])
        step = mesh.points.grad.numpy() * [0, 0, 0.3]
        mesh.points.assign((mesh.points.numpy() - step).astype(np.float32))
        mesh.points.grad.zero_()
        mesh.refit()
    assert losses[0] > 0.1 and losses[-1] < 1e-3


def test_a_kernel_with_other_structures_says_why_no_gradient_passes():
    @wp.kernel
    def mixed(mesh: wp.uint64, grid: wp.uint64, loss: wp.array(dtype=float)):
        for _i in wp.hash_grid_query(grid, wp.vec3(0.0), 0.5):
            loss[0] += wp.mesh_query_point_no_sign(mesh, wp.vec3(0.2, 0.2, 1.0), 10.0).u

    mesh, grid = a_mesh(POINTS), wp.HashGrid(4, 4, 4)
    grid.build(wp.zeros(1, dtype=wp.vec3), 1.0)
    loss = wp.zeros(1, requires_grad=True)
    with wp.Tape(), pytest.raises(wp.Error, match="finds meshes by their handles"):
        wp.launch(mixed, dim=1, inputs=[mesh.id, grid.id, loss])
