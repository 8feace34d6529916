"""Places: what can stand on the left of an assignment, and is read where it stands in an expression.

A place is a variable, a part of another place, or an element of an array in memory. Parts of places in memory are read
and written alone.
"""

import ast

from .. import _weft
from ..types import scalars
from ..types.annotations import ArrayType, matches, same_type, type_name
from . import operators
from .emitter import Local, StructLocal, adapted_to, copy_struct, read
from .errors import CodegenError, CodegenTypeError
from .values import ArrayValue, Static, StructValue, Value, from_ids, ids_of, name_of_type, rebuild

# Updates of elements that other threads may share are atomic, where there is such an operation.
WORDS = (scalars.int32, scalars.uint32, scalars.int64, scalars.uint64)
ATOMIC_UPDATES = {"add": "add", "sub": "sub", "bit_and": "and", "bit_or": "or", "bit_xor": "xor"}
ATOMIC_TYPES = {
    "add": (*WORDS, scalars.float32, scalars.float64),
    "sub": (*WORDS, scalars.float32, scalars.float64),
    "bit_and": WORDS,
    "bit_or": WORDS,
    "bit_xor": WORDS,
}


class Place:
    """A place that holds a value of `type`."""

    def read(self, e):
        """The present value."""
        raise NotImplementedError

    def write(self, e, value):
        """Replaces the value, which is of the place's type."""
        raise NotImplementedError

    def update(self, e, name, value):
        """Does ``place op= value``."""
        self.write(e, self.taken(operators.binary(name, self.read(e), value)))

    def taken(self, value):
        """The value with a literal adapted to the place. Errors: CodegenTypeError for a value of another type."""
        value = adapted_to(value, self.type)
        given = getattr(value, "type", None)
        if isinstance(value, (Value, StructValue)) and same_type(given, self.type):
            return value
        raise CodegenTypeError(
            f"a value of type {name_of_type(value)} cannot be assigned where {type_name(self.type)} is expected"
        )


class NamePlace(Place):
    """A variable, or a name for a value."""

    def __init__(self, name, type):
        self.name = name
        self.type = type

    def read(self, e):
        return e.lookup(self.name)

    def write(self, e, value):
        e.bind(self.name, value)

    def local(self, e):
        """The variable of the IR; None for a name of a value."""
        return e.bound(self.name)


class ValuePlace(Place):
    """The result of an expression, which has parts but cannot be assigned."""

    def __init__(self, value):
        self.value = value
        self.type = value.type

    def read(self, e):
        return self.value

    def write(self, e, value):
        raise CodegenError("the result of an expression cannot be assigned to")

    def local(self, e):
        """There is none."""
        return


class FieldPlace(Place):
    """A field of a struct that is a variable or a value."""

    def __init__(self, parent, name, type):
        self.parent = parent
        self.name = name
        self.type = type

    def local(self, e):
        """The variable of the field, or its value; None inside a value."""
        held = self.parent.local(e)
        return held.fields.get(self.name) if isinstance(held, (StructLocal, StructValue)) else None

    def read(self, e):
        held = self.local(e)
        return read(held) if held is not None else self.parent.read(e).fields[self.name]

    def write(self, e, value):
        held = self.local(e)
        if isinstance(held, (Local, StructLocal)):
            e.assign_local(self.name, held, value)
            return
        outer = self.parent.local(e)
        if isinstance(outer, StructLocal):
            e.replace_array(getattr(self.parent, "name", "struct"), outer, self.name, value)
            return
        struct = copy_struct(self.parent.read(e))
        struct.fields[self.name] = value
        self.parent.write(e, struct)

    def taken(self, value):
        if not isinstance(self.type, ArrayType):
            return super().taken(value)
        if not isinstance(value, ArrayValue) or not matches(self.type, value.type):
            raise CodegenTypeError(f"field {self.name} is {type_name(self.type)}, not {name_of_type(value)}")
        return value


class PartPlace(Place):
    """Some of the scalars of a vector, matrix, quaternion or transform, by their numbers."""

    def __init__(self, parent, type, leaves):
        self.parent = parent
        self.type = type
        self.leaves = leaves

    def local(self, e):
        """The variables of the scalars; None where the parent is no variable of the IR."""
        held = self.parent.local(e)
        if isinstance(held, Local):
            return Local(self.type, tuple(held.slots[k] for k in self.leaves))
        return None

    def read(self, e):
        held = self.local(e)
        if held is not None:
            return Value(self.type, _weft.get(held.slots))
        ids = self.parent.read(e).ids
        return Value(self.type, tuple(ids[k] for k in self.leaves))

    def write(self, e, value):
        held = self.local(e)
        if held is not None:
            _weft.set(held.slots, value.ids)
            return
        ids = list(self.parent.read(e).ids)
        for k, i in zip(self.leaves, value.ids):
            ids[k] = i
        self.parent.write(e, Value(self.parent.type, tuple(ids)))


