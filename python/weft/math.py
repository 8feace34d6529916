"""Functions that are written in the kernel language itself: norms, and helpers for rotations and rigid bodies."""

from typing import Any

import weft as wp


@wp.func
def norm_l1(v: Any):
    """The sum of the components' magnitudes."""
    n = wp.abs(v[0])
    for k in range(1, len(v)):
        n = n + wp.abs(v[k])
    return n


@wp.func
def norm_l2(v: Any):
    """The length."""
    return wp.length(v)


@wp.func
def norm_huber(v: Any, delta: float = 1.0):
    """Half the square of the length up to `delta`, and a straight line beyond."""
    a = wp.dot(v, v)
    if a <= delta * delta:
        return 0.5 * a
    return delta * (wp.sqrt(a) - 0.5 * delta)


@wp.func
def norm_pseudo_huber(v: Any, delta: float = 1.0):
    """The root of the sum of the squares of the length and of `delta`, which is positive."""
    return wp.sqrt(delta * delta + wp.dot(v, v))


@wp.func
def smooth_normalize(v: Any, delta: float = 1.0):
    """The vector divided by its pseudo-Huber norm, which is smooth at zero."""
    return v / norm_pseudo_huber(v, delta)


@wp.func
def velocity_at_point(qd: wp.spatial_vector, r: wp.vec3):
    """The velocity of point r of a body with the twist qd."""
    return wp.cross(wp.spatial_top(qd), r) + wp.spatial_bottom(qd)


@wp.func
def quat_twist(axis: wp.vec3, q: wp.quat):
    """The part of a rotation that turns around an axis."""
    a = wp.vec3(q[0], q[1], q[2])
    proj = wp.dot(a, axis)
    a = proj * axis
    return wp.normalize(wp.quat(a[0], a[1], a[2], q[3]))


@wp.func
def quat_twist_angle_signed(axis: wp.vec3, q: wp.quat):
    """The angle by which a rotation turns around an axis, between -2 pi and 2 pi."""
    return 2.0 * wp.atan2(wp.dot(axis, wp.vec3(q[0], q[1], q[2])), q[3])


@wp.func
def quat_twist_angle(axis: wp.vec3, q: wp.quat):
    """The angle by which a rotation turns around an axis, without its sign."""
    return 2.0 * wp.atan2(wp.abs(wp.dot(axis, wp.vec3(q[0], q[1], q[2]))), q[3])


@wp.func
def quat_to_rpy(q: wp.quat):
    """The angles around x, y and z, turned in this order around fixed axes."""
    roll = wp.atan2(2.0 * (q[3] * q[0] + q[1] * q[2]), 1.0 - 2.0 * (q[0] * q[0] + q[1] * q[1]))
    pitch = wp.asin(wp.clamp(2.0 * (q[3] * q[1] - q[2] * q[0]), -1.0, 1.0))
    yaw = wp.atan2(2.0 * (q[3] * q[2] + q[0] * q[1]), 1.0 - 2.0 * (q[1] * q[1] + q[2] * q[2]))
    return wp.vec3(roll, pitch, yaw)


@wp.func
def transform_twist(t: wp.transform, x: wp.spatial_vector):
    """A twist in the frame that a transform leads to."""
    q = wp.transform_get_rotation(t)
    p = wp.transform_get_translation(t)
    w = wp.quat_rotate(q, wp.spatial_top(x))
    v = wp.quat_rotate(q, wp.spatial_bottom(x)) + wp.cross(p, w)
    return wp.spatial_vector(w, v)


@wp.func
def transform_wrench(t: wp.transform, x: wp.spatial_vector):
    """A wrench in the frame that a transform leads to."""
    q = wp.transform_get_rotation(t)
    p = wp.transform_get_translation(t)
    v = wp.quat_rotate(q, wp.spatial_bottom(x))
    w = wp.quat_rotate(q, wp.spatial_top(x)) + wp.cross(p, v)
    return wp.spatial_vector(w, v)


@wp.func
def rotation_about(axis: int, angle: float):
    """The rotation around coordinate axis 0, 1 or 2."""
    v = wp.vec3()
    v[axis] = 1.0
    return wp.quat_from_axis_angle(v, angle)


@wp.func
def quat_between_vectors(a: wp.vec3, b: wp.vec3):
    """The shortest rotation that takes the direction of a to that of b."""
    return wp.quat_between(a, b)


@wp.func
def quat_from_euler(e: wp.vec3, i: int, j: int, k: int):
    """The rotation around fixed axis i, then j, then k, which are three different ones, by the angles e[i], e[j], e[k]."""
    return rotation_about(k, e[k]) * rotation_about(j, e[j]) * rotation_about(i, e[i])


@wp.func
def quat_to_euler(q: wp.quat, i: int, j: int, k: int):
    """The angles for quat_from_euler(): that of axis j is between -pi/2 and pi/2. Where it is at an end, the other two are
    not unique, and are some that give the rotation.
    """
    m = wp.quat_to_matrix(q)
    s = 1.0
    if (j - k + 3) % 3 != 1:
        s = -1.0
    last = wp.atan2(-s * m[j, i], m[i, i])
    middle = wp.atan2(s * m[k, i], wp.sqrt(m[i, i] * m[i, i] + m[j, i] * m[j, i]))
    # What is left after the last rotation is undone tells the first one, also where the middle one is at an end.
    across = wp.cos(last) * m[j, k] + s * wp.sin(last) * m[i, k]
    along = wp.cos(last) * m[j, j] + s * wp.sin(last) * m[i, j]
    e = wp.vec3()
    e[i] = wp.atan2(s * across, along)
    e[j] = middle
    e[k] = last
    return e
