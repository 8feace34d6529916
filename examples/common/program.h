// What all programs have in common: command line, device, folder for pictures, time, and how they end.
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

/// What every program is told.
struct ProgramOptions {
  std::string device, out = "pictures";
};

/// Of programs that draw.
struct DrawingOptions : ProgramOptions {
  int samples = 16, width = 640, height = 360;
};

/// Of programs that draw a simulation as it goes on.
struct FilmOptions : DrawingOptions {
  int frames = 120, substeps = 32, pictures = 4;
};

/// Adds the options of these names with their defaults.
void add_options(CLI::App& app, ProgramOptions& options);
void add_options(CLI::App& app, DrawingOptions& options);
void add_options(CLI::App& app, FilmOptions& options);
/// What add_options() cannot say of a single option. Throws CLI::ValidationError.
void check_options(const FilmOptions& options);

/// A program from its main().
struct Program {
  const char *name, *about;
  std::function<void(CLI::App&)> add_options;
  /// Throws CLI::ValidationError for options that do not go together.
  std::function<void()> check_options = {};
  /// \return  what is wrong with the outcome, if anything
  std::function<std::string()> run;
};

/// Reads the command line and runs the program. What is wrong in the end becomes a line on the standard error stream:
/// what `run` throws, or what it returns that is not empty.
/// \return  the exit status: 0 when all is well, else 1
int run_program(const Program& program, int argc, char** argv);

/// The device of that name, or the best one; says which.
weft::Device device_of(const ProgramOptions& options);
/// The folder for pictures, which is made where it is missing.
std::filesystem::path folder_of(const ProgramOptions& options);

/// A bar in the last line of the terminal: "[####....] frame 5 of 10"; `all` ends the line.
void show_progress(const char* what, int done, int all);

/// Seconds since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// Goes through a simulation frame by frame and draws some of them: the first before anything has happened, the last at
/// the end, the others evenly between. The pictures become files of their own and one sheet, NAME.png.
class Film {
 public:
  /// \param draw  of what there is now
  Film(const FilmOptions& options, const char* name, std::function<Picture()> draw);

  /// \param advance  simulates a frame, of the numbers 1, 2, ..., and waits for it; says what has gone wrong, if
  ///                 anything, which ends the film
  std::string run(const std::function<std::string(int frame)>& advance);

  double seconds_simulating() const { return simulating_; }
  /// Writes the sheet, and says where the pictures are and how long it took.
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
