// The structures among the arguments of a launch. Internal to the runtime.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft::detail {

class Generation;

/// Data of a structure that work is given, or after whose number and size it builds the structure.
struct StructureUse {
  std::shared_ptr<Generation> structure;  ///< null: the data belong to no structure
  std::uint64_t number = 0;
  std::int64_t size = 0;  ///< for messages

  /// Whether the device holds these data.
  bool holds() const;
  /// The data in a message: "a hash grid of 100 points"
  std::string what() const;
};

/// The structures that one launch is given.
class GivenStructures {
 public:
  enum class For {
    launch,  ///< a launch that follows at once
    graph,   ///< a launch by a graph later: the conditions of that moment are not checked now
  };
  explicit GivenStructures(For what) : for_(what) {}

  /// Checks data that the launch takes as an argument, and notes them for a graph or a tape, which checks them again
  /// later.
  /// Errors: Error(invalid_argument) for a launch that runs now, if the device holds other data.
  void add(const StructureUse& use);
  std::span<const StructureUse> uses() const { return uses_; }

 private:
  const For for_;
  std::vector<StructureUse> uses_;
};

}  // namespace weft::detail
