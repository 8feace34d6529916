// Bounding volume hierarchies over boxes, built and refitted on the device.
#pragma once
#include "../launch.h"
#include "bvh/bvh_node.h"

namespace weft {

enum class BvhBuilder {
  hploc,  ///< clusters that are merged where that adds the least area: as good as a tree by surface areas
  lbvh,   ///< by place along a space-filling curve: quicker to build, slower to walk
};

struct BvhOptions {
  BvhBuilder builder = BvhBuilder::hploc;
  /// Most primitives in a leaf, 1 to 8. H-PLOC makes leaves of several where that costs no more by surface areas, LBVH
  /// wherever it may. Points are of no area, and share a leaf by H-PLOC only where all that is in it has none.
  int leaf_size = 1;
  /// Bits of a primitive's place along the curve, 30 or 60: 10 or 20 along each axis. More tell small parts of a large
  /// scene apart, and take about twice as long to sort.
  int curve_bits = 30;
  /// (N) any numbers; null: no groups. Primitives of one number stand in one subtree, which queries may look at alone:
  /// bvh_group_root(). The array is kept; rebuild() looks at it again.
  Array<int> groups = {};
};

namespace detail {
struct BvhState;
struct BvhTree;
void check_boxes(std::span<const vec3> lowers, std::span<const vec3> uppers);
}  // namespace detail

/// A binary tree of boxes over primitives, each given by its box. A handle: copies share the tree.
///
/// Kernels take it as `Var<BvhData>`, or by id(). The arrays of boxes are kept, not copied: who changes their elements
/// says refit() or rebuild() afterwards.
///
/// A box of which a bound is NaN or infinite, or of which a lower bound is above the upper one, is no box: its
/// primitive is in the tree with an empty box, so that nothing finds it. In debug mode (set_debug) the build reports
/// it as a failed assertion, to whoever waits; ignored() says how many there were. Boxes that the host gives are
/// looked at and refused.
///
/// The same boxes give the same tree, bit by bit, in every build on a device; with BvhBuilder::lbvh the same tree, but
/// for the signs of zeros, on all devices.
///
/// Errors: Error(invalid_argument) for arrays whose lengths differ or that are on another device, for a builder that is
/// none, a leaf size out of range, for bits that are neither 30 nor 60, and for calls of a null hierarchy;
/// Error(unsupported) for 60 bits on a device without 64-bit integers; Error(out_of_memory). Where a refit or a rebuild
/// ran out of memory the hierarchy cannot be used until a rebuild() that does not; graphs that were captured with it
/// before are refused until then.
/// Cost: launches on Device::stream(), and no wait; 76 bytes a primitive, and while it is built 4 (LBVH) to 57
/// (H-PLOC with leaves of several primitives) more; with groups 8 more, a second sort and 4 more while it is built,
/// with 60 bits 4 while it is built. Source: Apetrei 2014, "Fast and Simple Agglomerative LBVH Construction"; Benthin
/// et al. 2024, "H-PLOC".
class Bvh {
 public:
  /// A null hierarchy.
  Bvh() = default;
  Bvh(const Device& device, const Array<vec3>& lowers, const Array<vec3>& uppers, const BvhOptions& options = {},
      Loc loc = Loc::here());
  /// From boxes of the host. Errors: Error(invalid_argument) naming a primitive whose box is none.
  template <detail::SequenceOf<vec3> R>
  Bvh(const Device& device, const R& lowers, const R& uppers, const BvhOptions& options = {}, Loc loc = Loc::here())
      : Bvh(device, checked(device, lowers, lowers, uppers, loc), Array<vec3>(device, uppers, loc), options, loc) {}

  /// The boxes have moved: the same tree with new bounds, each as tight as one of a new build. The tree stays as good
  /// as it was where primitives moved together.
  /// Errors: Error(invalid_argument) for another number of boxes than the tree has.
  void refit(const Array<vec3>& lowers, const Array<vec3>& uppers, Loc loc = Loc::here());
  /// The same after the elements of its arrays have changed.
  void refit(Loc loc = Loc::here());
  /// A new tree, of any number of boxes, behind the same id(); where it has groups, from the array that it has.
  void rebuild(const Array<vec3>& lowers, const Array<vec3>& uppers, Loc loc = Loc::here());
  void rebuild(Loc loc = Loc::here());
  /// The same with other groups; null: with none.
  void rebuild(const Array<vec3>& lowers, const Array<vec3>& uppers, const Array<int>& groups, Loc loc = Loc::here());

  bool is_null() const { return !state_; }
  Device device() const;
  /// Of primitives.
  std::int64_t size() const;
  const BvhOptions& options() const;
  /// Whether it was made with groups.
  bool is_grouped() const { return !options().groups.is_null(); }
  /// Nodes on the longest way from the root down: what a stack of a walk needs. Waits.
  int depth(Loc loc = Loc::here()) const;
  /// Primitives whose box is none. Waits.
  std::int64_t ignored(Loc loc = Loc::here()) const;

  const Array<BvhNode>& nodes() const { return arrays().nodes; }
  const Array<int>& primitives() const { return arrays().primitives; }
  const Array<int>& parents() const { return arrays().parents; }
  /// What kernels are given, also as a member of a struct of yours: as it is now, with all of its arrays. Launches
  /// refuse it once the device holds something else: taken anew behind each rebuild for another number of boxes or with
  /// other groups, and each refit to other arrays. Errors: Error(invalid_argument) where the last refit or rebuild
  /// failed.
  const BvhData& data() const;
  const BvhData& kernel_argument() const { return data(); }
  /// One element: the data as it lies in the memory of the device. A launch that is given this array (or one of structs
  /// that refer to it) is ordered with builds and refits.
  const Array<BvhData>& header() const;
  /// Address of that element: stays the same as long as the hierarchy lives.
  std::uint64_t id(Loc loc = Loc::here()) const;

 private:
  friend class Mesh;
  /// From now on the mesh alone refits and rebuilds it.
  detail::BvhTree& hand_over();
  /// Errors: Error(invalid_argument) for that of a mesh.
  detail::BvhTree& own_tree();
  const BvhData& arrays() const;
  static Array<vec3> checked(const Device& device, std::span<const vec3> values, std::span<const vec3> lowers,
                             std::span<const vec3> uppers, Loc loc) {
    detail::called_from(loc, [&] { detail::check_boxes(lowers, uppers); });
    return Array<vec3>(device, values, loc);
  }
  detail::BvhState& state() const;
  std::shared_ptr<detail::BvhState> state_;
};

}  // namespace weft
