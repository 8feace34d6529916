"""Questions to meshes, hierarchies of boxes and grids, which kernels name by their ids."""

import ast

from ... import _weft
from ...types import scalars
from ...types.annotations import ArrayType
from ...types.named import NAMED
from ...types.structs import struct
from .. import library, operators
from ..emitter import adapted_to
from ..errors import CodegenError, CodegenKeyError
from ..values import ArrayValue, StructValue, Value

vec3 = NAMED["vec3"]
U64, F32, I32 = scalars.uint64, scalars.float32, scalars.int32
# The kinds of structures, as the module tells them apart, by how the names of their functions begin.
MESH, BVH = 1, 2
ID_KINDS = {"mesh": MESH, "bvh": BVH, "hash": 4, "volume": 8}


@struct
class MeshQueryPoint:
    """The closest point of a mesh: whether there is one, on which side, and where on which face."""

    result: bool
    sign: float
    face: int
    u: float
    v: float


@struct
class MeshQueryRay:
    """The first face that a ray meets: whether there is one, which, and where."""

    result: bool
    sign: float
    face: int
    t: float
    u: float
    v: float
    normal: vec3


@struct
class MeshArrays:
    """The arrays of a mesh, which a kernel reads: positions, three indices for each face, velocities."""

    points: ArrayType(vec3, 1)
    indices: ArrayType(I32, 1)
    velocities: ArrayType(vec3, 1)


class QueryValue:
    """A query that a kernel goes through with a loop."""

    __slots__ = ("key", "limit", "native")
    stays = True  # in the code that began it

    def __init__(self, key, native, limit=None):
        self.key = key
        self.native = native
        self.limit = limit  # of rays and capsules the expression of their length, if there is one

    @property
    def type(self):
        """The query itself: functions that take it are traced in place."""
        return self

    def __str__(self):
        return "query"

    def next(self, found):
        """Emits the step to the next result. Returns whether there is one, and its number, else `found`."""
        more, number = self.native.next(found.id)
        return Value(scalars.bool, (more,)), Value(I32, (number,), nonneg=True)


class RayHits(QueryValue):
    """All hits of a ray, which a kernel goes through with a for loop."""

    def hit(self):
        """Emits the step to the next hit. Returns whether there is one, and the hit."""
        more, t, u, v, sign, normal, face = self.native.next()
        fields = {"sign": sign, "t": t, "u": u, "v": v}
        fields = {name: Value(F32, (number,)) for name, number in fields.items()}
        fields.update(normal=Value(vec3, normal), face=Value(I32, (face,), nonneg=True))
        fields["result"] = found = Value(scalars.bool, (more,))
        return found, StructValue(MeshQueryRay, {name: fields[name] for name in MeshQueryRay._wp_layout_})


class MeshTree:
    """The hierarchy over the triangles of a mesh, which queries of hierarchies take in place of an id."""

    __slots__ = ("mesh",)
    stays = True

    def __init__(self, mesh):
        self.mesh = mesh  # the mesh's id

    @property
    def type(self):
        """The hierarchy itself: functions that take it are traced in place."""
        return self

    def __str__(self):
        return "tree of a mesh"


def typed(name, args, kinds, names=(), id_kind=None):
    r"""The arguments as values of the given types, keywords among them. The first one, if it is an id, is noted as one, so
    that launches check it.

    \param id_kind  of the structure that it names; None: by the function's name
    Errors: CodegenError for others.
    """
    values = [*args.values, *(args.keywords[n] for n in names[len(args) :] if n in args.keywords)]
    made = [adapted_to(v, kind) for v, kind in zip(values, kinds)]
    fits = len(values) <= len(kinds) and all(isinstance(v, Value) for v in made)
    if not fits or any(v.type.native is not kind.native for v, kind in zip(made, kinds)):
        library.no_form(name, values)
    if made and kinds[0] is U64:
        _weft.use_id(made[0].id, id_kind or ID_KINDS[name.partition("_")[0]])
    return made


def results(name, values):
    """The values that a function of the library gives."""
    made = _weft.call(name, tuple(v.type.native for v in values), tuple(v.ids for v in values))
    made = made if isinstance(made, list) else [made]
    return [Value(dtype.python, tuple(ids)) for dtype, ids in made]


def point_query(name, native, names=("id", "point", "max_dist"), signed=True):
    """A function that finds a point of a mesh. Given variables after its inputs, it writes the result into these."""

    def handler(args):
        inputs = typed(name, first(args, 3), (U64, vec3, F32), names)
        if len(inputs) != 3:
            library.no_form(name, args.values)
        hit, sign, u, v, _, face = results(native, inputs)
        given = len(args) - 3
        outputs = [sign, face, u, v] if signed else [face, u, v]
        if given >= len(outputs):
            for k, value in enumerate(outputs):
                args.assign(3 + k, value)
            return hit
        fields = {"result": hit, "sign": sign, "face": face, "u": u, "v": v}
        return StructValue(MeshQueryPoint, fields)

    return handler


