"""Bridges to other libraries' arrays: none of them is imported before a program uses it."""
