// The common part of all programs: command line, device, folder for pictures, time, and exit.
#pragma once
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "picture.h"

namespace weft {
class Device;
}

/// The options of every program.
struct ProgramOptions {
  std::string device, out = "pictures";
};

/// The options of programs that draw.
struct DrawingOptions : ProgramOptions {
  int samples = 16, width = 640, height = 360;
};

/// The options of programs that draw a simulation as it continues.
struct FilmOptions : DrawingOptions {
  int frames = 120, substeps = 32, pictures = 4;
};

/// Adds the options of these names with their defaults.
void add_options(CLI::App& app, ProgramOptions& options);
void add_options(CLI::App& app, DrawingOptions& options);
void add_options(CLI::App& app, FilmOptions& options);
/// Checks what add_options() cannot say of a single option. Throws CLI::ValidationError.
void check_options(const FilmOptions& options);

/// The description of a program, which its main() gives.
struct Program {
  const char *name, *about;
  std::function<void(CLI::App&)> add_options;
  /// Throws CLI::ValidationError for options that do not go together.
  std::function<void()> check_options = {};
  /// \return  a description of what is wrong with the outcome, if anything
  std::function<std::string()> run;
};

/// Reads the command line and runs the program. An exception of `run`, or a result of it that is not empty, becomes a
/// line on the standard error stream.
/// \return  the exit status: 0 when all is well, else 1
int run_program(const Program& program, int argc, char** argv);

/// Opens the device of that name, or the best one, and says which.
weft::Device device_of(const ProgramOptions& options);
/// The folder for pictures, which is made if it does not exist.
std::filesystem::path folder_of(const ProgramOptions& options);

/// A bar in the last line of the terminal: "[####....] frame 5 of 10"; `all` ends the line.
void show_progress(const char* what, int done, int all);

/// Measures the seconds since its construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// Runs a simulation frame by frame and draws some frames: the start, the end, and the others evenly between. The
/// pictures become files of their own and one sheet, NAME.png.
class Film {
 public:
  /// \param draw  draws the present state
  Film(const FilmOptions& options, const char* name, std::function<Picture()> draw);

  /// \param advance  simulates frame number 1, 2, ..., and waits for it; returns a description of what has gone wrong,
  ///                 if anything, which ends the film
  std::string run(const std::function<std::string(int frame)>& advance);

  double seconds_simulating() const { return simulating_; }
  /// Writes the sheet, and reports where the pictures are and how long the film took.
  void finish();

 private:
  void take_picture(int frame);

  const FilmOptions& options_;
  const std::string name_;
  const std::function<Picture()> draw_;
  const std::filesystem::path folder_;
  std::vector<Picture> pictures_;
  double simulating_ = 0, drawing_ = 0;
};
