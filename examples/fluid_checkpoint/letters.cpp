// Letters made of strokes: the density of a cell depends on its distance from the nearest stroke.
#include "letters.h"

#include <weft/weft.h>

#include <algorithm>
#include <cmath>
#include <numbers>

using weft::vec2;

namespace {

using Line = std::vector<vec2>;

/// Points on an ellipse from one angle to another, in degrees; 0 is to the right, 90 up.
Line arc(vec2 centre, vec2 radius, float from, float to) {
  constexpr int kPieces = 24;
  Line line;
  for (int k = 0; k <= kPieces; ++k) {
    const float a = (from + (to - from) * float(k) / kPieces) * (std::numbers::pi_v<float> / 180);
    line.push_back({centre.x + radius.x * std::cos(a), centre.y - radius.y * std::sin(a)});
  }
  return line;
}

Line joined(Line a, const Line& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

float distance(vec2 p, vec2 a, vec2 b) {
  const vec2 along = b - a;
  const float t = std::clamp(dot(p - a, along) / std::max(dot(along, along), 1e-12f), 0.f, 1.f);
  return length(p - a - along * t);
}

/// The strokes of the word. Each letter is one unit wide; rows 0 to 1 are those of a small letter, and the f and the t
/// begin above them.
std::vector<Line> word() {
  std::vector<Line> lines;
  auto letter = [&](float left, const std::vector<Line>& strokes) {
    for (Line line : strokes) {
      for (vec2& p : line) p.x += left;
      lines.push_back(line);
    }
  };
  letter(0, {{{0, 0}, {0.27f, 1}, {0.55f, 0.15f}, {0.83f, 1}, {1.1f, 0}}});
  letter(1.55f, {joined({{0, 0.5f}}, arc({0.45f, 0.5f}, {0.45f, 0.5f}, 0, 310))});
  letter(2.85f, {joined(arc({0.65f, -0.2f}, {0.35f, 0.35f}, 60, 180), {{0.3f, 1}}), {{0, 0.08f}, {0.7f, 0.08f}}});
  letter(3.95f, {joined({{0.3f, -0.4f}}, arc({0.6f, 0.7f}, {0.3f, 0.3f}, 180, 290)), {{0, 0.08f}, {0.7f, 0.08f}}});
  return lines;
}

}  // namespace

std::vector<float> letters(int size) {
  constexpr float kUnit = 0.155f, kStroke = 0.034f;  // parts of the square's side
  constexpr vec2 kCorner{0.14f, 0.46f};
  std::vector<Line> lines = word();
  for (Line& line : lines)
    for (vec2& p : line) p = kCorner + p * kUnit;
  std::vector<float> picture;
  picture.reserve(std::size_t(size) * std::size_t(size));
  for (int row = 0; row < size; ++row)
    for (int column = 0; column < size; ++column) {
      const vec2 p{(float(column) + 0.5f) / float(size), (float(row) + 0.5f) / float(size)};
      float nearest = 1;
      for (const Line& line : lines)
        for (std::size_t k = 1; k < line.size(); ++k) nearest = std::min(nearest, distance(p, line[k - 1], line[k]));
      picture.push_back(std::exp(-(nearest * nearest) / (kStroke * kStroke)));
    }
  return picture;
}
