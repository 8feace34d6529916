// embed_exported: the renderer of embed alone. The kernel that `embed --export` wrote moves its drops; of weft only the
// loader is linked.
#include "../plain/exported.h"

int main(int argc, char** argv) {
  ShowOptions o;
  std::string json;
  const auto add = [&](CLI::App& app) {
    add_options(app, o);
    app.add_option("--kernel", json, "The .json of a step, as embed --export writes it, with its .spv beside it")
        ->required();
  };
  return run_program({"embed_exported",
                      "Draws a fountain by a kernel that was exported, without weft.",
                      add,
                      {},
                      [&] { return show(o, "embed_exported", exported_guest(json)); }},
                     argc, argv);
}
