// Notes the structures among the arguments of a launch while these are taken. Internal to the runtime.
#pragma once
#include <memory>
#include <span>

namespace weft::detail {

struct StructureUse;

/// The structures that one launch is given. They are noted from the beginning of this object until its close(), except
/// while this thread has a later object open: a structure may launch kernels while it is taken.
class GivenStructures {
 public:
  enum class For {
    launch,  ///< a launch that follows at once
    graph,   ///< a launch by a graph later: the conditions of that moment are not checked now
  };
  explicit GivenStructures(For what);
  GivenStructures(const GivenStructures&) = delete;
  GivenStructures& operator=(const GivenStructures&) = delete;
  ~GivenStructures();
  void close();

  /// The object of this thread; null if structures that are taken now are no arguments of a launch.
  static GivenStructures* current();
  bool is_for_graph() const { return for_ == For::graph; }
  void note(const StructureUse& use);
  std::span<const StructureUse> uses() const;

 private:
  struct List;
  std::unique_ptr<List> list_;  ///< made for the first structure, because most launches are given only arrays
  GivenStructures* before_;
  const For for_;
  bool open_ = true;
};

/// Checks data of a structure that a launch takes as an argument, and notes them for a graph or a tape, which checks
/// them again later.
/// Errors: Error(invalid_argument) for a launch that runs now, if the device holds other data.
/// Cost: some 30 nanoseconds.
void use_structure(const StructureUse& use);

}  // namespace weft::detail
