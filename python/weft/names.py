"""The names of the functions of kernels that the package offers."""

from .language.arrays.atomics import HANDLERS as _ATOMICS
from .language.arrays.private import HANDLERS as _PRIVATE
from .language.builtins import HANDLERS as _BUILTINS
from .language.references import HANDLERS as _REFERENCES
from .language.signatures import FORMS as _FORMS
from .language.structures.queries import HANDLERS as _QUERIES
from .language.structures.volumes import HANDLERS as _VOLUMES

FUNCTIONS = sorted(
    {
        *_FORMS, *_BUILTINS, *_ATOMICS, *_QUERIES, *_VOLUMES, *_REFERENCES, *_PRIVATE,
        "static", "vector", "matrix", "adjoint",
    }
)  # fmt: skip
"""All of them, in alphabetical order."""
