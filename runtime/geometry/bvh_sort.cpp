#include <algorithm>
#include <numeric>

#include "bvh_build.h"
namespace weft::detail {
void sort_pairs(const Array<unsigned>& keys, const Array<int>& values) {
  auto k = keys.to_vector();
  auto v = values.to_vector();
  std::vector<std::uint64_t> both(k.size());
  for (std::size_t i = 0; i < k.size(); ++i) both[i] = std::uint64_t(k[i]) << 32 | std::uint32_t(i);
  std::sort(both.begin(), both.end());
  std::vector<int> w(v.size());
  for (std::size_t i = 0; i < k.size(); ++i) k[i] = unsigned(both[i] >> 32), w[i] = v[std::uint32_t(both[i])];
  Array<unsigned>(keys).assign(k);
  Array<int>(values).assign(w);
}
void sum_before(const Array<int>& values) {
  auto v = values.to_vector();
  std::exclusive_scan(v.begin(), v.end(), v.begin(), 0);
  Array<int>(values).assign(v);
}
}  // namespace weft::detail
