// Ear clipping with exact predicates, and the tree that finds corners in an ear's way.
#include "polygon_ears.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>

namespace weft::polygons {

namespace {

/// Finds corners of a polygon by position: a tree over halves of their list, each with its box.
class CornerTree {
 public:
  CornerTree(std::span<const PlanePoint> at, std::vector<int> corners)
      : at_(at), corners_(std::move(corners)), place_(at.size(), -1) {
    std::size_t nodes = 1;
    while (nodes * kLeaf < corners_.size()) nodes *= 2;
    nodes_.resize(2 * nodes);
    if (!corners_.empty()) build(0, 0, corners_.size());
    for (std::size_t k = 0; k < corners_.size(); ++k) place_[std::size_t(corners_[k])] = std::int64_t(k);
  }
  bool has(int corner) const { return place_[std::size_t(corner)] >= 0; }
  void remove(int corner) {
    const std::size_t place = std::size_t(place_[std::size_t(corner)]);
    place_[std::size_t(corner)] = -1;
    for (std::size_t node = 0, first = 0, last = corners_.size();;) {
      --nodes_[node].count;
      if (last - first <= kLeaf) return;
      const std::size_t middle = (first + last) / 2;
      node = 2 * node + (place < middle ? 1 : 2);
      (place < middle ? last : first) = middle;
    }
  }
  /// Whether f(corner) holds for a corner in a node that the triangle may meet.
  /// \param margin  by side, in units of its length
  template <class F>
  bool any_near(const PlanePoint& a, const PlanePoint& b, const PlanePoint& c, double margin, const F& f) const {
    if (corners_.empty()) return false;
    const Box box = Box::of(a).with(b).with(c).with_margin(margin);
    const auto meets = [&](const Box& other) {
      return box.meets(other) && !right_of(a, b, other, margin) && !right_of(b, c, other, margin) &&
             !right_of(c, a, other, margin);
    };
    return ask(0, 0, corners_.size(), meets, f);
  }

 private:
  static constexpr std::size_t kLeaf = 8;
  struct Box {
    PlanePoint low, high;
    static Box of(const PlanePoint& p) { return {p, p}; }
    Box with(const PlanePoint& p) const {
      return {{std::min(low.x, p.x), std::min(low.y, p.y)}, {std::max(high.x, p.x), std::max(high.y, p.y)}};
    }
    Box with_margin(double margin) const {
      const double width = 2 * margin * (high.x - low.x + high.y - low.y);
      return {{low.x - width, low.y - width}, {high.x + width, high.y + width}};
    }
    bool meets(const Box& o) const {
      return low.x <= o.high.x && o.low.x <= high.x && low.y <= o.high.y && o.low.y <= high.y;
    }
  };
  struct Node {
    Box box;
    std::size_t count = 0;
  };

  /// Whether the whole box is certainly to the right of a line, and farther from it than the margin.
  static bool right_of(const PlanePoint& a, const PlanePoint& b, const Box& box, double margin) {
    const double dx = b.x - a.x, dy = b.y - a.y;
    const double left = dx * ((dx > 0 ? box.high.y : box.low.y) - a.y);
    const double right = dy * ((dy > 0 ? box.low.x : box.high.x) - a.x);
    return left - right < -1e-15 * (std::abs(left) + std::abs(right)) - 2 * margin * (dx * dx + dy * dy);
  }
  const PlanePoint& at(std::size_t place) const { return at_[std::size_t(corners_[place])]; }

