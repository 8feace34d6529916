// A hierarchy as its parts, which a Bvh or a Mesh holds. Internal to the runtime.
#pragma once
#include <memory>

#include "../../core/generation.h"
#include "../bvh.h"

namespace weft::detail {

/// The arrays of a hierarchy on the device, and what builds and refits them. Whoever holds one says who may change it.
struct BvhTree {
  BvhTree(const Device& device, const BvhOptions& options);

  const Device device;
  BvhOptions options;          ///< but for the groups they stay
  Array<vec3> lowers, uppers;  ///< as they were given; those of `data` are contiguous
  BvhData data;
  Array<int> arrived;     ///< by node; zeros between passes
  Array<BvhData> header;  ///< `data` in the memory of the device
  bool of_mesh = false;   ///< launches that are given the mesh ask for that
  const std::shared_ptr<Generation> generation = std::make_shared<Generation>("a hierarchy", "boxes");

  /// A new tree of any number of boxes. In a capture: of as many as it has, from the arrays that it has.
  /// \param groups  null: none
  /// Errors: see Bvh; those of refuse_change(), and then nothing has changed.
  void build(const Array<vec3>& lowers, const Array<vec3>& uppers, const Array<int>& groups);
  /// New bounds. Errors: as build(), and Error(invalid_argument) for another number of boxes.
  void refit(const Array<vec3>& lowers, const Array<vec3>& uppers);
  /// Errors: Error(invalid_argument) after a refit or a rebuild that failed.
  void check_whole() const;
  /// What may refuse a build or a refit, asked before anything changes. Nothing in a capture.
  void refuse_build(const Array<vec3>& lowers, const Array<vec3>& uppers, const Array<int>& groups) const;
  void refuse_refit(const Array<vec3>& lowers, const Array<vec3>& uppers) const;
  StructureUse use() const;

 private:
  /// Other boxes, or rows of them that are contiguous copies: those are read again.
  bool refit_writes_header(const Array<vec3>& lowers, const Array<vec3>& uppers) const;
  void refuse_captured(const Array<vec3>& lowers, const Array<vec3>& uppers, bool grouped) const;
  void take_boxes(const Array<vec3>& lowers, const Array<vec3>& uppers);
  void make_room(std::int64_t boxes, bool grouped);
  void write_header();
  void build_now();
};

/// The number of a hierarchy's data, see Generation.
std::uint64_t generation_number(const BvhData& data);

}  // namespace weft::detail
