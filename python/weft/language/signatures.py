"""The functions of the library as kernels call them: names and types of parameters, by which arguments are matched,
literals adapt, and messages and stubs are written. What the functions do is the library's, in C++.
"""

import re

from ..types import matrices, quaternions, scalars, vectors
from ..types.named import NAMED

# S, F and I stand for one scalar type, any, floating-point or integer; v[n, S] is a vector, m[r, c, S] a matrix, q[F] a
# quaternion, t[F] a transform. Letters in shapes stand for one extent each.
TABLE = """
min(a: S, b: S)
min(a: v[n, S], b: v[n, S])
min(a: v[n, S])
max(a: S, b: S)
max(a: v[n, S], b: v[n, S])
max(a: v[n, S])
clamp(x: S, low: S, high: S)
abs(x: S)
abs(x: v[n, S])
sign(x: S)
sign(x: v[n, S])
step(x: S)
nonzero(x: S)
sin(x: F)
cos(x: F)
acos(x: F)
asin(x: F)
sqrt(x: F)
rsqrt(x: F)
cbrt(x: F)
tan(x: F)
atan(x: F)
atan2(y: F, x: F)
sinh(x: F)
cosh(x: F)
tanh(x: F)
degrees(x: F)
radians(x: F)
log(x: F)
log1p(x: F)
log2(x: F)
log10(x: F)
exp(x: F)
exp2(x: F)
expm1(x: F)
pow(x: F, y: F)
erf(x: F)
erfc(x: F)
erfinv(x: F)
erfcinv(x: F)
round(x: F)
rint(x: F)
trunc(x: F)
floor(x: F)
ceil(x: F)
frac(x: F)
fma(a: F, b: F, c: F)
popcount(x: I)
mul_hi(a: I, b: I)
isfinite(a: F)
isfinite(a: v[n, F])
isfinite(a: q[F])
isfinite(a: m[r, c, F])
isnan(a: F)
isnan(a: v[n, F])
isnan(a: q[F])
isnan(a: m[r, c, F])
isinf(a: F)
isinf(a: v[n, F])
isinf(a: q[F])
isinf(a: m[r, c, F])
lerp(a: F, b: F, t: F)
lerp(a: v[n, F], b: v[n, F], t: F)
lerp(a: m[r, c, F], b: m[r, c, F], t: F)
lerp(a: q[F], b: q[F], t: F)
lerp(a: t[F], b: t[F], t: F)
smoothstep(a: F, b: F, x: F)
dot(a: v[n, S], b: v[n, S])
dot(a: q[F], b: q[F])
ddot(a: m[r, c, S], b: m[r, c, S])
argmin(a: v[n, S])
argmax(a: v[n, S])
outer(a: v[n, S], b: v[k, S])
cross(a: v[3, S], b: v[3, S])
skew(vec: v[3, S])
length(a: v[n, F])
length(a: q[F])
length_sq(a: v[n, S])
length_sq(a: q[F])
normalize(a: v[n, F])
normalize(a: q[F])
transpose(a: m[r, c, S])
inverse(a: m[2, 2, F])
inverse(a: m[3, 3, F])
inverse(a: m[4, 4, F])
determinant(a: m[2, 2, F])
determinant(a: m[3, 3, F])
determinant(a: m[4, 4, F])
trace(a: m[n, n, S])
diag(vec: v[n, S])
get_diag(mat: m[n, n, S])
cw_mul(a: v[n, S], b: v[n, S])
cw_mul(a: m[r, c, S], b: m[r, c, S])
cw_div(a: v[n, S], b: v[n, S])
cw_div(a: m[r, c, S], b: m[r, c, S])
svd3(A: m[3, 3, F])
svd2(A: m[2, 2, F])
qr3(A: m[3, 3, F])
eig3(A: m[3, 3, F])
quat_from_axis_angle(axis: v[3, F], angle: F)
quat_to_axis_angle(quat: q[F])
quat_from_matrix(mat: m[3, 3, F])
quat_from_matrix(mat: m[4, 4, F])
quat_rpy(roll: F, pitch: F, yaw: F)
quat_inverse(quat: q[F])
quat_rotate(quat: q[F], vec: v[3, F])
quat_rotate_inv(quat: q[F], vec: v[3, F])
quat_slerp(a: q[F], b: q[F], t: F)
quat_to_matrix(quat: q[F])
quat_between(a: v[3, F], b: v[3, F])
transform_get_translation(xform: t[F])
transform_get_rotation(xform: t[F])
transform_multiply(a: t[F], b: t[F])
transform_point(xform: t[F], point: v[3, F])
transform_point(mat: m[4, 4, F], point: v[3, F])
transform_vector(xform: t[F], vec: v[3, F])
transform_vector(mat: m[4, 4, F], vec: v[3, F])
transform_inverse(xform: t[F])
transform_compose(position: v[3, F], rotation: q[F], scale: v[3, F])
transform_decompose(m: m[4, 4, F])
transform_from_matrix(mat: m[4, 4, F])
transform_to_matrix(xform: t[F])
spatial_adjoint(r: m[3, 3, F], s: m[3, 3, F])
spatial_dot(a: v[6, F], b: v[6, F])
spatial_cross(a: v[6, F], b: v[6, F])
spatial_cross_dual(a: v[6, F], b: v[6, F])
spatial_top(svec: v[6, F])
spatial_bottom(svec: v[6, F])
rand_init(seed: int32)
rand_init(seed: int32, offset: int32)
randi(state: uint32)
randi(state: uint32, low: int32, high: int32)
randu(state: uint32)
randu(state: uint32, low: uint32, high: uint32)
randf(state: uint32)
randf(state: uint32, low: float32, high: float32)
randn(state: uint32)
poisson(state: uint32, lam: float32)
sample_triangle(state: uint32)
sample_unit_ring(state: uint32)
sample_unit_disk(state: uint32)
sample_unit_sphere_surface(state: uint32)
sample_unit_sphere(state: uint32)
sample_unit_hemisphere_surface(state: uint32)
sample_unit_hemisphere(state: uint32)
sample_unit_square(state: uint32)
sample_unit_cube(state: uint32)
noise(state: uint32, x: float32)
noise(state: uint32, xy: vec2)
noise(state: uint32, xyz: vec3)
noise(state: uint32, xyzt: vec4)
pnoise(state: uint32, x: float32, px: int32)
pnoise(state: uint32, xy: vec2, px: int32, py: int32)
pnoise(state: uint32, xyz: vec3, px: int32, py: int32, pz: int32)
pnoise(state: uint32, xyzt: vec4, px: int32, py: int32, pz: int32, pt: int32)
curlnoise(state: uint32, xy: vec2, octaves: uint32 = 1, lacunarity: float32 = 2.0, gain: float32 = 0.5)
curlnoise(state: uint32, xyz: vec3, octaves: uint32 = 1, lacunarity: float32 = 2.0, gain: float32 = 0.5)
curlnoise(state: uint32, xyzt: vec4, octaves: uint32 = 1, lacunarity: float32 = 2.0, gain: float32 = 0.5)
closest_point_edge_edge(p1: vec3, q1: vec3, p2: vec3, q2: vec3, epsilon: float32)
closest_point_triangle(p: vec3, a: vec3, b: vec3, c: vec3)
intersect_tri_tri(v0: v[3, F], v1: v[3, F], v2: v[3, F], u0: v[3, F], u1: v[3, F], u2: v[3, F])
"""