  void build(std::size_t node, std::size_t first, std::size_t last) {
    Box box = Box::of(at(first));
    for (std::size_t k = first; k < last; ++k) box = box.with(at(k));
    nodes_[node] = {box, last - first};
    if (last - first <= kLeaf) return;
    const std::size_t middle = (first + last) / 2;
    const bool wide = box.high.x - box.low.x > box.high.y - box.low.y;
    std::nth_element(corners_.begin() + std::ptrdiff_t(first), corners_.begin() + std::ptrdiff_t(middle),
                     corners_.begin() + std::ptrdiff_t(last), [&](int i, int k) {
                       const PlanePoint &p = at_[std::size_t(i)], &q = at_[std::size_t(k)];
                       return wide ? p.x < q.x : p.y < q.y;
                     });
    build(2 * node + 1, first, middle);
    build(2 * node + 2, middle, last);
  }
  template <class Meets, class F>
  bool ask(std::size_t node, std::size_t first, std::size_t last, const Meets& meets, const F& f) const {
    if (nodes_[node].count == 0 || !meets(nodes_[node].box)) return false;
    if (last - first <= kLeaf)
      return std::any_of(corners_.begin() + std::ptrdiff_t(first), corners_.begin() + std::ptrdiff_t(last),
                         [&](int corner) { return has(corner) && f(corner); });
    const std::size_t middle = (first + last) / 2;
    return ask(2 * node + 1, first, middle, meets, f) || ask(2 * node + 2, middle, last, meets, f);
  }

  std::span<const PlanePoint> at_;
  std::vector<int> corners_;
  std::vector<std::int64_t> place_;  ///< in the list; -1 for corners that are not in the tree
  std::vector<Node> nodes_;
};

/// The rest of a polygon while ears are cut off.
class Ears {
 public:
  Ears(std::span<const PlanePoint> flat, std::vector<int>& triangles)
      : at_(flat), triangles_(triangles), before_(flat.size()), after_(flat.size()), left_(flat.size()) {
    for (std::size_t k = 0; k < flat.size(); ++k) {
      before_[k] = int(k == 0 ? flat.size() - 1 : k - 1);
      after_[k] = int(k + 1 == flat.size() ? 0 : k + 1);
    }
  }

  /// Cuts until `enough` corners are left or none of them is an ear.
  /// \param margin    distance from an ear's side, in units of its length, at which a corner counts as on it; also
  /// bounds how flat an ear may be
  /// \param touching  whether the polygon may touch an ear
  void cut(std::size_t enough, double margin, bool touching) {
    if (left_ <= enough) return;
    margin_ = margin;
    looks_ = 0;  // each pass has its own budget, so that another's looks do not end it early
    turns_ = {};
    changes_.assign(at_.size(), 0);
    std::vector<int> concave;
    for (const int k : left()) {
      give_turn(k);
      if (!is_convex(k)) concave.push_back(k);
    }
    CornerTree in_the_way(at_, std::move(concave));
    // A corner becomes or stops being an ear only with its neighbours, because the polygon only shrinks: each change
    // gives it one more turn.
    while (!turns_.empty() && left_ > enough && looks_ < kMostLooks * at_.size()) {
      const Turn turn = turns_.top();
      turns_.pop();
      if (turn.changes != changes_[std::size_t(turn.corner)]) continue;
      if (turn.shape < kSpike && is_blocked(turn.corner, touching, in_the_way)) continue;
      const int a = before_[std::size_t(turn.corner)], c = after_[std::size_t(turn.corner)];
      triangles_.insert(triangles_.end(), {a, turn.corner, c});
      after_[std::size_t(a)] = c;
      before_[std::size_t(c)] = a;
      first_ = a;
      --left_;
      changes_[std::size_t(turn.corner)] = -1;
      if (in_the_way.has(turn.corner)) in_the_way.remove(turn.corner);
      for (const int k : {a, c}) {
        ++changes_[std::size_t(k)];
        give_turn(k);
        if (in_the_way.has(k) && is_convex(k)) in_the_way.remove(k);
      }
    }
  }

  std::vector<int> left() const {
    std::vector<int> corners{first_};
    for (int k = after_[std::size_t(first_)]; k != first_; k = after_[std::size_t(k)]) corners.push_back(k);
    return corners;
  }

 private:
  // Polygons that do not cross themselves take fewer than a hundred looks per corner, up to 256,000 corners.
  static constexpr std::size_t kMostLooks = 500;
  static constexpr double kSpike = std::numeric_limits<double>::infinity();

  /// A corner's turn to be looked at: the best shape comes first, so that slivers are cut only when nothing else is
  /// left.
  struct Turn {
    double shape;  ///< infinity for a spike
    int corner, changes;
    bool operator<(const Turn& o) const { return shape > o.shape; }
  };

