"""The emission of one function: its names, the block that is open, and the way of its results."""

import contextlib
import contextvars

from .. import _weft
from ..types import scalars
from ..types.annotations import ArrayType, same_type, type_name
from .errors import CodegenError, CodegenKeyError, CodegenTypeError, near, place_error
from .tree.names import NameScan, is_structured, private_arrays
from .statics import of_python
from .values import (
    ArrayValue,
    Static,
    StructValue,
    TupleValue,
    Value,
    adapted,
    fixed,
    from_ids,
    ids_of,
    name_of_type,
)


assertions = contextvars.ContextVar("assertions", default=False)
"""Whether the kernel that is traced checks what it asserts: in debug mode, its functions too."""


@contextlib.contextmanager
def asserting(on):
    """Says for the trace of a kernel whether its assertions are checked."""
    before = assertions.set(on)
    try:
        yield
    finally:
        assertions.reset(before)


NO_RESULT = object()
"""In place of the variables of a result: the function returns nothing."""


class Local:
    """A variable of the IR: its type, and the numbers of its scalars."""

    __slots__ = ("plain", "slots", "type")

    def __init__(self, type, slots):
        self.type = type
        self.slots = slots
        self.plain = type.native.kind != "struct"


class StructLocal:
    """A variable that is a struct: field by field, as arrays among the fields cannot be variables."""

    __slots__ = ("fields", "made_in", "type")

    def __init__(self, type, fields, made_in):
        self.type = type
        self.fields = fields
        self.made_in = made_in  # the regions that were open

    def has_arrays_of(self, value):
        """Whether the arrays of a struct are those of this one."""
        for name, part in self.fields.items():
            given = value.fields[name]
            if isinstance(part, StructLocal):
                if not part.has_arrays_of(given):
                    return False
            elif not isinstance(part, Local) and part is not given:
                return False
        return True


