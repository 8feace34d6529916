// Splits arrays into the parts of independent environments.
#include "../jacobian.h"

#include <fmt/format.h>

#include "../../frontend/support/error.h"
#include "../../frontend/support/invalid.h"

namespace weft::detail {

std::int64_t scalars_of_each(const ArrayBase& a, std::int64_t scalars, std::int64_t environments, const char* name) {
  if (a.is_null()) invalid("the Jacobian: {} is a null array", name);
  if (a.size() == 0) invalid("the Jacobian: {} is empty", name);
  const std::int64_t first = a.shape(0);
  if (environments < 1 || (environments > 1 && first % environments != 0))
    invalid(
        fmt::format("the Jacobians of {} environments: the first dimension of {} has {} elements, which are not as "
                    "many for each",
                    environments, name, first));
  return a.size() / environments * scalars;
}

}  // namespace weft::detail
