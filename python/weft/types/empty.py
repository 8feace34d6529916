"""Types of vectors and matrices without components, such as slices name that contain nothing. Their values are all one."""

types_ = {}


class EmptyType:
    """A type of vectors or matrices one extent of which is 0: called, it makes its only value."""

    native = None

    def __init__(self, kind, shape, scalar):
        self.kind = kind
        self._shape_ = shape
        self._wp_scalar_type_ = scalar
        self._length_ = 0
        self.value = Empty(self)

    def __call__(self, *args):
        """The value. Errors: ValueError for components."""
        if args:
            raise ValueError(f"a {self.kind} without components is made of nothing")
        return self.value

    def __repr__(self):
        return f"{self.kind}{self._shape_}"


class Empty:
    """A vector or matrix without components."""

    def __init__(self, kind):
        self.kind = kind

    def __len__(self):
        return self.kind._shape_[0]

    def __iter__(self):
        return iter(())

    def __eq__(self, other):
        if isinstance(other, Empty):  # whichever extent is 0: neither has a component that could differ
            mine, others = self.kind, other.kind
            return mine.kind == others.kind and mine._wp_scalar_type_ is others._wp_scalar_type_
        return isinstance(other, (list, tuple)) and not other

    def __hash__(self):
        return hash((self.kind.kind, self.kind._wp_scalar_type_))

    def __repr__(self):
        return f"{self.kind!r}()"


def empty_type(kind, shape, scalar):
    """The type of vectors or matrices of a shape, one extent of which is 0; the same object each time."""
    key = (kind, tuple(shape), scalar)
    if key not in types_:
        types_[key] = EmptyType(kind, tuple(shape), scalar)
    return types_[key]