class first:
    """The first arguments of a call, without those that it writes to, and its keywords."""

    def __init__(self, args, count):
        self.values = args.values[:count]
        self.keywords = args.keywords

    def __len__(self):
        return len(self.values)


def mesh_query_ray(args):
    """The first face that a ray meets; written into the variables that the call gives after its inputs, if it does."""
    names = ("id", "start", "dir", "max_t")
    if len(args) > 5:
        inputs = typed("mesh_query_ray", first(args, 4), (U64, vec3, vec3, F32))
    else:
        refuse_root("mesh_query_ray", args, 4)
        inputs = typed("mesh_query_ray", first(args, 4), (U64, vec3, vec3, F32), names)
    if len(inputs) != 4:
        library.no_form("mesh_query_ray", args.values)
    hit, t, u, v, sign, normal, face = results("mesh_query_ray", inputs)
    if len(args) > 5:
        if len(args) != 10:
            raise CodegenError("mesh_query_ray() writes t, u, v, sign, normal and face")
        for k, value in enumerate((t, u, v, sign, normal, face)):
            args.assign(4 + k, value)
        return hit
    fields = {"result": hit, "sign": sign, "face": face, "t": t, "u": u, "v": v, "normal": normal}
    return StructValue(MeshQueryRay, fields)


def refuse_root(name, args, count):
    """Refuses the argument `root` of a mesh's query, unless it is -1, which means the whole mesh: there are no groups of
    triangles.
    """
    root = args.keywords.get("root", args.values[count] if len(args) > count else None)
    if root is not None and getattr(root, "literal", None) != -1:
        raise CodegenError(f"{name}(): meshes have no groups of triangles, so that a query has no root but the whole mesh")


def plain(name, native, kinds, names, roots=None):
    """A function whose result is one value."""

    def handler(args):
        if roots is not None:
            refuse_root(name, args, roots)
        inputs = typed(name, first(args, len(kinds)), kinds, names)
        if len(inputs) != len(kinds):
            library.no_form(name, args.values)
        return results(native, inputs)[0]

    return handler


def ray_count(args):
    """The number of faces that a ray meets, however far."""
    inputs = typed("mesh_query_ray_count_intersections", first(args, 3), (U64, vec3, vec3), ("id", "start", "dir"))
    refuse_root("mesh_query_ray_count_intersections", args, 3)
    far = Value(F32, (_weft.constant(_weft.FLOAT32, 3.0e38),))
    return results("mesh_query_ray_count", [*inputs, far])[0]


def begin(name, kinds, names):
    """A function that begins a query."""

    def handler(args):
        grouped = name == "hash_grid_query" and len(args) + len(args.keywords) > len(kinds)
        inputs = typed(name, first(args, len(kinds)), kinds, names)
        if len(inputs) != len(kinds):
            library.no_form(name, args.values)
        parts = [inputs[0].id, *(v.ids for v in inputs[1:])]
        if grouped:
            group = args.keywords.get("group", args.values[-1])
            parts.append(adapted_to(group, I32).ids)
        return QueryValue(name, getattr(_weft, name)(*parts))

    return handler


def tree_query(name, args, kinds, names):
    """The inputs of a query of a hierarchy, and where it begins: the scalar of the root, if one is given, and whether the
    hierarchy is that of a mesh. Errors: CodegenError for other arguments.
    """
    given = first(args, len(kinds))
    tree = given.values[0] if given.values else given.keywords.get("id")
    of_mesh = isinstance(tree, MeshTree)
    if of_mesh:
        given.values = [tree.mesh, *given.values[1:]]
        given.keywords = {n: v for n, v in given.keywords.items() if n != "id"}
    inputs = typed(name, given, kinds, names, MESH if of_mesh else BVH)
    root = args.keywords.get("root", args.values[len(kinds)] if len(args) > len(kinds) else None)
    root = None if root is None else adapted_to(root, I32)
    if len(inputs) != len(kinds) or root is not None and getattr(root, "type", None) is not I32:
        library.no_form(name, [*args.values, *args.keywords.values()])
    whole = root is None or root.literal == -1
    return inputs, (() if whole else root.ids, of_mesh)


def begin_in_tree(name, kinds, names):
    """A function that begins a query of a hierarchy, of all of it or below a root."""

    def handler(args):
        inputs, place = tree_query(name, args, kinds, names)
        return QueryValue(name, getattr(_weft, name)(inputs[0].id, *(v.ids for v in inputs[1:]), *place))

    return handler


