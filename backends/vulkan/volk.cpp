// The functions of Vulkan, found at run time: a program that links weft starts on machines without Vulkan.
//
// They are hidden, because a renderer with a volk of its own would otherwise replace ours. What is declared hidden is
// defined so.
#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif
#include <volk.h>
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#define VOLK_IMPLEMENTATION
#include <volk.h>
