// The device of a program. Not in program.cpp, because programs without weft link that file too.
#include <fmt/core.h>
#include <weft/weft.h>

#include "program.h"

weft::Device device_of(const ProgramOptions& options) {
  const weft::Device device = options.device.empty() ? weft::Device::best() : weft::Device(options.device);
  fmt::print("device    {} ({})\n", device.name(), device.adapter());
  return device;
}
