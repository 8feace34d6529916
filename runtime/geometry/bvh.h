// Bounding volume hierarchies over boxes, built and refitted on the device.
#pragma once
#include "../launch.h"
#include "bvh/bvh_node.h"

namespace weft {

enum class BvhBuilder {
  hploc,  ///< merges clusters where that adds the least area: as good as a tree by surface areas
  lbvh,   ///< orders primitives along a space-filling curve: quicker to build, slower to walk
};

struct BvhOptions {
  BvhBuilder builder = BvhBuilder::hploc;
  /// The most primitives in a leaf, 1 to 8. H-PLOC makes leaves of several if that costs no more by surface areas, LBVH
  /// wherever it may. Points have no area: H-PLOC lets them share a leaf only if everything in it has none.
  int leaf_size = 1;
  /// The bits of a primitive's place along the curve, 30 or 60: 10 or 20 along each axis. 60 bits tell small parts of a
  /// large scene apart, and take about twice as long to sort.
  int curve_bits = 30;
  /// (N) any numbers; null: no groups. The primitives of one number stand in one subtree, which queries may look at
  /// alone: see bvh_group_root(). The array is kept; rebuild() reads it again.
  Array<int> groups = {};
};

namespace detail {
struct BvhTree;
void check_boxes(std::span<const vec3> lowers, std::span<const vec3> uppers);
}  // namespace detail

/// A binary tree of boxes over primitives, each given by its box. A handle: copies share the tree.
///
/// Kernels take the hierarchy as `Var<BvhData>`, or by id(). The arrays of boxes are kept, not copied: after changing
/// their elements, call refit() or rebuild().
///
/// A box is invalid if a bound is NaN or infinite, or a lower bound is above the upper one. Its primitive is in the
/// tree with an empty box, so nothing finds it. In debug mode (set_debug) the build reports it as a failed assertion,
/// by the next wait; ignored() returns the number of such primitives. Boxes that the host gives are checked and
/// refused.
///
/// The same boxes give the same tree, bit by bit, in every build on a device. With BvhBuilder::lbvh the tree is the
/// same on all devices, except for the signs of zeros.
///
/// Errors: Error(invalid_argument) for arrays of different lengths or on another device, for options out of range, and
/// for calls of a null hierarchy; Error(unsupported) for 60 bits on a device without 64-bit integers;
/// Error(out_of_memory), after which the hierarchy is refused until a rebuild() succeeds. See docs/geometry.md.
/// Cost: launches on Device::stream(), no wait. 76 bytes a primitive, and during a build 96 (LBVH) or 133 (H-PLOC)
/// more; with groups 8 more, a second sort, and 4 more during a build; with 60 bits 4 more during a build.
/// Source: Apetrei 2014, "Fast and Simple Agglomerative LBVH Construction"; Benthin et al. 2024, "H-PLOC".
class Bvh {
 public:
  /// A null hierarchy.
  Bvh() = default;
  Bvh(const Device& device, const Array<vec3>& lowers, const Array<vec3>& uppers, const BvhOptions& options = {},
      Loc loc = Loc::here());
  /// Builds a hierarchy over boxes of the host. Errors: Error(invalid_argument) naming a primitive whose box is
  /// invalid.
  template <detail::SequenceOf<vec3> R>
  Bvh(const Device& device, const R& lowers, const R& uppers, const BvhOptions& options = {}, Loc loc = Loc::here())
      : Bvh(device, checked(device, lowers, lowers, uppers, loc), Array<vec3>(device, uppers, loc), options, loc) {}

  /// Fits the same tree to boxes that have moved: each bound is as tight as in a new build. The tree stays as good as
  /// it was if primitives moved together.
  /// Errors: Error(invalid_argument) for another number of boxes than the tree has, and in a capture for other arrays.
  void refit(const Array<vec3>& lowers, const Array<vec3>& uppers, Loc loc = Loc::here());
  /// Fits the tree after the elements of its own arrays have changed.
  void refit(Loc loc = Loc::here());
  /// Builds a new tree, of any number of boxes, under the same id(). Groups are read from the array that the hierarchy
  /// has.
  /// Errors: in a capture, also Error(invalid_argument) for other arrays than the tree has, or groups if it has none.
  void rebuild(const Array<vec3>& lowers, const Array<vec3>& uppers, Loc loc = Loc::here());
  void rebuild(Loc loc = Loc::here());
  /// Builds a new tree with other groups; null: without groups.
  void rebuild(const Array<vec3>& lowers, const Array<vec3>& uppers, const Array<int>& groups, Loc loc = Loc::here());

  bool is_null() const { return !tree_; }
  Device device() const;
  /// The number of primitives.
  std::int64_t size() const;
  const BvhOptions& options() const;
  /// The number of nodes on the longest path down from the root, which a walk needs as its stack. Waits.
  int depth(Loc loc = Loc::here()) const;
  /// The number of primitives whose box is invalid. Waits.
  std::int64_t ignored(Loc loc = Loc::here()) const;

  /// The value that kernels take, also as a member of a struct of yours: the hierarchy as it is now, with all of its
  /// arrays. Launches refuse this value once the device holds other data, so take it anew after each rebuild for
  /// another number of boxes or with other groups, and after each refit to other arrays.
  /// Errors: Error(invalid_argument) if the last refit or rebuild failed.
  const BvhData& data() const;
  const BvhData& kernel_argument() const { return data(); }
  /// A value by which kernels find the hierarchy (bvh_at()), in arrays and structs too. It stays the same as long as
  /// the hierarchy lives.
  std::uint64_t id(Loc loc = Loc::here()) const;

 private:
  friend class Mesh;
  /// Gives the tree to a mesh, which alone refits and rebuilds it from now on.
  detail::BvhTree& hand_over();
  /// The tree, for calls that change it. Errors: Error(invalid_argument) for the hierarchy of a mesh.
  detail::BvhTree& own_tree();
  static Array<vec3> checked(const Device& device, std::span<const vec3> values, std::span<const vec3> lowers,
                             std::span<const vec3> uppers, Loc loc) {
    detail::called_from(loc, [&] { detail::check_boxes(lowers, uppers); });
    return Array<vec3>(device, values, loc);
  }
  detail::BvhTree& tree() const;
  std::shared_ptr<detail::BvhTree> tree_;
};

}  // namespace weft
