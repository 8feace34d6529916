// embed: a renderer in plain Vulkan draws particles that weft simulates in the renderer's own vertex buffer, in the
// command buffer of the frame.
#include <fmt/core.h>

#include "fountain.h"

namespace {

struct Options : ShowOptions {
  std::string folder;  // for the exported step
};

/// \return  a description of what is wrong with the outcome, if anything
std::string run(const Options& o) {
  if (o.folder.empty()) return show(o, "embed", fountain_guest());
  weft::write_spirv(exported_fountain(), o.folder, "fly");
  fmt::print("kernel    {}\n", (std::filesystem::absolute(o.folder) / "fly.json").string());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const auto add = [&](CLI::App& app) {
    add_options(app, o);
    app.add_option("--export", o.folder,
                   "Only writes the step of the simulation, for embed_exported, into this folder");
  };
  return run_program({"embed",
                      "Draws a fountain with a renderer that has weft as a guest on its device.",
                      add,
                      {},
                      [&] { return run(o); }},
                     argc, argv);
}
