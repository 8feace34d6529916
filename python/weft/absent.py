"""What Warp has and the package has not, by name: what a program that asks for it is told."""

ABSENT = {
    "launch_tiled": "there are no tiles yet: a kernel whose threads share memory is written in C++",
    "bfloat16": "there are no numbers of type bfloat16: float16 and float32 are there",
    "grad": "kernels cannot ask for the gradient of a function: a tape computes it",
    "mesh_get": "a kernel has a mesh's id alone: pass its arrays as arguments",
    "func_native": "there is no C++ in kernels of Python: the library takes kernels in C++",
    "sparse": "there are no sparse matrices yet",
    "fem": "there are no finite elements",
    "render": "there is no renderer yet",
    "fabricarray": "there is no memory of Omniverse",
    "fabricarrayarray": "there is no memory of Omniverse",
}
"""Names."""
BEGINNINGS = {
    "tile_": "there are no tiles yet: a kernel whose threads share memory is written in C++",
    "texture": "there are no textures: a Volume or an array is sampled",
    "Texture": "there are no textures: a Volume or an array is sampled",
    "timing_": "there is no profile by these functions: wp.ScopedTimer measures",
    "bsr_": "there are no sparse matrices yet",
}
"""Beginnings of names."""


def reason(name):
    """Why a name of Warp's is missing, as the end of a sentence; an empty text for names that are nobody's."""
    found = ABSENT.get(name) or next((text for start, text in BEGINNINGS.items() if name.startswith(start)), None)
    return f": {found}" if found else ""
