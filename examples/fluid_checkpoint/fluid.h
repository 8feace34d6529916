// A fluid in a closed square that carries a density, step by step on a tape.
#pragma once
#include <weft/weft.h>

#include <array>

/// How the fluid is computed.
struct FluidPlan {
  int size = 128;   ///< cells along a side
  int steps = 48;   ///< in one unit of time, in which the first swirl turns the middle of the square half around
  int sweeps = 20;  ///< of Jacobi's method for the pressure, in each step; even
  int slots = 8;    ///< states that are kept for the way back
};

/// A swirling fluid of which dense parts rise. Lengths are those of the square's sides, (0, 0) is the upper left
/// corner.
class Fluid {
 public:
  Fluid(const weft::Device& device, const FluidPlan& plan);

  /// The density from which runs start, [row][column]: the caller sets it. Has gradient storage.
  weft::Array<float, 2>& start() { return start_; }

  /// Runs all steps. On a tape, in the memory of `slots` states.
  /// \param tape  null: nothing is recorded
  /// \return the density in the end: valid until the next run
  const weft::Array<float, 2>& run(weft::Tape* tape);

 private:
  void step(int number);

  FluidPlan plan_;
  weft::Array<float, 2> start_;
  // State and scratch. What a step reads and writes by turns depends on the step's number alone: a tape runs it again.
  std::array<weft::Array<float, 2>, 2> density_, pressure_;
  weft::Array<weft::vec2, 2> velocity_, moved_;
  weft::Array<float, 2> divergence_;
};
