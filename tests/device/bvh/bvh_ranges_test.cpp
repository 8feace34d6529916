// The ranges with which a climb of clusters begins, against a climb from single places on the host.
#include "../../../runtime/geometry/bvh/bvh_ranges.h"

#include <weft/weft.h>

#include <algorithm>
#include <random>
#include <vector>

#include "../../../runtime/core/state.h"
#include "../device_test.h"
#include "../subgroup_sizes.h"

using namespace weft;

namespace {

DEVICE_TEST(BvhRanges);

/// Finds, for sorted keys, the last place of the range that begins at each place, or -1 if none begins there.
template <class B>
std::vector<int> by_climbing(const std::vector<B>& keys, int most) {
  using Cut = std::pair<B, unsigned>;  // a difference of keys counts above a difference of places
  const int n = int(keys.size());
  const auto cut = [&](int place) {
    if (place < 0 || place >= n - 1) return Cut(B(~B(0)), ~0u);
    return Cut(keys[std::size_t(place)] ^ keys[std::size_t(place + 1)], unsigned(place ^ (place + 1)));
  };
  std::vector<int> lasts(std::size_t(n), -1);
  for (int place = 0; place < n; ++place) {
    int first = place, last = place, from = place, to = place;
    while (to - from + 1 < n) {
      // The climb goes to the lower one of the cuts beside the range, and over all that are no higher than that.
      const Cut parent = std::min(cut(from - 1), cut(to));
      while (cut(from - 1) <= parent) --from;
      while (cut(to) <= parent) ++to;
      if (to - from + 1 > most || to - from + 1 == n) break;
      first = from, last = to;
    }
    if (first == place) lasts[std::size_t(place)] = last;
  }
  return lasts;
}

template <class B>
auto ranges_kernel(int width, int most) {
  return kernel("ranges",
                [width, most](Arr<const B> keys, Arr<int> lasts, Int n) {
                  Int place = tid(), last = place;
                  const Arr<int> groups = lasts;  // not looked at
                  const Int lane = subgroup_lane();
                  Bool begins = detail::find_range<B>({keys, groups, false, n}, lane, width, place, last, most, n);
                  If (place < n) {
                    lasts[place] = select(begins, last, -1);
                  }
                },
                {.block = 128});
}

template <class B>
void expect_ranges(const Device& device, int most, const std::vector<B>& keys) {
  const int n = int(keys.size()), width = int(device.native().info().subgroup_size);
  Array<int> lasts = zeros<int>(device, n);
  launch(ranges_kernel<B>(width, most), (n + 127) / 128 * 128, Array<B>(device, keys), lasts, n);
  EXPECT_EQ(lasts.to_vector(), by_climbing(keys, most)) << n << " keys, at most " << most;
}

template <class B>
void expect_ranges_of_all_kinds(const Device& device, int bits) {
  std::mt19937_64 random(7);
  for (int most : {16, 32})
    for (int n : {2, 3, 8, 15, 16, 17, 18, 31, 32, 33, 34, 127, 128, 129, 300}) {
      std::vector<B> any, few, equal(std::size_t(n), B(5)), chain;
      for (int i = 0; i < n; ++i) {
        any.push_back(B(random() >> (64 - bits)));
        few.push_back(B(random() % 4) << (bits - 3));
        chain.push_back(B(1) << (i * (bits - 1) / n));
      }
      std::ranges::sort(any);
      std::ranges::sort(few);
      for (const std::vector<B>& keys : {any, few, equal, chain}) expect_ranges(device, most, keys);
    }
}

TEST_P(BvhRanges, are_those_of_a_climb_from_each_place) {
  test::on_all_sizes(device(), on_reference(), [](const Device& sized) {
    expect_ranges_of_all_kinds<unsigned>(sized, 30);
    expect_ranges_of_all_kinds<std::uint64_t>(sized, 60);
  });
}

}  // namespace