def bvh_query_ray(args):
    """Begins a query for the boxes that a ray meets, as far as the steps say, or however far."""
    inputs, place = tree_query("bvh_query_ray", args, (U64, vec3, vec3), ("id", "start", "dir"))
    limit, far = length_of_query(args)
    far = (_weft.constant(_weft.FLOAT32, 3.0e38),) if far is None else far.ids
    native = _weft.bvh_query_ray(inputs[0].id, inputs[1].ids, inputs[2].ids, far, *place)
    return QueryValue("bvh_query_ray", native, limit)


def bvh_query_capsule(args):
    """Begins a query for the boxes that a sphere meets on its way from `start` along `dir`, as far as the steps say.

    Errors: CodegenError where no step says it.
    """
    names = ("id", "start", "dir", "radius")
    inputs, place = tree_query("bvh_query_capsule", args, (U64, vec3, vec3, F32), names)
    limit, far = length_of_query(args)
    if far is None:
        raise CodegenError(
            "a query for a capsule needs its length: go through it with bvh_query_next(query, index, max_dist), where "
            "max_dist is 1.0 for the way from start to start + dir"
        )
    tree, start, way, radius = inputs
    end = operators.binary("add", start, operators.binary("mul", way, far))
    native = _weft.bvh_query_capsule(tree.id, start.ids, end.ids, radius.ids, *place)
    return QueryValue("bvh_query_capsule", native, limit)


def length_of_query(args):
    """The expression of max_dist in the steps of a query that begins, and its value here; None for both without one.

    The walk through a tree takes its length when it begins, and programs for Warp say it at each step. Where they make it
    shorter on the way, they get the boxes of the length at the beginning.
    Errors: CodegenError for steps that differ, and for a length that is not known where the query begins.
    """
    steps = [n for s in args.e.source.body for n in ast.walk(s) if isinstance(n, ast.Call) and is_step_of(n, args)]
    given = [max_dist_of(n) for n in steps]
    limits = {ast.dump(n): n for n in given if n is not None}
    if not limits:
        return None, None
    if len(limits) > 1 or None in given:
        raise CodegenError("the steps of one query have one max_dist")
    limit = next(iter(limits.values()))
    try:
        value = adapted_to(expressions.evaluate(args.e, limit), F32)
    except CodegenKeyError as error:
        raise CodegenError(f"the max_dist of bvh_query_next() is known where its query begins: {error}") from None
    if not isinstance(value, Value) or value.type is not F32:
        raise CodegenError("the max_dist of bvh_query_next() is a float")
    return limit, value


def is_step_of(node, args):
    """Whether a call is a step of the query that the call of `args` begins: the variable that it is assigned to is the
    step's first argument.
    """
    if getattr(node.func, "attr", getattr(node.func, "id", None)) != "bvh_query_next" or not node.args:
        return False
    name = getattr(node.args[0], "id", None)
    assigned = (n for s in args.e.source.body for n in ast.walk(s) if isinstance(n, ast.Assign) and n.value is args.node)
    return any(getattr(target, "id", "") == name for n in assigned for target in n.targets)


def max_dist_of(node):
    """The expression of a step's max_dist; None if it has none."""
    named = [k.value for k in node.keywords if k.arg == "max_dist"]
    return named[0] if named else node.args[2] if len(node.args) > 2 else None


def step(name):
    """A function that goes to the next result and writes its number into the caller's variable."""

    def handler(args):
        if name != "bvh_query_next":
            args.expect(name, 2)
        if len(args) < 2 or len(args) > 3 or not isinstance(args[0], QueryValue):
            library.no_form(name, args.values)
        query, index = args.values[:2]
        limit = max_dist_of(args.node) if name == "bvh_query_next" else None
        if limit is not None and query.limit is None and query.key in ("bvh_query_ray", "bvh_query_capsule"):
            raise CodegenError("the steps that say max_dist stand in the function that begins the query, with its name")
        more, number = query.next(adapted_to(index, I32))
        args.assign(1, number)
        return more

    return handler


def mesh_query_ray_all(args):
    """Begins a query for all hits of a ray, in order: ``for hit in wp.mesh_query_ray_all(id, start, dir, max_t)``."""
    kinds = (U64, vec3, vec3, F32)
    inputs = typed("mesh_query_ray_all", first(args, 4), kinds, ("id", "start", "dir", "max_t"))
    if len(inputs) == 3:
        inputs.append(Value(F32, (_weft.constant(_weft.FLOAT32, 3.0e38),)))
    if len(inputs) != 4:
        library.no_form("mesh_query_ray_all", args.values)
    mesh, start, way, most = inputs
    return RayHits("mesh_query_ray_all", _weft.mesh_query_ray_all(mesh.id, start.ids, way.ids, most.ids))


