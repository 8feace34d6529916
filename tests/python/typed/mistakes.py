"""Mistakes that a type checker finds. Each line with one names the code of mypy's message, or several."""

import weft as wp

x = wp.zeros(4, dtype=wp.vec3)
matrix = wp.mat33()

wp.dot(wp.vec3(), wp.vec2())  # call-overload
wp.cross(wp.vec2(), wp.vec2())  # call-overload
wp.normalize(1.0)  # call-overload
wp.sin("angle")  # call-overload
wp.quat_rotate(wp.vec3(), wp.quat())  # call-overload
wp.vec3() + wp.vec2()  # operator
matrix * wp.vec4()  # operator
length: wp.vec3 = wp.length(wp.vec3())  # assignment
wp.launch(print, dim=4, inputs=[x])  # call-overload
wp.zeros(4, dtype=float, devise="cpu").no_such_member()  # attr-defined
wp.Mesh(x, x)  # arg-type
wp.mesh_query_ray(wp.uint64(1), wp.vec3(), wp.vec3())  # call-overload
wp.no_such_function()  # attr-defined
wp.Tape().backwards()  # attr-defined
