"""The kernel language: a Python function's syntax tree is typed and becomes operations of weft's IR."""
