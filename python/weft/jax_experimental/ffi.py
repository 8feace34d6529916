"""The same functions, by the name of the module that they once had."""

from . import *  # noqa: F403
from . import GraphMode as GraphMode
