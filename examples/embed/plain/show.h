// The program around the renderer: shows frames of a simulation in an image or a window, and checks the picture.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../../common/program.h"
#include "renderer.h"

struct ShowOptions : ProgramOptions {
  int drops = 30000, frames = 0, substeps = 4, width = 640, height = 360;
  bool window = false, validate = false;
};
void add_options(CLI::App& app, ShowOptions& options);

/// Moves the drops in the vertex buffer of a renderer. Ends before the renderer does.
class Simulation {
 public:
  virtual ~Simulation() = default;
  /// Records steps into the commands of a frame, before the drawing.
  /// \param frame  less than Renderer::kFrames
  virtual void record(int frame, VkCommandBuffer commands, int steps, float dt) = 0;
  /// Tells that the commands have been submitted, as Renderer::timeline() and Renderer::submitted() say.
  virtual void submitted(int frame) = 0;
  /// The contents of the vertex buffer when all work is done.
  virtual std::vector<Point> points() = 0;
  /// Lets go of the device. Nothing else is called afterwards.
  virtual void end() = 0;
};

/// A simulation that can run on the device of the renderer.
struct Guest {
  /// Adds the requirements of the simulation to the device that is going to be made. See RendererSetup::guest.
  decltype(RendererSetup::guest) ask;
  /// Puts `drops` drops into the vertex buffer.
  std::function<std::unique_ptr<Simulation>(Renderer& renderer, int drops)> begin;
};

/// Shows a simulation, and writes its last frame to FOLDER/NAME.png.
/// \return  a description of what is wrong with the outcome, if anything
/// Errors: std::runtime_error of the renderer, the window or the file.
std::string show(const ShowOptions& options, const char* name, const Guest& guest);
