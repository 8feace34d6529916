"""Graphs of what a tape has recorded, in the language of Graphviz."""

from functools import cached_property
from html import escape

import numpy as np

from .. import _weft
from ..types.annotations import ArrayType, type_name
from ..types.structs import StructInstance
from .indexed import indexedarray

LONGEST = 256
"""The most launches and parts in a sequence that is found to repeat."""

GREEN, BLUE, GREY = "#76B900", "#0072B9", "#D3D3D3"


class Node:
    """A launch in the graph. `key` tells which launches do the same: the kernel, and the place of the call."""

    def __init__(self, launch, number):
        self.kernel, self.dim, _, self.inputs, self.outputs = launch[:5]
        self.name = f"kernel{number}"
        self.caller = (launch[7] if len(launch) > 7 else {}).get("caller")
        place = self.caller and (self.caller["file"], self.caller["func"], self.caller["lineno"])
        self.key = (id(self.kernel), len(self.inputs), len(self.outputs), place)

    @cached_property
    def ports(self):
        """For each array: the array, the name of the parameter or of its field, and the port of the table, as ("in", 0)."""
        found = []
        names = [name for name, _ in self.kernel.parameters]
        for side, first, arguments in (("in", 0, self.inputs), ("out", len(self.inputs), self.outputs)):
            for k, argument in enumerate(arguments):
                name = names[first + k] if first + k < len(names) else f"argument {first + k + 1}"
                found += [(array, label, (side, k)) for array, label in arrays_in(argument, name)]
        return found


class Part:
    """A part of the record, with launches and parts in it: one that the program names, or a sequence that repeats."""

    def __init__(self, name, items, count=1, is_named=True):
        self.name = name
        self.items = items
        self.count = count  # of repetitions
        self.is_named = is_named

    @property
    def key(self):
        """Tells which parts do the same."""
        return (self.name, self.count, tuple(item.key for item in self.items))

    @property
    def label(self):
        """The name with the number of repetitions."""
        repeated = f"repeated {self.count}x"
        if self.count == 1:
            return self.name
        return f"{self.name} ({repeated})" if self.is_named else repeated


def arrays_in(argument, name):
    """The arrays of an argument, with the names of the fields where they lie."""
    if isinstance(argument, StructInstance):
        for field in type(argument)._wp_fields_:
            yield from arrays_in(getattr(argument, field), f"{name}.{field}")
    elif isinstance(argument, indexedarray):
        yield from arrays_in(argument.data, name)
    elif isinstance(argument, _weft.Array) and argument.size:
        yield argument, name


def launches_in(items):
    """The launches of parts, in their order."""
    for item in items:
        if isinstance(item, Part):
            yield from launches_in(item.items)
        else:
            yield item


def place_of(array):
    """What tells arrays apart: where they begin."""
    return (array.native_device.name, array.ptr)


def parts_of(launches, scopes):
    """The launches, in the parts that the program has named. Functions among them are left out."""
    root = Part("", [])
    open_parts = [root]
    markers = list(scopes)
    for number in range(len(launches) + 1):
        while markers and markers[0][0] <= number:
            _, name, _ = markers.pop(0)
            if name is not None:
                open_parts.append(Part(str(name), []))
                open_parts[-2].items.append(open_parts[-1])
            elif len(open_parts) > 1:
                open_parts.pop()
        if number < len(launches) and isinstance(launches[number], (list, tuple)):
            open_parts[-1].items.append(Node(launches[number], number))
    return root


