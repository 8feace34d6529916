// The functions of Vulkan for the tests that are programs without weft: the library keeps its own to itself.
#define VOLK_IMPLEMENTATION
#include <volk.h>
