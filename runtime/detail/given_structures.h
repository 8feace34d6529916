// Structures among the arguments of a launch, noted while these are taken. Internal to the runtime.
#pragma once
#include <memory>
#include <span>

namespace weft::detail {

struct StructureUse;

/// The structures that one launch is given. They are noted from the beginning of this object until its close(), or
/// until another one of this thread begins: a structure may launch kernels while it is taken.
class GivenStructures {
 public:
  enum class For {
    launch,  ///< that follows at once
    graph,   ///< which is launched later: what has to hold then is not asked now
  };
  explicit GivenStructures(For what);
  GivenStructures(const GivenStructures&) = delete;
  GivenStructures& operator=(const GivenStructures&) = delete;
  ~GivenStructures();
  void close();

  /// Of this thread, or null: what is taken by then is no argument of a launch.
  static GivenStructures* current();
  bool is_for_graph() const { return for_ == For::graph; }
  void note(const StructureUse& use);
  std::span<const StructureUse> uses() const;

 private:
  struct List;
  std::unique_ptr<List> list_;  ///< made when there is something to note: most launches are given arrays alone
  GivenStructures* before_;
  const For for_;
  bool open_ = true;
};

}  // namespace weft::detail
