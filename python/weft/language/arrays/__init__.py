"""Arrays in kernels beyond elements: atomic operations, lists of indices, views, arrays of a thread."""
