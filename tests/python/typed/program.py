"""A program that uses much of the package: type checkers accept it in their strictest mode, and it runs."""

import numpy as np

import weft as wp

COUNT = 64
GRAVITY = wp.constant(9.81)


@wp.struct
class Spring:
    rest: float
    stiffness: float
    anchor: wp.vec3


@wp.func
def stretch(spring: Spring, x: wp.vec3) -> wp.vec3:
    offset = x - spring.anchor
    length = wp.length(offset)
    if length == 0.0:
        return wp.vec3()
    return offset * (-spring.stiffness * (length - spring.rest) / length)


@wp.kernel
def push(spring: Spring, x: wp.array[wp.vec3], v: wp.array[wp.vec3], dt: float) -> None:
    i = wp.tid()
    force = stretch(spring, x[i]) - wp.vec3(0.0, GRAVITY, 0.0)
    v[i] = v[i] + force * dt
    x[i] = x[i] + v[i] * dt


@wp.kernel
def energy(x: wp.array[wp.vec3], total: wp.array[float]) -> None:
    i = wp.tid()
    height = wp.max(wp.dot(x[i], wp.vec3(0.0, 1.0, 0.0)), 0.0)
    wp.atomic_add(total, 0, height + 0.5 * wp.length_sq(x[i]))


@wp.kernel
def turn(q: wp.quat, xform: wp.transform, m: wp.mat33, x: wp.array2d[wp.vec3d], out: wp.array[float]) -> None:
    i, j = wp.tid()
    axis, angle = wp.normalize(x[i, j]), wp.float64(0.5)
    turned = wp.quat_rotate(wp.quat_from_axis_angle(axis, angle), x[i, j] * 2.0)
    small = wp.vec3(float(turned.x), float(turned[1]), float(wp.clamp(turned.z, -1.0, 1.0)))
    moved = wp.transform_point(xform, m * wp.quat_rotate(q, small))
    row = wp.transpose(m)[0]
    wp.atomic_max(out, i, moved.x + row[0] + wp.determinant(m))


@wp.kernel
def draw(seed: int, out: wp.array[float], hits: wp.array[int]) -> None:
    i = wp.tid()
    state = wp.rand_init(seed, i)
    out[i] = wp.randf(state, -1.0, 1.0)
    hits[wp.min(wp.randi(state, 0, 4), 3)] += 1


@wp.kernel
def closest(mesh: wp.uint64, points: wp.array[wp.vec3], distance: wp.array[float]) -> None:
    i = wp.tid()
    query = wp.mesh_query_point(mesh, points[i], 10.0)
    if query.result:
        found = wp.mesh_eval_position(mesh, query.face, query.u, query.v)
        distance[i] = query.sign * wp.length(found - points[i])


def simulate(device: wp.Device) -> float:
    spring = Spring()
    spring.rest, spring.stiffness, spring.anchor = 0.5, 10.0, wp.vec3(0.0, 1.0, 0.0)
    rng = np.random.default_rng(1)
    x = wp.array(rng.random((COUNT, 3)), dtype=wp.vec3, device=device, requires_grad=True)
    v = wp.zeros_like(x)
    total = wp.zeros(1, dtype=float, device=device, requires_grad=True)
    with wp.Tape() as tape:
        for _ in range(3):
            wp.launch(push, dim=COUNT, inputs=[spring, x, v, 0.01], device=device)
        wp.launch(energy, dim=COUNT, inputs=[x, total], device=device)
    tape.backward(total)
    gradient: wp.array[wp.vec3] = tape.gradients[x]
    assert gradient.shape == (COUNT,) and np.isfinite(gradient.numpy()).all()
    with wp.ScopedCapture(device) as capture:
        wp.launch(energy, dim=x.shape, inputs=[x, total], device=device)
    wp.capture_launch(capture.graph)
    return float(total.numpy()[0])


def ask(device: wp.Device) -> list[float]:
    corners = wp.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=wp.vec3, device=device)
    indices = wp.array([0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2], dtype=int, device=device)
    mesh = wp.Mesh(corners, indices)
    distance = wp.zeros(4, dtype=float, device=device)
    wp.launch(closest, dim=4, inputs=[mesh.id, corners, distance], device=device)
    out, hits = wp.zeros(8, device=device), wp.zeros(4, dtype=int, device=device)
    wp.launch(draw, dim=8, inputs=[7, out, hits], device=device)
    assert int(hits.numpy().sum()) == 8 and abs(float(out[0:1].numpy()[0])) <= 1.0
    grid = wp.full((2, 3), wp.vec3d(0.0, 1.0, 0.0), dtype=wp.vec3d, device=device)
    turned = wp.zeros(2, dtype=float, device=device)
    place = wp.transform(wp.vec3(1.0, 0.0, 0.0), wp.quat_identity())
    wp.launch(turn, dim=(2, 3), inputs=[wp.quat_identity(), place, wp.identity(3, float), grid, turned], device=device)
    return [*distance.list(), *turned.list()]


if __name__ == "__main__":
    with wp.ScopedDevice("cpu" if wp.is_cpu_available() else "reference") as chosen:
        print(f"{simulate(chosen):.4f}", ask(chosen))
