// The functions of Vulkan, found at run time: a program that links weft starts on machines without Vulkan.
#define VOLK_IMPLEMENTATION
#include <volk.h>