class Drawing:
    """The text of a graph while it is made."""

    def __init__(self, tracked, labels, hide_read_only, longest_names):
        self.labels = {place_of(array): label for array, label in labels.items()}
        self.tracked = {place_of(array): (array, name) for array, name in tracked if array.size}
        self.hide_read_only = hide_read_only
        self.longest_names = longest_names
        self.names = {place: name for place, (_, name) in self.tracked.items()}
        self.written = set(self.tracked)
        self.same = {}  # the place of an array in a repetition: that of its counterpart in the first one
        self.around = []  # pairs of an output of a repetition and the input of the next one
        self.lines = []
        self.shown = set()
        self.parts = 0

    def simplified(self, items):
        """The items with sequences that repeat each other once, as parts of their own."""
        for item in items:
            if isinstance(item, Part):
                item.items = self.simplified(item.items)
                only = item.items[0] if len(item.items) == 1 else None
                if isinstance(only, Part) and not only.is_named:
                    item.items, item.count = only.items, only.count
        numbers = {}
        lengths, counts = repetitions([numbers.setdefault(item.key, len(numbers)) for item in items])
        made, k = [], 0
        while k < len(items):
            length, count = lengths[k], counts[k]
            if count == 1:
                made.append(items[k])
            else:
                first = items[k : k + length]
                for n in range(1, count):
                    self.join(first, items[k + n * length : k + (n + 1) * length])
                made.append(Part("", self.simplified(first), count, is_named=False))
            k += length * count
        return made

    def join(self, first, again):
        """Takes the arrays of a repetition for those of the first time: new ones are its counterparts, and an output of the
        first time that is an input now goes around.
        """
        pairs = list(zip(launches_in(first), launches_in(again)))
        known = {self.place(array) for one, _ in pairs for array, _, _ in one.ports}
        outputs = {self.place(array) for one, _ in pairs for array, _, (side, _) in one.ports if side == "out"}
        for one, other in pairs:
            for (array, _, (side, _)), (counterpart, _, _) in zip(one.ports, other.ports):
                here, there = self.place(array), self.place(counterpart)
                if here == there:
                    continue
                if there not in known:
                    self.same[there] = here
                elif side == "in" and there in outputs and (there, here) not in self.around:
                    self.around.append((there, here))

    def place(self, array):
        """The place by which an array is shown."""
        place = place_of(array)
        while place in self.same:
            place = self.same[place]
        return place

    def name_arrays(self, items):
        """Chooses the names of arrays, and finds those that launches write."""
        for node in launches_in(items):
            for array, label, (side, _) in node.ports:
                place = self.place(array)
                if side == "out":
                    self.written.add(place)
                if place in self.tracked:
                    continue
                known = self.names.get(place)
                if known is None or len(label) > len(known) or not self.longest_names:
                    self.names[place] = label
        self.names.update(self.labels)

    def add(self, line, depth):
        """Adds a line."""
        self.lines.append("\t" * depth + line)

    def draw_items(self, items, depth):
        """Draws launches and parts."""
        for item in items:
            if isinstance(item, Part):
                self.draw_part(item, depth)
            else:
                self.draw_launch(item, depth)

    def draw_part(self, part, depth):
        """Draws a part as a box around what it holds."""
        colour = GREEN if part.count == 1 else BLUE
        self.add(f"subgraph cluster{self.parts} {{", depth)
        self.parts += 1
        self.add(f'style="rounded,filled"; fillcolor="{colour}22"; pencolor="{colour}";', depth + 1)
        self.add(f"label=<<b>{escape(part.label)}</b>>;", depth + 1)
        self.draw_items(part.items, depth + 1)
        self.add("}", depth)

    def draw_launch(self, node, depth):
        """Draws a launch as a table of its arguments, with its arrays."""
        edges = []
        for array, _, (side, k) in node.ports:
            place = self.place(array)
            if self.hide_read_only and place not in self.written:
                continue
            self.draw_array(array, place, depth)
            port = f"{node.name}:{side}_{k}"
            edges.append(f"{name_of(place)} -> {port};" if side == "in" else f"{port} -> {name_of(place)};")
        tooltip = ""
        if node.caller:
            where = f"{node.caller['file']}:{node.caller['lineno']} ({node.caller['func']})"
            tooltip = f", tooltip={quoted(where)}"
        self.add(f"{node.name} [label=<{table_of(node)}>{tooltip}];", depth)
        for edge in dict.fromkeys(edges):
            self.add(edge, depth)

    def draw_array(self, array, place, depth):
        """Draws an array once, with a tooltip that describes it."""
        if place in self.shown:
            return
        self.shown.add(place)
        label = self.names[place]
        colour = GREEN if array.requires_grad else GREY
        told = f"array {label}: shape={tuple(array.shape)}, dtype={type_name(array.dtype)}, requires_grad={array.requires_grad}"
        self.add(
            f"{name_of(place)} [label={quoted(label)}, shape=ellipse, style=filled, "
            f'fillcolor="{colour}", tooltip={quoted(told)}];',
            depth,
        )


