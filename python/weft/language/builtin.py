"""The functions of the language as Python sees them: names in kernels, and calls on the host."""


class Builtin:
    """A function of the language. In a kernel a call of it is traced; on the host it is evaluated, with the same code,
    for numbers and values of the package.
    """

    def __init__(self, key, doc=None):
        self.key = key
        self.__name__ = key
        self.__qualname__ = key
        self.__module__ = "weft"
        self.__doc__ = doc

    def __call__(self, *args, **keywords):
        from .host import call

        return call(self.key, args, keywords)

    def is_builtin(self):
        """True: functions of the program say False."""
        return True

    def __repr__(self):
        return f"<function weft.{self.key}>"
