"""Functions of the program: the overload that a call means, and its code for the types of the arguments.

The code of a function is traced once in each kernel for each combination of types, and then called, as func() does in
C++. A function that returns an array is traced in the place of its call, because arrays do not cross calls' ends.
"""

import ast
import contextvars
import inspect
import typing

from .. import _weft
from ..types import annotations
from ..types.annotations import type_name
from . import references
from .arrays import indexed
from .emitter import Emission, Environment, adapted_to, assertions
from .errors import CodegenError
from .parameters import parameters_of, result_of
from .tree.names import object_of
from .tree.source import keep_source, source_of
from .statics import apart, of_python, settle
from .values import Static, StructValue, TupleValue, Value, fixed, flatten, from_ids, ids_of, rebuild


class StaticKind:
    """The "type" of an argument that is a thing of Python: which thing it is decides the code."""

    __slots__ = ("object",)

    def __init__(self, object):
        self.object = object

    def __eq__(self, other):
        return isinstance(other, StaticKind) and self.object is other.object

    def __hash__(self):
        return id(self.object)

    def __call__(self):
        """Never called: callable so that a parameter annotated as Callable takes it."""
        raise TypeError("not a function of the host")


class Overload:
    """One Python function among those of a name: parameters, annotations, and the codes that calls have needed."""

    def __init__(self, function, name, options=None, source=None):
        keep_source(function)
        self.function = function
        self.name = name
        self.given_source = source
        self.options = options or {}
        self.environment = Environment(function)
        settle(self)
        self.parameters_ = None
        self.returns = None
        self.codes = {}
        self.gradient = None
        self.replay = None
        self.reference_types_ = None
        self.ends = {}  # whether the code may end a thread, with assertions and without, once it is known

    @property
    def source(self):
        """The tree of the function. Errors: CodegenError where its text is not at hand."""
        return self.given_source or source_of(self.function)

    @property
    def has_references(self):
        """Whether a parameter stands for a variable of the caller."""
        return bool(self.reference_types)

    @property
    def reference_types(self):
        """The types of the variables for which parameters stand."""
        if self.reference_types_ is None:
            kinds = [kind for _, kind, _ in self.parameters]
            self.reference_types_ = [kind.dtype for kind in kinds if isinstance(kind, annotations.RefType)]
        return self.reference_types_

    @property
    def parameters(self):
        """Names, types and defaults. Errors: those of language.parameters."""
        if self.parameters_ is None:
            made = parameters_of(self, self.function, self.name)
            self.returns = result_of(self, self.function, self.name)
            self.parameters_ = made
        return self.parameters_

    @property
    def form(self):
        """The name with the parameters, as messages show it."""
        parts = [f"{n}: {type_name(k)}{'' if d is inspect.Parameter.empty else f' = {d}'}" for n, k, d in self.parameters]
        return f"{self.name}({', '.join(parts)})"

    def arrange(self, values, keywords):
        """The arguments in the parameters' order; None if they are too many or too few, or a name is wrong."""
        code = self.function.__code__
        if len(values) > code.co_argcount:
            return None
        arranged = list(values)
        unused = dict(keywords)
        for k, (name, _, default) in enumerate(self.parameters[len(values) :], len(values)):
            if name in unused and k >= code.co_posonlyargcount:
                arranged.append(unused.pop(name))
            elif default is not inspect.Parameter.empty:
                arranged.append(of_python(default))
            else:
                return None
        return None if unused else arranged

    def adapt(self, arranged, exact):
        """The arguments as the parameters take them; None if one does not fit. `exact`: literals keep their type."""
        made = []
        for (_, annotation, _), value in zip(self.parameters, arranged):
            if not exact or annotation is typing.Any:
                value = adapted_to(value, annotation)
            if not annotations.matches(annotation, kind_of(value)):
                return None
            made.append(fixed(value))
        return made

    @property
    def specificity(self):
        """How much the annotations say."""
        return sum(annotations.specificity(kind) for _, kind, _ in self.parameters)


class Overloads:
    """The functions of one name. The package's Function is one, with more for the host."""

    _wp_is_function_ = True

    def __init__(self, key):
        self.key = key
        self.overloads = []

    def add(self, function, options=None, source=None):
        """Adds a Python function; one with the same annotations is replaced. `source` is its tree if that is not its file's."""
        added = Overload(function, function.__name__, options, source)
        same = written_annotations(function)
        self.overloads = [o for o in self.overloads if written_annotations(o.function) != same]
        self.overloads.append(added)
        return added


def written_annotations(function):
    """The annotations of the parameters as they are written, to tell a redefinition from an overload."""
    return [(n, str(a)) for n, a in function.__annotations__.items() if n != "return"]


open_codes = contextvars.ContextVar("open_codes", default=())
"""The codes that are being traced, each called by the one before it."""


