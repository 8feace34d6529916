// The system's header of Windows, for the platform files, without its macros min and max. Nothing elsewhere.
#pragma once
#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#endif