class Emission:
    """One run over the tree of a kernel or function, which emits operations into the current trace.

    `names` maps the names of the function to Value, ArrayValue, StructValue, TupleValue, Static, Local or StructLocal.
    """

    def __init__(self, source, name, environment, is_function, options, return_type=None):
        self.source = source
        self.name = name
        self.environment = environment  # names of Python: a function from a name to an object
        self.is_function = is_function
        self.options = options
        self.return_type = return_type
        self.names = {}
        self.uses = {}
        self.things = {}  # what names of Python are, and attributes of these by their nodes: loops use them many times
        self.regions = ()  # numbers of the open regions
        self.regions_made = 0
        self.bound_in = {}  # the regions in which names were bound that are no variables
        self.loops = []  # of open loops: "dynamic" or "unrolled"
        self.line = source.line
        self.result = None  # values of a function
        self.result_locals = None
        self.returned = None  # a Local: whether the function has returned, where branches cannot say so
        self.structured = True
        self.private = set()  # arrays whose elements are each used by one thread alone

    def run(self, arguments, names=None):
        """Emits the function with its arguments, a dict of name to value. Returns the result of a function, or None.
        `names` are those of all parameters, where some are variables already.

        Errors: those of weft.language.errors and whatever evaluation of Python's parts raises, with file and line.
        """
        from . import statements

        body = self.source.body
        before = _weft.set_place(self.source.file, self.line)
        try:
            self.uses, self.private, self.structured = self.facts_of(names or tuple(arguments), body)
            for name, value in arguments.items():
                self.bind(name, value)
            if not self.structured:
                self.returned = Local(scalars.bool, _weft.local(scalars.bool.native, None))
            statements.block(self, body)
            return self.finish()
        except RecursionError:
            error = CodegenError("expressions or calls nest too deeply here: name parts of them")
            raise place_error(error, self.name, self.source.file, self.line) from None
        except Exception as error:
            raise place_error(error, self.name, self.source.file, self.line) from None
        finally:
            _weft.set_place(*before)

    def facts_of(self, arguments, body):
        """What the names of the function are used for, the arrays that are private to threads, and whether branches say
        where the function returns.
        """
        facts = self.source.facts.get(arguments)
        if facts is None:
            uses = NameScan(arguments, body, self.environment.find).uses
            private = set() if self.is_function else private_arrays(arguments, body, uses)
            facts = self.source.facts[arguments] = (uses, private, not self.is_function or is_structured(body))
        return facts

    def finish(self):
        """The result of the function, from wherever it returned."""
        if self.result_locals is not None:
            return from_locals(self.result_locals)
        if self.result is None and self.return_type is not None:
            return result_of(None, self.return_type, self.name)
        return self.result

    @property
    def depth(self):
        """The number of open regions."""
        return len(self.regions)

    @contextlib.contextmanager
    def region(self):
        """Marks a block of the IR as open."""
        before = self.regions
        self.regions_made += 1
        self.regions = (*before, self.regions_made)
        yield
        self.regions = before

    def at(self, node):
        """Says that what follows belongs to the line of a node."""
        line = getattr(node, "lineno", None)
        if line is not None and line != self.line:
            self.line = line
            _weft.set_line(line)

    def error(self, node, message, kind=CodegenError):
        """Throws an error of the line of a node."""
        self.at(node)
        raise kind(message)

    # Names

    def lookup(self, name):
        """What a name is: a variable of the function, or a thing of Python. Errors: CodegenKeyError for neither."""
        bound = self.bound(name)
        if bound is None:
            known = self.things.get(name)
            if known is None:
                known = self.thing_named(name)
                if isinstance(known, Static):
                    self.things[name] = known
            return known
        return read(bound)

    def bound(self, name):
        """What a variable of the function is; None if it has no value yet. Errors: CodegenError where that depends on a
        condition or a loop.
        """
        bound = self.names.get(name)
        where = self.bound_in.get(name)
        if where and self.regions[: len(where)] != where:
            raise CodegenError(f"which {name_of_type(bound)} {name} is depends on a condition or a loop")
        return bound

    def thing_named(self, name):
        """What a name means outside of the function. Errors: CodegenKeyError if it means nothing."""
        try:
            return self.environment.value(name)
        except CodegenKeyError as error:
            if name in self.uses and self.uses[name].stores:
                raise CodegenKeyError(f"{error}, which is given a value only after this") from None
            raise CodegenKeyError(f"{error}{near(name, [*self.names, *self.environment.names()])}") from None

    def bind(self, name, value):
        """Gives a name its value: a plain one merely names it, another is a variable of the IR."""
        bound = self.names.get(name)
        if self.is_of_another_branch(name, bound, value):
            # Code after both branches cannot say which of the variables it means, and is refused.
            self.names[name], self.bound_in[name] = self.make_local(value), self.regions
            return
        if isinstance(bound, (Local, StructLocal)):
            self.assign_local(name, bound, value)
            return
        value = fixed(value)
        if bound is not None:
            value = self.of_same_type(name, bound, value)
        use = self.uses.get(name)
        if not is_variable(value):
            self.bind_fixed(name, bound, value)
        elif use is None or not use.stores or use.is_plain:
            self.names[name] = copy_struct(value) if isinstance(value, StructValue) else value
        else:
            self.names[name] = self.make_local(value)

    def is_of_another_branch(self, name, bound, value):
        """Whether what a name is bound to is a struct that was made in none of the open regions, while the name gets one with
        other arrays, or has had one.
        """
        if not isinstance(bound, StructLocal) or not isinstance(value, StructValue):
            return False
        where = bound.made_in
        if self.regions[: len(where)] == where or not same_type(bound.type, value.type):
            return False
        return name in self.bound_in or not bound.has_arrays_of(value)

    def bind_fixed(self, name, bound, value):
        """Binds a name to what is no variable. Errors: CodegenError where it would depend on a condition or a loop."""
        where = self.bound_in.get(name, ())
        use = self.uses.get(name)
        everywhere = use is None or not use.stores or not use.is_plain  # else the loop around it was unrolled before
        if everywhere and bound is not None and len(where) < self.depth and self.regions[: len(where)] == where:
            raise CodegenError(f"which {name_of_type(value)} {name} is cannot depend on a condition or a loop")
        self.names[name] = value
        self.bound_in[name] = self.regions

    def of_same_type(self, name, bound, value):
        """The value for a name that has a type. Errors: CodegenTypeError for a value of another type."""
        if isinstance(bound, Value) and isinstance(value, Value):
            if bound.type is value.type or same_type(bound.type, value.type):
                return value
        elif isinstance(bound, ArrayValue) and isinstance(value, ArrayValue):
            if same_type(bound.dtype, value.dtype):
                return value  # of other dimensions too: the name is no variable of the run
        elif isinstance(bound, StructValue) and isinstance(value, StructValue):
            if same_type(bound.type, value.type):
                return value
        elif type(bound) is type(value) or isinstance(bound, Static):
            return value
        raise CodegenTypeError(
            f"Error, assigning to existing symbol {name} ({name_of_type(bound)}) with different type "
            f"({name_of_type(value)})"
        )

    def make_local(self, value):
        """A variable that holds the value from here on, and zeros on ways that do not come here."""
        if isinstance(value, StructValue):
            fields = {}
            for name, field in value.fields.items():
                fields[name] = self.make_local(field) if is_variable(field) else field
            return StructLocal(value.type, fields, self.regions)
        native = value.type.native
        if self.depth == 0:
            return Local(value.type, _weft.local(native, value.ids))
        slots = _weft.local(native, None)
        _weft.set(slots, value.ids)
        return Local(value.type, slots)

    def assign_local(self, name, local, value):
        """Assigns to a variable. Errors: CodegenTypeError for a value of another type."""
        if isinstance(local, StructLocal):
            if not isinstance(value, StructValue) or not same_type(local.type, value.type):
                self.of_same_type(name, read(local), value)
            for field, part in local.fields.items():
                given = value.fields[field]
                if isinstance(part, (Local, StructLocal)):
                    self.assign_local(f"{name}.{field}", part, given)
                elif given is not part:
                    self.replace_array(name, local, field, given)
            return
        if isinstance(value, Value):
            if value.literal is not None and local.type.native.kind == "scalar":
                value = adapted(value, local.type) or value
            if value.type is local.type or same_type(value.type, local.type):
                _weft.set(local.slots, value.ids)
                return
        self.of_same_type(name, Value(local.type, ()), value)

    def replace_array(self, name, local, field, given):
        """An array of a struct is not a variable: where it is replaced must not depend on conditions."""
        if self.regions != local.made_in:
            raise CodegenError(f"{name}.{field} is an array: which one it is cannot depend on a condition or a loop")
        local.fields[field] = given

    # Results

    def give_result(self, value):
        """Takes the value of a return of a function."""
        value = result_of(value, self.return_type, self.name)
        if self.depth == 0 and self.structured and self.result_locals is None:
            self.result = value
            return
        if self.result_locals is None:
            self.result_locals = self.make_result(value)
        self.assign_result(self.result_locals, value)
        if self.returned is not None:
            _weft.set(self.returned.slots, (_weft.constant(_weft.BOOL, True),))

    def make_result(self, value):
        """Variables for a result, zero until a return is met."""
        if value is None:
            return NO_RESULT
        if isinstance(value, TupleValue):
            return [self.make_result(item) for item in value.items]
        if not is_variable(value) or isinstance(value, StructValue) and not all(map(is_variable, value.fields.values())):
            raise CodegenError(f"a {name_of_type(value)} is returned under a condition: return it at the function's end")
        return Local(value.type, _weft.local(value.type.native, None))

    def assign_result(self, target, value):
        """Assigns a result to its variables. Errors: CodegenTypeError for another type than an earlier return's."""
        if isinstance(target, list) != isinstance(value, TupleValue) or (target is NO_RESULT) != (value is None):
            raise CodegenTypeError(f"Error, function {self.name} returns different numbers of values")
        if target is NO_RESULT:
            return
        if isinstance(target, list):
            if len(target) != len(value.items):
                raise CodegenTypeError(
                    f"Error, function {self.name} returned different number of arguments: "
                    f"{len(target)} and {len(value.items)}"
                )
            for part, item in zip(target, value.items):
                self.assign_result(part, item)
            return
        if not same_type(target.type, value.type):
            raise CodegenTypeError(
                f"Error, function {self.name} returned different types, previous: {type_name(target.type)}, "
                f"new {type_name(value.type)}"
            )
        _weft.set(target.slots, ids_of(value))


