// The functions of Vulkan for tests that act as programs without weft: the library keeps its own to itself.
#define VOLK_IMPLEMENTATION
#include <volk.h>
