// Which numbers among the arguments of a kernel are ids of structures, found while its code is traced.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "../../../frontend/language/struct_var.h"
#include "../../../runtime/geometry/mesh/mesh_arrays.h"
#include "../types.h"
#include "array_refs.h"
#include "ids.h"

namespace weft::python {

/// A number of 64 bits among a kernel's arguments: a part (see Kernel::parts()), and the place in its bytes.
struct IdPlace {
  std::size_t part;
  std::uint32_t offset;
  auto operator<=>(const IdPlace&) const = default;
};

/// What a kernel does by ids that are among its arguments. What it computes or reads from arrays is not known.
struct KernelIds {
  std::map<IdPlace, unsigned> used;  ///< the kinds of structures (IdKind) that each number may be the id of
  /// The volumes that the kernel writes, and the types of their values. Their values come as arrays of two dimensions
  /// after all other parameters, in this order.
  std::vector<std::pair<IdPlace, const DType*>> stored;

  bool empty() const { return used.empty() && stored.empty(); }
};

/// The trace of a kernel as far as ids go. The innermost one is this thread's.
class IdTrace {
 public:
  /// \param finding  notes into `ids` what the kernel does; else the values of volumes are made as `ids` says
  IdTrace(KernelIds& ids, bool finding);
  ~IdTrace();
  IdTrace(const IdTrace&) = delete;

  /// Notes the scalars of a value among the parameters.
  void add_part(std::size_t part, const DType& dtype, const Ids& scalars);
  /// Makes the parameters for the values of volumes, after all others.
  void make_values();
  /// Makes the parameters for the data of meshes with the ids at these places, after all others.
  void make_meshes(const std::vector<IdPlace>& places);

  /// Notes that a value of the trace is used as the id of a structure of one of these kinds.
  void use(Id id, unsigned kinds);
  /// The values of the volume with this id, element (l, 512 of leaf l), which the kernel may write.
  /// Errors: TypeError for an id that is not among the kernel's arguments.
  ArrayRef stored_values(Id id, const DType& dtype);

  /// The data of the mesh with this id, if they are parameters of the kernel; else null.
  const Var<MeshArrays>* mesh(Id id) const;

  static IdTrace* current();

 private:
  KernelIds& ids_;
  const bool finding_;
  IdTrace* const outer_;
  std::map<Id, IdPlace> places_;
  std::vector<ArrayRef> values_;
  std::map<IdPlace, std::unique_ptr<const Var<MeshArrays>>> meshes_;
};

}  // namespace weft::python