def is_variable(value):
    """Whether a value can be a variable of the IR: arrays and things of Python cannot."""
    return isinstance(value, (Value, StructValue))


def read(bound):
    """The present value of what a name is bound to."""
    if type(bound) is Local:
        ids = _weft.get(bound.slots)
        return Value(bound.type, ids) if bound.plain else from_ids(bound.type, ids)
    if isinstance(bound, StructLocal):
        return StructValue(bound.type, {name: read(part) for name, part in bound.fields.items()})
    return bound


def from_locals(target):
    """The values of a result's variables."""
    if target is NO_RESULT:
        return None
    if isinstance(target, list):
        return TupleValue([from_locals(part) for part in target])
    return read(target)


def copy_struct(value):
    """A struct whose fields can be assigned without a change of the original."""
    fields = {n: copy_struct(f) if isinstance(f, StructValue) else f for n, f in value.fields.items()}
    return StructValue(value.type, fields)


def result_of(value, annotation, function):
    """The value of a return as its function gives it, by the annotation of its result.

    Errors: CodegenError for a value that the annotation does not allow.
    """
    from ..types.annotations import matches

    if annotation is None:
        return fixed_tuple(value)
    if value is None:
        raise CodegenError(
            f"The function `{function}` has its return type annotated as `{shown(annotation)}` but the code returns nothing."
        )
    if isinstance(annotation, tuple):
        count = len(value.items) if isinstance(value, TupleValue) else 1
        if count != len(annotation):
            raise CodegenError(
                f"The function `{function}` has its return type annotated as a tuple of {len(annotation)} elements "
                f"but the code returns {count} values."
            )
        items = [adapted_to(item, part) for item, part in zip(value.items, annotation)]
        if not all(matches(part, item.type) for part, item in zip(annotation, items)):
            wanted = ", ".join(shown(part) for part in annotation)
            given = ", ".join(name_of_type(item) for item in value.items)
            raise CodegenError(
                f"The function `{function}` has its return type annotated as `tuple[{wanted}]` "
                f"but the code returns a tuple with types `({given})`."
            )
        return fixed_tuple(TupleValue(items))
    if isinstance(value, TupleValue):
        raise CodegenError(
            f"The function `{function}` has its return type annotated as `{shown(annotation)}` "
            f"but the code returns {len(value.items)} values."
        )
    made = adapted_to(value, annotation)
    if isinstance(made, Static) or not matches(annotation, made.type):
        raise CodegenError(
            f"The function `{function}` has its return type annotated as `{shown(annotation)}` "
            f"but the code returns a value of type `{name_of_type(value)}`."
        )
    return fixed(made)