  const PlanePoint& at(int corner) const { return at_[std::size_t(corner)]; }
  const PlanePoint& before(int corner) const { return at(before_[std::size_t(corner)]); }
  const PlanePoint& after(int corner) const { return at(after_[std::size_t(corner)]); }
  /// The shape of the triangle that would be cut off at a corner; nothing if it is flat or lies backwards.
  std::optional<double> shape_at(int corner) const {
    const PlanePoint &a = before(corner), &b = at(corner), &c = after(corner);
    const double area = orientation(a, b, c);
    if (area <= 0) return {};
    const double shape = shape_of(a, b, c, area);
    return shape * margin_ < 1 ? std::optional(shape) : std::nullopt;
  }
  bool is_convex(int corner) const { return shape_at(corner).has_value(); }

  void give_turn(int corner) {
    if (const auto shape = shape_at(corner))
      turns_.push({*shape, corner, changes_[std::size_t(corner)]});
    else if (is_spike(before(corner), at(corner), after(corner)))
      turns_.push({kSpike, corner, changes_[std::size_t(corner)]});
  }

  /// Whether three points lie on a line that turns back at the middle one, or stands still. Cutting it off loses
  /// nothing.
  static bool is_spike(const PlanePoint& a, const PlanePoint& b, const PlanePoint& c) {
    if (a == b || b == c) return true;
    if (orientation(a, b, c) != 0) return false;
    return a.x != b.x ? c.x != b.x && (a.x < b.x) == (c.x < b.x) : c.y != b.y && (a.y < b.y) == (c.y < b.y);
  }

  /// Whether the polygon enters the triangle at a convex corner.
  bool is_blocked(int corner, bool touching, const CornerTree& concave) {
    const int a = before_[std::size_t(corner)], c = after_[std::size_t(corner)];
    return concave.any_near(at(a), at(corner), at(c), margin_, [&](int other) {
      if (other == a || other == c) return false;
      ++looks_;
      return blocks(other, at(a), at(corner), at(c), touching);
    });
  }
  bool blocks(int other, const PlanePoint& a, const PlanePoint& b, const PlanePoint& c, bool touching) const {
    const PlanePoint& p = at(other);
    const PlanePoint* const sides[3][2] = {{&a, &b}, {&b, &c}, {&c, &a}};
    bool on_side[3] = {}, touches = false;
    for (int k = 0; k < 3; ++k) {
      const double turn = orientation(*sides[k][0], *sides[k][1], p);
      if (turn < 0 && turn < -margin_ * square_of_distance(*sides[k][0], *sides[k][1])) return false;
      on_side[k] = turn == 0;
      touches = touches || on_side[k];
    }
    if (!touches) return true;
    if (!touching && p != a && p != b && p != c) return true;
    // The polygon touches the triangle here, and is in the way if one of its two edges leads inside.
    for (const PlanePoint* const end : {&before(other), &after(other)}) {
      bool leads_in = true;
      for (int k = 0; k < 3; ++k)
        if (on_side[k] && orientation(*sides[k][0], *sides[k][1], *end) <= 0) leads_in = false;
      if (leads_in) return true;
    }
    return false;
  }

  std::span<const PlanePoint> at_;
  std::vector<int>& triangles_;
  std::vector<int> before_, after_;
  int first_ = 0;  ///< one of the corners left
  std::size_t left_;
  std::priority_queue<Turn> turns_;
  std::vector<int> changes_;  ///< changes of a corner's neighbours; -1 when it is cut off
  std::size_t looks_ = 0;
  double margin_ = 0;
};

}  // namespace

std::vector<int> cut_ears(std::span<const PlanePoint> flat, std::size_t enough, std::vector<int>& triangles) {
  Ears ears(flat, triangles);
  // With a margin, corners on a straight edge cause no slivers: in a polygon in space they are off the edge by a last
  // digit, and a sliver would be cut at them, or left there by an ear beside them. Without a margin, cutting an ear
  // that nothing touches leaves a simple polygon simple, and there always is such an ear. A polygon that touches itself
  // may have no ears but those that it touches.
  ears.cut(enough, 1e-5, false);
  ears.cut(enough, 0, false);
  ears.cut(enough, 0, true);
  return ears.left();
}

}  // namespace weft::polygons