def mesh_get(args):
    """The arrays of a mesh, to read."""
    (mesh,) = typed_id("mesh_get", args)
    arrays = zip(MeshArrays._wp_layout_.items(), _weft.mesh_arrays(mesh.id))
    return StructValue(MeshArrays, {n: ArrayValue(ReadOnlyRef(ref), kind.dtype, n) for (n, kind), ref in arrays})


def mesh_get_bvh(args):
    """The hierarchy over the triangles of a mesh, for queries of hierarchies."""
    return MeshTree(*typed_id("mesh_get_bvh", args))


def typed_id(name, args):
    """The one argument of a function, an id."""
    inputs = typed(name, args, (U64,), ("id",))
    if len(inputs) != 1:
        library.no_form(name, args.values)
    return inputs


def refused(name, why):
    """A function that there is not."""

    def handler(args):
        raise CodegenError(f"{name}(): {why}")

    return handler


POINT = ("id", "face", "bary_u", "bary_v")

HANDLERS = {
    "mesh_query_point": point_query("mesh_query_point", "mesh_query_point_sign_majority"),
    "mesh_query_point_sign_parity": point_query("mesh_query_point_sign_parity", "mesh_query_point_sign_majority"),
    "mesh_query_point_no_sign": point_query("mesh_query_point_no_sign", "mesh_query_point_no_sign", signed=False),
    "mesh_query_point_sign_normal": point_query("mesh_query_point_sign_normal", "mesh_query_point_sign_normal"),
    "mesh_query_point_sign_winding_number": point_query(
        "mesh_query_point_sign_winding_number", "mesh_query_point_sign_winding"
    ),
    "mesh_query_furthest_point_no_sign": point_query(
        "mesh_query_furthest_point_no_sign", "mesh_query_furthest_point", ("id", "point", "min_dist"), signed=False
    ),
    "mesh_query_ray": mesh_query_ray,
    "mesh_query_ray_anyhit": plain(
        "mesh_query_ray_anyhit", "mesh_query_ray_anyhit", (U64, vec3, vec3, F32), ("id", "start", "dir", "max_t"), 4
    ),
    "mesh_query_ray_count_intersections": ray_count,
    "mesh_eval_position": plain("mesh_eval_position", "mesh_eval_position", (U64, I32, F32, F32), POINT),
    "mesh_eval_velocity": plain("mesh_eval_velocity", "mesh_eval_velocity", (U64, I32, F32, F32), POINT),
    "mesh_eval_face_normal": plain("mesh_eval_face_normal", "mesh_eval_face_normal", (U64, I32), ("id", "face")),
    "mesh_get_point": plain("mesh_get_point", "mesh_get_point", (U64, I32), ("id", "index")),
    "mesh_get_velocity": plain("mesh_get_velocity", "mesh_get_velocity", (U64, I32), ("id", "index")),
    "mesh_get_index": plain("mesh_get_index", "mesh_get_index", (U64, I32), ("id", "index")),
    "mesh_get": mesh_get,
    "mesh_get_bvh": mesh_get_bvh,
    "mesh_get_group_root": refused("mesh_get_group_root", "meshes have no groups of triangles: make a mesh of each group"),
    "mesh_face_count": plain("mesh_face_count", "mesh_face_count", (U64,), ("id",)),
    "mesh_winding_number": plain("mesh_winding_number", "mesh_winding_number", (U64, vec3), ("id", "point")),
    "mesh_query_ray_all": mesh_query_ray_all,
    "bvh_get_group_root": plain("bvh_get_group_root", "bvh_get_group_root", (U64, I32), ("id", "group")),
    "mesh_query_aabb": begin("mesh_query_aabb", (U64, vec3, vec3), ("id", "low", "high")),
    "mesh_query_sphere": begin("mesh_query_sphere", (U64, vec3, F32), ("id", "center", "radius")),
    "bvh_query_aabb": begin_in_tree("bvh_query_aabb", (U64, vec3, vec3), ("id", "low", "high")),
    "bvh_query_ray": bvh_query_ray,
    "bvh_query_sphere": begin_in_tree("bvh_query_sphere", (U64, vec3, F32), ("id", "center", "radius")),
    "bvh_query_capsule": bvh_query_capsule,
    "hash_grid_query": begin("hash_grid_query", (U64, vec3, F32), ("id", "point", "max_dist")),
    "hash_grid_query_next": step("hash_grid_query_next"),
    "mesh_query_next": step("mesh_query_next"),
    "mesh_query_aabb_next": step("mesh_query_aabb_next"),
    "bvh_query_next": step("bvh_query_next"),
    "hash_grid_point_id": plain("hash_grid_point_id", "hash_grid_point_id", (U64, I32), ("id", "index")),
}

from .. import expressions  # noqa: E402  (which call what is here)
from .read_only import ReadOnlyRef  # noqa: E402
