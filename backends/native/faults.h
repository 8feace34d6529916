// The name of the kernel in which the process dies, for those who ask for it.
#pragma once
#include "program.h"

namespace weft::backend::native {

/// The scope in which the calling thread runs a kernel.
class Running {
 public:
  explicit Running(const DeviceProgram& program);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  const DeviceProgram* const outer_;
};

/// Has a line written to the error output when a kernel touches memory that is not there: its name and place, and the
/// address. Then the fault takes its way as without this. Launches check no address, as on GPUs.
void name_faults();

}  // namespace weft::backend::native
