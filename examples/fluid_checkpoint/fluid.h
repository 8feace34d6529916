// A fluid in a closed square that carries a density, step by step on a tape.
#pragma once
#include <weft/weft.h>

#include <array>

/// The parameters of the computation.
struct FluidPlan {
  int size = 128;   ///< cells along a side
  int steps = 48;   ///< in one unit of time, in which the first swirl gives the middle of the square half a turn
  int sweeps = 20;  ///< of Jacobi's method for the pressure, in each step; even
  int slots = 8;    ///< states that are kept for the way back
};

/// A swirling fluid whose dense parts rise. Lengths are in sides of the square; (0, 0) is the upper left corner.
class Fluid {
 public:
  Fluid(const weft::Device& device, const FluidPlan& plan);

  /// The density from which runs start, [row][column]; the caller sets it. Has gradient storage.
  weft::Array<float, 2>& start() { return start_; }

  /// Runs all steps; with a tape, in the memory of `slots` states.
  /// \param tape  null: nothing is recorded
  /// \return the final density: valid until the next run
  const weft::Array<float, 2>& run(weft::Tape* tape);

 private:
  void step(int number);

  FluidPlan plan_;
  weft::Array<float, 2> start_;
  // State and scratch. The arrays that a step reads and writes by turns depend on the step's number alone, because a
  // tape runs steps again.
  std::array<weft::Array<float, 2>, 2> density_, pressure_;
  weft::Array<weft::vec2, 2> velocity_, moved_;
  weft::Array<float, 2> divergence_;
};
