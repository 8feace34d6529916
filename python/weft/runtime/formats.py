"""Formats of printf(): kernels write numbers with all their digits, between marks; the host rewrites them by the format."""

import re

DIRECTIVE = re.compile(r"%(?!%)[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l)?[diouxXeEfFgGcs]")
MARKED = re.compile("\x01(%[^\x02]*)\x02([^\x03]*)\x03")
PLAIN = ("%d", "%i", "%u", "%s", "%ld", "%lld", "%lu", "%llu")
"""The directives that say what kernels write anyway."""


BOOLEAN = "%b"
"""What stands for the directive of a boolean, which Python shows in its own way."""


def parts_of(text):
    """The pieces of a format between its directives, and these."""
    return DIRECTIVE.split(text), DIRECTIVE.findall(text)


def marked(directive, items):
    """The items of a report that show a value by a directive."""
    return items if directive in PLAIN else [f"\x01{directive}\x02", *items, "\x03"]


def rewritten(line):
    """A line that kernels wrote, with the values between marks in the formats that these say."""
    return MARKED.sub(lambda found: formatted(found[1], found[2]), line) if "\x01" in line else line


def formatted(directive, text):
    """A number as a directive shows it; a value that is no such number as it is."""
    if directive == BOOLEAN:
        return text.capitalize()
    directive = re.sub("[hl]", "", directive).replace("i", "d").replace("u", "d")
    try:
        if directive[-1] in "eEfFgG":
            return directive % float(text)
        return directive % int(text)
    except (ValueError, OverflowError):
        return text