def repetitions(keys):
    """For each place in a sequence, the length of the part from there on that covers most when it repeats at once, and how
    often it stands there.
    """
    keys = np.asarray(keys)
    length, covered = np.ones(len(keys), dtype=int), np.ones(len(keys), dtype=int)
    for n in range(1, min(LONGEST, len(keys) // 2) + 1):
        # The keys from a place on that are those `n` further on: up to the next one that is not.
        differs = np.append(np.flatnonzero(keys[:-n] != keys[n:]), len(keys) - n)
        places = np.arange(len(keys) - n)
        same = differs[np.searchsorted(differs, places)] - places
        covers = (same // n + 1) * n
        better = (same >= n) & (covers > covered[:-n])
        length[:-n][better], covered[:-n][better] = n, covers[better]
    return length.tolist(), (covered // length).tolist()


def name_of(place):
    """The name of an array in the graph."""
    return "array_" + "".join(c if c.isalnum() else "_" for c in f"{place[0]}_{place[1]}")


def quoted(text):
    """A text in quotes, as Graphviz reads them."""
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def table_of(node):
    """The table that shows a launch: the kernel's name, and the parameters, inputs on the left and outputs on the right."""
    parameters = [*node.kernel.parameters]
    columns = []
    for side, first, count in (("in", 0, len(node.inputs)), ("out", len(node.inputs), len(node.outputs))):
        cells = []
        for k, (name, kind) in enumerate(parameters[first : first + count]):
            told = f"array: dtype={type_name(kind.dtype)}" if isinstance(kind, ArrayType) else f"dtype={type_name(kind)}"
            cells.append(f'<TD PORT="{side}_{k}" BGCOLOR="#BBBBBB" TITLE="{escape(told)}">{escape(name)}</TD>')
        columns.append(cells)
    empty = '<TD BORDER="0"></TD>'
    rows = []
    for k in range(max(map(len, columns), default=0)):
        rows.append("<TR>" + "".join(cells[k] if k < len(cells) else empty for cells in columns) + "</TR>")
    head = f'<TR><TD COLSPAN="2" BGCOLOR="#FFFFFF"><b>{escape(node.kernel.key)}</b></TD></TR>'
    return (
        '<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="2" CELLPADDING="4" BGCOLOR="#888888">'
        + head
        + "".join(rows)
        + "</TABLE>"
    )


def draw(launches, scopes, tracked, direction, simplify, hide_read_only, labels, longest_names, ignore_scopes):
    """The graph of launches. See Tape.visualize()."""
    drawing = Drawing(tracked, labels, hide_read_only, longest_names)
    items = parts_of(launches, [] if ignore_scopes else scopes).items
    if simplify:
        items = drawing.simplified(items)
    drawing.name_arrays(items)
    for place, (array, _) in drawing.tracked.items():
        drawing.draw_array(array, place, 1)
    drawing.draw_items(items, 1)
    for output, following in drawing.around:
        if {output, following} <= drawing.shown:
            drawing.add(f'{name_of(output)} -> {name_of(following)} [color="{BLUE}", constraint=false];', 1)
    head = ['digraph "tape" {', f"\trankdir={direction};", '\tnode [shape=plaintext, fontname="sans-serif"];']
    return "\n".join([*head, *drawing.lines, "}", ""])