class Code:
    """The code of an overload for one combination of types."""

    def __init__(self, overload, kinds):
        self.overload = overload
        self.kinds = kinds
        self.result = None  # None, a type, or a tuple of such, once the code was traced
        self.in_place = None  # not known yet
        source = self.source = overload.source
        gradient = self.gradient if overload.gradient is not None else None
        replay = self.replay if overload.replay is not None else None
        self.native = _weft.Func(overload.name, source.file, source.line, self.body, gradient, replay)

    def body(self, parts):
        """Traces the function with what crossed the call. Returns the scalars of the result."""
        parts = iter(parts)
        result = self.trace([rebuild_argument(kind, parts) for kind in self.kinds])
        self.result = None if result is None else result.type
        return ids_of(result)

    def gradient(self, parts, adjoints):
        """Traces the gradient function. Returns the gradients of the real scalars of the parameters."""
        parts = iter(parts)
        values = [rebuild_argument(kind, parts) for kind in self.kinds]
        return self.overload.gradient.trace(values, self.result, adjoints)

    def replay(self, parts):
        """Traces what runs in the function's place on the way back. Returns the scalars of the result."""
        parts = iter(parts)
        function = self.overload.replay
        values = [rebuild_argument(kind, parts) for kind in self.kinds]
        return ids_of(self.emit(source_of(function), Environment(function), values))

    def trace(self, values):
        """Emits the function into the current trace. Returns its result."""
        return self.emit(self.source, self.overload.environment, values)

    def emit(self, source, environment, values):
        """Emits a function with the overload's parameters into the current trace."""
        overload = self.overload
        before = open_codes.get()
        if self in before:
            raise CodegenError(f"function {overload.name} calls itself, and kernels have no recursion: write a loop")
        token = open_codes.set((*before, self))
        try:
            return self.emit_once(source, environment, values)
        finally:
            open_codes.reset(token)

    def emit_once(self, source, environment, values):
        """Does so, of code that is not being emitted."""
        overload = self.overload
        names = [name for name, _, _ in overload.parameters]
        emission = Emission(source, overload.name, environment, True, overload.options, return_type=overload.returns)
        references.make_variables(emission, overload, values)
        result = emission.run({n: v for n, v in zip(names, values) if n not in emission.names}, tuple(names))
        return references.with_references(emission, overload, result)

    def call(self, values):
        """The result of a call."""
        if self.may_stop():
            return self.trace(values)
        if self.in_place is None:
            self.in_place = may_return_arrays(self) and not crosses(self.rehearsed())
        if self.in_place:
            return self.trace(values)
        arguments = tuple(part for value in values for part in flatten(value))
        ids = _weft.call_func(self.native, arguments)
        return None if self.result is None else from_ids(self.result, ids)

    def may_stop(self):
        """Whether the function, or one that it calls, asserts something, or asks a mesh, a tree or a grid, which may be gone:
        only a kernel's own code can end a thread, so that the function is traced in the place of its calls. One with
        derivatives of its own is not.
        """
        if self.overload.gradient is not None or self.overload.replay is not None:
            return False
        given = [kind.object for kind in self.kinds if isinstance(kind, StaticKind)]
        functions = [o for f in given if isinstance(f, Overloads) for o in f.overloads]
        return any(map(ends_threads, [self.overload, *functions]))

    def rehearsed(self):
        """The result of the function, from a trace of its own with parameters of the same types."""
        held = []

        def body(args):
            parts = iter(args)
            held[:] = [self.trace([rebuild_argument(kind, parts) for kind in self.kinds])]

        params = [p for kind in self.kinds for p in native_parameters(kind)]
        apart(_weft.Kernel(self.overload.name, self.source.file, self.source.line, params, body).ir_hash)
        return held[0]


def ends_threads(overload, seen=()):
    """Whether the code of an overload, or of a function that it names, may end a thread. Found once."""
    from .structures import queries, volumes  # which need functions first

    asserting = assertions.get()
    if asserting not in overload.ends and overload not in seen:
        nodes = nodes_of(overload)
        called = (getattr(n.func, "attr", getattr(n.func, "id", None)) for n in nodes if isinstance(n, ast.Call))
        found = any(name in queries.HANDLERS or name in volumes.HANDLERS for name in called)
        found = found or asserting and any(isinstance(n, ast.Assert) for n in nodes)
        functions = named_functions(nodes, overload.environment.find)
        found = found or any(ends_threads(o, (*seen, overload)) for f in functions for o in f.overloads)
        if seen and not found:
            return False  # what stands in `seen` may be part of the answer
        overload.ends[asserting] = found
    return bool(overload.ends.get(asserting))


def nodes_of(code):
    """All nodes of the tree of a kernel or an overload; none where its source is not at hand."""
    try:
        body = code.source.body
    except CodegenError:
        return []
    return [node for statement in body for node in ast.walk(statement)]


