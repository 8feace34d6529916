// The parts of a hierarchy that a Bvh or a Mesh holds. Internal to the runtime.
#pragma once
#include <memory>

#include "../../core/generation.h"
#include "../bvh.h"
#include "../structures/element.h"

namespace weft::detail {

/// The arrays of a hierarchy on the device, and what builds and refits them. Its owner decides which callers may change
/// it.
struct BvhTree {
  BvhTree(const Device& device, const BvhOptions& options);

  const Device device;
  BvhOptions options;          ///< stay as they were, except for the groups
  Array<vec3> lowers, uppers;  ///< as given; those of `data` are contiguous
  BvhData data;
  Array<int> arrived;    ///< by node; zero between passes
  bool of_mesh = false;  ///< launches that are given the mesh ask for that
  const std::shared_ptr<Generation> generation = std::make_shared<Generation>("a hierarchy", "boxes");
  Element<BvhData> element;

  /// Builds a new tree of any number of boxes. In a capture: of as many boxes as it has, from the arrays that it has.
  /// \param groups  null: none
  /// Errors: those of Bvh and of refuse_change(), after which nothing has changed.
  void build(const Array<vec3>& lowers, const Array<vec3>& uppers, const Array<int>& groups);
  /// Refits to new bounds.
  /// Errors: as build(), and Error(invalid_argument) for another number of boxes.
  void refit(const Array<vec3>& lowers, const Array<vec3>& uppers);
  /// Throws Error(invalid_argument) after a refit or a rebuild that failed.
  void check_whole() const;
  /// Raise the errors of a build or a refit before anything changes. They do nothing in a capture.
  void refuse_build(const Array<vec3>& lowers, const Array<vec3>& uppers, const Array<int>& groups) const;
  void refuse_refit(const Array<vec3>& lowers, const Array<vec3>& uppers) const;
  StructureUse use() const;
  /// The data for elements, which hold contiguous arrays only: boxes in strided views are copied.
  BvhData contiguous_data();

 private:
  void refuse_captured(const Array<vec3>& lowers, const Array<vec3>& uppers, bool grouped) const;
  void take_boxes(const Array<vec3>& lowers, const Array<vec3>& uppers);
  void make_room(std::int64_t boxes, bool grouped);
  void write_element();
  void build_now();

  Array<vec3> lower_rows_, upper_rows_;  ///< see in_rows()
};

/// The number of a hierarchy's data, see Generation.
std::uint64_t generation_number(const BvhData& data);

}  // namespace weft::detail
