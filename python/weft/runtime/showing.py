"""How arrays, kernels, functions, structs and devices show themselves: `repr()`, and HTML where a notebook asks for it.

Nothing is launched: of a large array only the elements that are shown are copied to the host.
"""

import html

import numpy as np

from ..types.annotations import type_name

RIM = 3
"""The elements that are shown at each end of a dimension of a large array, as NumPy shows them."""


def excerpt(array):
    """The array's elements as NumPy writes them; the ends of each dimension of a large one.

    An array that cannot be read now, as work is being captured, says so.
    """
    try:
        if array.size <= np.get_printoptions()["threshold"]:
            return np.array2string(array.numpy(), separator=", ")
        return np.array2string(shown(array), separator=", ", threshold=0, edgeitems=RIM)
    except RuntimeError as error:
        return f"<cannot be read now: {error}>"


def shown(array, dimension=0):
    """NumPy's array of the ends along each dimension: one element more than is shown, so that NumPy writes dots."""
    while dimension < array.ndim and array.shape[dimension] <= 2 * RIM + 1:
        dimension += 1
    if dimension == array.ndim:
        return array.numpy()
    whole = (slice(None),) * dimension
    parts = (slice(0, RIM + 1), slice(array.shape[dimension] - RIM, array.shape[dimension]))
    return np.concatenate([shown(array[(*whole, part)], dimension + 1) for part in parts], axis=dimension)


def facts(array):
    """Shape, element type and device of an array."""
    return f"shape={tuple(array.shape)}, dtype={type_name(array.dtype)}, device={array.native_device.name}"


def array_text(array):
    """`repr()` of an array."""
    if getattr(array, "is_freed", False):
        return "array(freed)"
    start = "array("
    elements = excerpt(array).replace("\n", "\n" + " " * len(start))
    return f"{start}{elements}, {facts(array)})"


def array_brief(value):
    """An array inside a struct, by what it is; other values as they are."""
    return f"array({facts(value)})" if hasattr(value, "native_device") else repr(value)


def amount(size):
    """A number of bytes in the unit that suits it."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def table(rows):
    """An HTML table of names and texts."""
    cells = (f"<tr><th style='text-align:left'>{escaped(n)}</th><td style='text-align:left'>{t}</td></tr>" for n, t in rows)
    return f"<table>{''.join(cells)}</table>"


def escaped(text):
    """A text as HTML has it."""
    return html.escape(str(text), quote=False)


def array_html(array):
    """HTML of an array: what it is, and an excerpt of its elements."""
    if getattr(array, "is_freed", False):
        return "<code>array(freed)</code>"
    nbytes = getattr(array, "nbytes", None)
    size = f", {amount(nbytes)}" if nbytes is not None else ""
    gradient = ", with a gradient" if getattr(array, "requires_grad", False) else ""
    shape = " × ".join(map(str, array.shape))
    head = f"{shape} of {type_name(array.dtype)} on {array.native_device.name}{size}{gradient}"
    return f"<div><b>array</b> {escaped(head)}<pre>{escaped(excerpt(array))}</pre></div>"


def signature(parameters):
    """The parameters as a program writes them: pairs of a name and a type."""
    return ", ".join(f"{name}: {type_name(kind)}" for name, kind in parameters)


def kernel_text(kernel):
    """`repr()` of a kernel: its name and parameters; the name alone where their types are wrong, as a launch will say."""
    try:
        return f"<Kernel {kernel.key}({signature(kernel.parameters)})>"
    except Exception:  # annotations are expressions of the program
        return f"<Kernel {kernel.key}>"


def function_text(function):
    """`repr()` of a function of the program: its name and the parameters of each overload."""
    try:
        forms = [signature((name, kind) for name, kind, _ in o.parameters) for o in function.overloads]
    except Exception:  # as above
        return f"<Function {function.key}>"
    return f"<Function {', '.join(f'{function.key}({form})' for form in forms)}>"


def code_html(text, codes):
    """HTML of a kernel or function: its signature, and the source of the kernel or of the overloads to be opened."""
    parts = [f"<div><code>{escaped(text)}</code>"]
    for code in codes:
        try:
            found = code.source
        except Exception:  # there is none, which is no reason to show nothing
            continue
        place = f"{found.file}:{found.line}"
        parts.append(f"<details><summary>{escaped(place)}</summary><pre>{escaped(found.text)}</pre></details>")
    return "".join(parts) + "</div>"


def struct_html(value):
    """HTML of a struct: a table of its fields."""
    kind = type(value)
    rows = [(f"{n}: {type_name(k)}", escaped(array_brief(getattr(value, n)))) for n, k in kind._wp_fields_.items()]
    return f"<div><b>{escaped(kind.__name__)}</b>{table(rows)}</div>"


def device_html(device):
    """HTML of a device: its name, what it is, and its memory."""
    kind = "GPU" if device.is_gpu else "processor"
    memory = f", {amount(device.total_memory)}" if device.total_memory else ""
    return f"<div><b>{escaped(device.alias)}</b> {escaped(device.name)} ({kind}{memory})</div>"