def shown(annotation):
    """A scalar type as Python names it, where it has a name there."""
    return {scalars.int32: "int", scalars.float32: "float"}.get(annotation) or type_name(annotation)


def adapted_to(value, annotation):
    """A literal as a parameter's or result's type takes it; any other value as it is."""
    if isinstance(value, Value) and value.literal is not None and not isinstance(annotation, (ArrayType, tuple)):
        if isinstance(annotation, type) and getattr(annotation, "native", None) and annotation.native.kind == "scalar":
            return adapted(value, annotation) or value
    return value


def fixed_tuple(value):
    """The value, or the values of a tuple, without the freedom of literals."""
    if isinstance(value, TupleValue):
        return TupleValue([fixed_tuple(item) for item in value.items])
    return fixed(value)


class Environment:
    """The names of Python that a function sees: its closure, its module, and Python's own."""

    def __init__(self, function, extra=None):
        self.function = function
        self.extra = extra or {}
        self.settled = {}  # values of static expressions that are known, by their nodes

    def find(self, name):
        """The object of a name. Errors: KeyError if there is none."""
        if name in self.extra:
            return self.extra[name]
        function = self.function
        names = function.__code__.co_freevars
        if name in names:
            try:
                return function.__closure__[names.index(name)].cell_contents
            except ValueError:
                pass
        if name in function.__globals__:
            return function.__globals__[name]
        builtins = function.__globals__.get("__builtins__", {})
        builtins = builtins if isinstance(builtins, dict) else vars(builtins)
        return builtins[name] if name in builtins else of_language(name)

    def names(self):
        """All names that the function sees, but those of the language."""
        return [*self.extra, *self.function.__code__.co_freevars, *self.function.__globals__]

    def value(self, name):
        """The object as an expression. Errors: CodegenKeyError if there is none."""
        try:
            found = self.find(name)
        except KeyError:
            raise CodegenKeyError(f"Referencing undefined symbol: {name}") from None
        return of_python(found)


def of_language(name):
    """A function or type of the language by its bare name, which kernels may use. Errors: KeyError if there is none."""
    from .. import types
    from ..names import FUNCTIONS
    from .builtin import Builtin

    if name in FUNCTIONS:
        return Builtin(name)
    if name in types.NAMED or name in (s.__name__ for s in types.SCALARS):
        return getattr(types, name)
    raise KeyError(name)


def conditional(emission, condition, then, otherwise=None):
    """Emits an if with the two branches, which are functions."""
    _weft.open_if(condition.id)
    with emission.region():
        then()
    if otherwise is not None:
        _weft.open_else()
        with emission.region():
            otherwise()
    _weft.close_if()
