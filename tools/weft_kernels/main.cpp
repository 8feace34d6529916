// weft-kernels: lists, shows and exports the kernels of programs and libraries that are built with weft.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "../../frontend/support/error.h"
#include "../../spirv/emit.h"
#include "kernels.h"

namespace weft::tool {

namespace {

constexpr const char* kAbout =
    "Lists, shows and exports the kernels of programs and libraries that are built with weft. Needs no GPU.\n"
    "A shared library is loaded: its kernels at namespace scope are found. A program after -- is run: each kernel "
    "that "
    "it launches is found, as it is launched, and the adjoints that its tapes need. Folders and .json files that were "
    "exported before are read.";

std::string kind_of(const Found& found) {
  const bool adjoint =
      found.refused.empty() ? found.kernel.reflection.adjoint : found.stem.find(".adjoint") != std::string::npos;
  return adjoint ? "adjoint" : "kernel";
}

// Lists the requirements of a kernel to the device in addition to those of weft itself.
std::string needs(const Reflection& r) {
  std::vector<std::string> all;
  for (const auto* list : {&r.features, &r.properties})
    for (const std::string& name : *list)
      if (name != "bufferDeviceAddress" && name != "scalarBlockLayout" && name != "shaderInt64") all.push_back(name);
  return all.empty() ? "" : fmt::format("; needs {}", fmt::join(all, ", "));
}

int list(const std::vector<Found>& all) {
  std::size_t width = 0;
  for (const Found& found : all) width = std::max(width, found.stem.size());
  for (const Found& found : all) {
    fmt::print("{:{}}  {:7}  ", found.stem, width, kind_of(found));
    if (!found.refused.empty()) {
      fmt::print("not exported: {}\n", found.refused);
      continue;
    }
    const Reflection& r = found.kernel.reflection;
    fmt::print("\"{}\", {} arguments in {} bytes{}, workgroups of {}, {} bytes of SPIR-V{}\n", r.name,
               r.arguments.size(), r.args_bytes, r.by_address ? " in memory" : "", r.block, r.spirv_bytes, needs(r));
  }
  return 0;
}

// Chooses the kernels whose name or stem is given; all if none is.
std::vector<Found> chosen(std::vector<Found> all, const std::vector<std::string>& names) {
  const auto is_called = [](const Found& found, const std::string& name) {
    return found.stem == name || found.name == name;
  };
  for (const std::string& name : names) {
    if (std::ranges::any_of(all, [&](const Found& found) { return is_called(found, name); })) continue;
    std::vector<std::string> known;
    for (const Found& found : all) known.push_back(found.stem);
    throw Error(ErrorKind::invalid_argument,
                fmt::format("no kernel is called \"{}\"; there are {}", name, fmt::join(known, ", ")));
  }
  if (!names.empty())
    std::erase_if(all, [&](const Found& found) {
      return std::ranges::none_of(names, [&](const std::string& name) { return is_called(found, name); });
    });
  return all;
}

// Prints kernels in the given form.
// \return the exit code: 1 if some of what was asked for does not exist
int dump(const std::vector<Found>& all, const std::string& form) {
  int code = 0;
  for (const Found& found : all) {
    if (!found.refused.empty()) {
      fmt::print(stderr, "weft-kernels: {}: {}\n", found.stem, found.refused);
      code = 1;
      continue;
    }
    if (all.size() > 1 && form != "json") fmt::print("; {}\n", found.stem);
    if (form == "ir" && found.kernel.ir.empty()) {
      fmt::print(stderr, "weft-kernels: {}: no .ir file is beside its .json\n", found.stem);
      code = 1;
    }
    fmt::print("{}", form == "ir"     ? found.kernel.ir
                     : form == "json" ? to_json(found.kernel.reflection)
                                      : spirv::disassemble(found.kernel.words));
  }
  return code;
}

int write(const std::vector<Found>& all, const std::string& folder) {
  int code = 0;
  for (const Found& found : all) {
    if (!found.refused.empty()) {
      fmt::print(stderr, "weft-kernels: {} is not exported: {}\n", found.stem, found.refused);
      code = 1;
      continue;
    }
    if (const std::string bad = spirv::validate(found.kernel.words); !bad.empty())
      throw Error(ErrorKind::invalid_argument, fmt::format("the module of {} is not valid: {}", found.stem, bad));
    write_spirv(found.kernel, folder, found.stem);
    fmt::print("{}/{}.spv {}/{}.json\n", folder, found.stem, folder, found.stem);
  }
  return code;
}

int run(int argc, char** argv) {
  // Arguments after -- belong to the program, including options.
  char** const own_end = std::find(argv + 1, argv + argc, std::string_view("--"));
  Request request;
  for (char** at = own_end; at < argv + argc; ++at)
    if (at != own_end) request.program.emplace_back(*at);
  const bool runs = own_end != argv + argc;

  CLI::App app{kAbout, "weft-kernels"};
  app.require_subcommand(1);
  std::vector<std::string> names;
  std::string form = "spirv", folder;
  const auto add = [&](const char* name, const char* about) {
    CLI::App* command = app.add_subcommand(name, about);
    command->add_option("files", request.files, "shared libraries, exported .json files, folders of these");
    command->add_option("--target", request.target, "what modules may ask of devices: portable, floor or everything")
        ->capture_default_str();
    command->add_flag("--adjoint", request.adjoint, "the adjoints of a library's kernels too; an error for all else");
    command->add_option("--kernel,-k", names, "only kernels of this name")->take_all()->allow_extra_args(false);
    command->footer("-- PROGRAM ARGUMENTS...   runs a program and takes the kernels that it launches");
    return command;
  };
  const CLI::App* list_command = add("list", "one line for each kernel");
  CLI::App* dump_command = add("dump", "kernels as text");
  dump_command->add_option("--form,-f", form, "ir, spirv (disassembled) or json")
      ->check(CLI::IsMember({"ir", "spirv", "json"}))
      ->capture_default_str();
  CLI::App* export_command = add("export", "writes NAME.spv and NAME.json for each kernel");
  export_command->add_option("--output,-o", folder, "the folder to write to")->required();
  export_command->add_flag("--optimise", request.optimise, "by SPIRV-Tools' passes for performance");
  try {
    app.parse(int(own_end - argv), argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  }
  if (runs && request.program.empty()) throw Error(ErrorKind::invalid_argument, "no program stands after --");
  if (!runs && request.files.empty())
    throw Error(ErrorKind::invalid_argument, "neither a file nor a program is named: see weft-kernels --help");

  const std::vector<Found> all = chosen(find_kernels(request), names);
  if (list_command->parsed()) return list(all);
  return dump_command->parsed() ? dump(all, form) : write(all, folder);
}

}  // namespace
}  // namespace weft::tool

int main(int argc, char** argv) {
  try {
    return weft::tool::run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "weft-kernels: {}\n", e.what());
    return 1;
  }
}