def named_functions(nodes, find):
    """The functions of kernels that names among the nodes of a tree mean, and chains of names."""
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)):
            try:
                found = object_of(node, find)
            except Exception:  # whatever stands for no name, and what attributes of others throw
                continue
            if isinstance(found, Overloads):
                yield found


def names_function(code, wanted, seen=()):
    """Whether a kernel or an overload, or a function that it names, names the functions `wanted` at present, or others that
    were defined under their name.
    """
    for functions in named_functions(nodes_of(code), code.environment.find):
        if functions.key == wanted.key and functions.module is wanted.module:
            return True
        for o in functions.overloads:
            if o not in seen and names_function(o, wanted, (*seen, o)):
                return True
    return False


def native_parameters(kind):
    """The parameters as which a value of a type comes, in the order of values.flatten()."""
    if isinstance(kind, annotations.ArrayType):
        return [(kind.dtype.native, kind.ndim)]
    if isinstance(kind, tuple):
        return [p for k in kind for p in native_parameters(k)]
    if not annotations.is_concrete(kind):
        return []
    if kind.native.kind == "struct":
        return [p for k in kind._wp_layout_.values() for p in native_parameters(k)]
    return [kind.native]


def may_return_arrays(code):
    """Whether the result could be an array or a thing of Python: the function takes some, and returns more than numbers
    that are computed on the spot.
    """
    if is_plain(code.overload.returns) or all(map(is_plain, code.kinds)) and not makes_arrays(code.source):
        return False
    returns = [n for s in code.source.body for n in ast.walk(s) if isinstance(n, ast.Return) and n.value is not None]
    computed = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Constant)
    return any(not isinstance(r.value, computed) for r in returns)


def makes_arrays(source):
    """Whether a function calls something named zeros: it may make an array of the thread's own."""
    calls = (n.func for s in source.body for n in ast.walk(s) if isinstance(n, ast.Call))
    return any(getattr(f, "attr", getattr(f, "id", None)) == "zeros" for f in calls)


def is_plain(kind):
    """Whether a type has no arrays and is no thing of Python."""
    return annotations.is_concrete(kind) and not kind.native.holds_arrays


def kind_of(value):
    """The type of an argument, which tells things of Python apart."""
    return StaticKind(value.object) if isinstance(value, Static) else value.type


def rebuild_argument(kind, parts):
    """An argument inside a function."""
    return Static(kind.object) if isinstance(kind, StaticKind) else rebuild(kind, parts)


def crosses(result):
    """Whether a result can leave a function: values can, arrays and things of Python cannot."""
    if result is None or isinstance(result, Value):
        return True
    if isinstance(result, StructValue):
        return all(crosses(field) for field in result.fields.values())
    return isinstance(result, TupleValue) and all(crosses(item) for item in result.items)


def choose(overloads, values, keywords):
    """The overload that takes the arguments, with these as it takes them: the most specific, exact types first.

    Errors: CodegenError if none does.
    """
    for exact in (True, False):
        fitting = []
        for overload in overloads.overloads:
            arranged = overload.arrange(values, keywords)
            made = None if arranged is None else overload.adapt(arranged, exact)
            if made is not None:
                fitting.append((overload.specificity, overload, made))
        if fitting:
            _, overload, made = max(fitting, key=lambda f: f[0])
            return overload, made
    types = ", ".join([*map(shown, values), *(f"{name}={shown(v)}" for name, v in keywords.items())])
    raise CodegenError(
        f"Couldn't find function overload for '{overloads.key}' that matched inputs with types: [{types}]; "
        f"there {'is' if len(overloads.overloads) == 1 else 'are'} {'; '.join(o.form for o in overloads.overloads)}"
    )


def shown(value):
    """The type of an argument in messages."""
    if isinstance(value, Static):
        return getattr(value.object, "key", None) or type(value.object).__name__
    return type_name(value.type)


def call(overloads, values, keywords, caller=None):
    r"""The result of calling a function of the program; None if it returns nothing.

    \param caller  the emission and the node of the call, without which functions cannot assign to the caller's variables
    """
    overload, made = choose(overloads, values, keywords)
    if not overload.has_references:
        return call_overload(overload, made)
    if caller is None:
        raise CodegenError(f"{overloads.key}() assigns to its parameters: call it with variables in a kernel")
    emission, node = caller
    targets = references.argument_places(emission, node, overload)
    return references.write_back(emission, overload, targets, call_overload(overload, made))


def call_overload(overload, made):
    """The result of the overload's code for values that it takes as they are."""
    kinds = tuple(kind_of(value) for value in made)
    code = overload.codes.get(kinds)
    if code is None:
        code = overload.codes[kinds] = Code(overload, kinds)
    in_place = any(map(indexed.holds_indexed, made)) or any(map(holds_arrays, overload.reference_types))
    return code.trace(made) if in_place else code.call(made)


def holds_arrays(kind):
    """Whether values of a type hold arrays, which cannot come out of a call."""
    return kind.native.holds_arrays
