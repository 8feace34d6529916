"""The types that have a name of their own: vec3, mat33d, quat, spatial_vector, ..."""

from . import scalars
from .matrices import matrix
from .quaternions import quaternion, transformation
from .vectors import LETTERS, vector

NAMED = {}
"""Name to type, for the package's own namespace."""

for _scalar, _letter in LETTERS.items():
    if _scalar is scalars.bool:
        continue
    for _n in (2, 3, 4):
        NAMED[f"vec{_n}{_letter}"] = vector(_n, _scalar)
    if _scalar in scalars.FLOATS:
        for _n in (2, 3, 4):
            NAMED[f"mat{_n}{_n}{_letter}"] = matrix((_n, _n), _scalar)
        NAMED["quat" + _letter] = quaternion(_scalar)
        NAMED["transform" + _letter] = transformation(_scalar)
        NAMED["spatial_vector" + _letter] = vector(6, _scalar)
        NAMED["spatial_matrix" + _letter] = matrix((6, 6), _scalar)

for _name in ("vec2", "vec3", "vec4", "mat22", "mat33", "mat44", "quat", "transform"):
    NAMED[_name] = NAMED[_name + "f"]
for _name in ("spatial_vector", "spatial_matrix"):
    NAMED[_name] = NAMED[_name + "f"]
NAMED["spatial_transform"] = NAMED["transform"]

globals().update(NAMED)