GROUPS = {"S": scalars.SCALARS, "F": scalars.FLOATS, "I": scalars.INTEGERS}


class Parameter:
    """A parameter of one form: its name, its pattern, and its default."""

    __slots__ = ("default", "kind", "name", "scalar", "shape")

    def __init__(self, text):
        text, _, default = text.partition(" = ")
        self.name, _, pattern = (part.strip() for part in text.partition(":"))
        self.default = None if not default else float(default) if "." in default else int(default)
        kind, _, inside = pattern.rstrip("]").partition("[")
        if inside:
            self.kind = {"v": "vector", "m": "matrix", "q": "quaternion", "t": "transform"}[kind]
            *shape, self.scalar = (part.strip() for part in inside.split(","))
            self.shape = tuple(int(n) if n.isdigit() else n for n in shape)
        elif pattern in GROUPS:
            self.kind, self.shape, self.scalar = "scalar", (), pattern
        else:
            named = NAMED.get(pattern)
            self.kind = "scalar" if named is None else named.native.kind
            self.shape = () if named is None else named._shape_
            self.scalar = getattr(scalars, pattern) if named is None else named._wp_scalar_type_

    def unify(self, cls, bound):
        """Whether a type fits, given what letters stand for, which it may fix."""
        if cls.native.kind != self.kind:
            return False
        for want, has in zip(self.shape, cls._shape_ if self.kind != "scalar" else ()):
            if bound.setdefault(want, has) != has if isinstance(want, str) else want != has:
                return False
        return self.unify_scalar(scalars.OF_CODE[cls.native.code], bound)

    def unify_scalar(self, scalar, bound):
        if isinstance(self.scalar, str):
            return scalar in GROUPS[self.scalar] and bound.setdefault(self.scalar, scalar) is scalar
        return scalar is self.scalar

    def type_for(self, bound):
        """The type of the parameter, given what letters stand for; None if something is open."""
        scalar = bound.get(self.scalar) if isinstance(self.scalar, str) else self.scalar
        shape = tuple(bound.get(n) if isinstance(n, str) else n for n in self.shape)
        if scalar is None or None in shape:
            return None
        return {
            "scalar": lambda: scalar,
            "vector": lambda: vectors.vector(shape[0], scalar),
            "matrix": lambda: matrices.matrix(shape, scalar),
            "quaternion": lambda: quaternions.quaternion(scalar),
            "transform": lambda: quaternions.transformation(scalar),
        }[self.kind]()


class Form:
    """One line of TABLE."""

    def __init__(self, line):
        self.text = line
        inside = line[line.index("(") + 1 : -1]
        parts = [p for p in re.split(r",\s*(?=\w+:)", inside) if p]
        self.parameters = [Parameter(p) for p in parts]

    def arrange(self, args, keywords):
        """The arguments in the order of the parameters, defaults as Python numbers; None if they do not fit."""
        if len(args) > len(self.parameters):
            return None
        arranged = list(args)
        for parameter in self.parameters[len(args) :]:
            if parameter.name in keywords:
                arranged.append(keywords[parameter.name])
            elif parameter.default is not None:
                arranged.append(parameter.default)
            else:
                return None
        used = {p.name for p in self.parameters[len(args) :]}
        return arranged if set(keywords) <= used else None


def _parse():
    forms = {}
    for line in TABLE.strip().splitlines():
        forms.setdefault(line[: line.index("(")], []).append(Form(line))
    return forms


FORMS = _parse()
"""Name to forms."""