class ChosenPlace(Place):
    """Part `index` of `count` equal parts of a value, chosen by an index that is not known while tracing."""

    def __init__(self, parent, type, index, count):
        self.parent = parent
        self.type = type
        self.index = index
        self.count = count
        self.step = type.native.count

    def local(self, e):
        """There is none: which scalars are meant is not known."""
        return

    def read(self, e):
        ids = self.parent.read(e).ids
        return Value(self.type, _weft.pick(ids, self.count, self.step, self.index.id))

    def write(self, e, value):
        ids = list(self.parent.read(e).ids)
        for k in range(self.count):
            number = _weft.constant(self.index.type.native.code, k)
            chosen = _weft.binary(operators.OPS["eq"], self.index.ids, (number,))[0]
            part = slice(k * self.step, (k + 1) * self.step)
            ids[part] = _weft.select((chosen,), value.ids, tuple(ids[part]))
        self.parent.write(e, Value(self.parent.type, tuple(ids)))


class ElementPlace(Place):
    """An element of an array in memory, or a part of one."""

    def __init__(self, address, type, private=False):
        self.address = address
        self.type = type
        self.private = private  # no other thread uses it

    def local(self, e):
        """There is none: it lies in memory."""
        return

    def read(self, e):
        return load(self.address, self.type)

    def write(self, e, value):
        if isinstance(value, StructValue) and value.type.native.holds_arrays:
            raise CodegenError("an element that holds arrays is assigned field by field; its arrays stay")
        self.address.store(ids_of(value))

    def update(self, e, name, value):
        given = adapted_to(value, self.type)
        atomic = ATOMIC_UPDATES.get(name)
        if atomic is None or not isinstance(given, Value) or not same_type(given.type, self.type):
            super().update(e, name, value)
        elif given.scalar in ATOMIC_TYPES[name] and not self.private:
            self.address.atomic(atomic, given.ids)
        else:
            operators.binary(name, given, given)  # refuses what has no such operator
            self.address.update(operators.OPS[name], given.ids)


def load(address, kind):
    """The value at an address, whose arrays are handles there."""
    if kind.native.kind == "struct" and kind.native.holds_arrays:
        fields = {}
        for name, field in kind._wp_layout_.items():
            if isinstance(field, ArrayType) and field.indexed:
                raise CodegenError(f"field {name} is an indexed array in memory: pass its struct as an argument")
            part = address.field(name)
            fields[name] = rebuild(field, iter([part])) if isinstance(part, _weft.ArrayRef) else load(part, field)
        return StructValue(kind, fields)
    return from_ids(kind, address.load())


def read_local(local):
    """The value of a variable."""
    return read(local)


def locate(e, node):
    """The place that an expression names, or what it is if that is no value: an array, a type, a function, ..."""
    from . import attributes, expressions, subscripts

    e.at(node)
    if isinstance(node, ast.Name):
        bound = e.names.get(node.id)
        if isinstance(bound, (Value, StructValue, Local, StructLocal)):
            return NamePlace(node.id, bound.type)
        return e.lookup(node.id)
    if isinstance(node, ast.Attribute):
        return attributes.part(e, with_parts(locate(e, node.value)), node)
    if isinstance(node, ast.Subscript):
        return subscripts.part(e, with_parts(locate(e, node.value)), node)
    return with_parts(expressions.evaluate(e, node))


def with_parts(found):
    """A value as a place, whose parts can be named; what is no value stays as it is."""
    return ValuePlace(found) if isinstance(found, (Value, StructValue)) else found


def loaded(e, place):
    """The value of what `locate` found."""
    return place.read(e) if isinstance(place, Place) else place


def store(e, node, value):
    """Assigns to a part of a value or an element of an array."""
    place = locate(e, node)
    if isinstance(place, (ArrayValue, Static)) and isinstance(node, ast.Attribute):
        place = field_of_array(e, node)
    if isinstance(place, ArrayValue):
        raise CodegenError(
            f"an array of {place.ndim} dimensions is left: give {place.ndim} more indices to assign an element"
        )
    if not isinstance(place, Place):
        raise CodegenError(f"{ast.unparse(node)} cannot be assigned to")
    place.write(e, place.taken(value))


def field_of_array(e, node):
    """The place of a struct's field that is an array."""
    parent = locate(e, node.value)
    if not isinstance(parent, Place) or node.attr not in getattr(parent.type, "_wp_fields_", ()):
        raise CodegenError(f"{ast.unparse(node)} cannot be assigned to")
    if isinstance(parent, ElementPlace):
        raise CodegenError(f"{ast.unparse(node)} is an array in memory, which a kernel cannot replace")
    return FieldPlace(parent, node.attr, parent.type._wp_fields_[node.attr])


def update(e, node, name, value):
    """``target op= value`` for a part of a value or an element of an array."""
    place = locate(e, node)
    if not isinstance(place, Place):
        operators.refuse(name, place, value)
    place.update(e, name, value)
