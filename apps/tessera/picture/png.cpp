// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "picture/font.hpp"
#include "picture/picture.hpp"
#include "picture/png_file.hpp"

namespace tessera::app::picture {
namespace {

/// Pixels for each unit of a picture, so that letters and thin lines are sharp.
constexpr double scale = 2;

class Canvas {
 public:
  Canvas(double width, double height)
      : width_(static_cast<int>(std::ceil(width * scale))),
        height_(static_cast<int>(std::ceil(height * scale))),
        pixels_(index(0, height_) * 3, 255),
        covered_(index(0, height_), 0) {}

  void draw(const Box& box) { fill(box.place, box.fill); }
  void draw(const Line& line);
  void draw(const Text& text);
  void draw(const Raster& raster);
  std::string file() const { return png_file(width_, height_, pixels_); }

 private:
  void blend(int x, int y, const Colour& colour, double share);
  void fill(const Rect& rect, const Colour& colour);
  void cover(Point from, Point to, double radius);
  std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
           static_cast<std::size_t>(x);
  }

  int width_, height_;
  std::vector<std::uint8_t> pixels_;
  /// How much of each pixel the line at hand covers; zeros between two lines.
  std::vector<float> covered_;
};

void Canvas::blend(int x, int y, const Colour& colour, double share) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  const std::size_t first = index(x, y) * 3;
  const std::uint8_t parts[] = {colour.red, colour.green, colour.blue};
  for (std::size_t i = 0; i < 3; ++i) {
    const double mixed = pixels_[first + i] + share * (parts[i] - pixels_[first + i]);
    pixels_[first + i] = static_cast<std::uint8_t>(std::lround(mixed));
  }
}

void Canvas::fill(const Rect& rect, const Colour& colour) {
  const auto pixel = [](double units) { return static_cast<int>(std::lround(units * scale)); };
  // A box however small can be seen.
  const int right = std::max(pixel(rect.x + rect.width), pixel(rect.x) + 1);
  const int bottom = std::max(pixel(rect.y + rect.height), pixel(rect.y) + 1);
  for (int y = pixel(rect.y); y < bottom; ++y) {
    for (int x = pixel(rect.x); x < right; ++x) blend(x, y, colour, 1);
  }
}

/// Notes how much of every pixel a thick line from one point to the other covers.
void Canvas::cover(Point from, Point to, double radius) {
  const auto low = [&](double a, double b) {
    return std::max(0, static_cast<int>(std::min(a, b) - radius - 1));
  };
  const auto high = [&](double a, double b, int end) {
    return std::min(end, static_cast<int>(std::max(a, b) + radius + 2));
  };
  const double dx = to.x - from.x, dy = to.y - from.y;
  const double square = dx * dx + dy * dy;
  for (int y = low(from.y, to.y); y < high(from.y, to.y, height_); ++y) {
    for (int x = low(from.x, to.x); x < high(from.x, to.x, width_); ++x) {
      const double px = x + 0.5 - from.x, py = y + 0.5 - from.y;
      const double along = square > 0 ? std::clamp((px * dx + py * dy) / square, 0.0, 1.0) : 0;
      const double distance = std::hypot(px - along * dx, py - along * dy);
      const auto share = static_cast<float>(std::clamp(radius + 0.5 - distance, 0.0, 1.0));
      covered_[index(x, y)] = std::max(covered_[index(x, y)], share);
    }
  }
}

/// The line cut into dashes of four units.
std::vector<std::pair<Point, Point>> dashes(Point from, Point to) {
  constexpr double dash = 4 * scale;
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  std::vector<std::pair<Point, Point>> pieces;
  for (double at = 0; at < length; at += 2 * dash) {
    const double a = at / length, b = std::min(1.0, (at + dash) / length);
    pieces.push_back({{from.x + a * (to.x - from.x), from.y + a * (to.y - from.y)},
                      {from.x + b * (to.x - from.x), from.y + b * (to.y - from.y)}});
  }
  return pieces;
}

void Canvas::draw(const Line& line) {
  // Pieces that meet in a point must not darken it twice: they are put together first.
  const double radius = line.width * scale / 2;
  for (std::size_t i = 0; i + 1 < line.points.size(); ++i) {
    const Point from{line.points[i].x * scale, line.points[i].y * scale};
    const Point to{line.points[i + 1].x * scale, line.points[i + 1].y * scale};
    if (!line.dashed) {
      cover(from, to, radius);
      continue;
    }
    for (const auto& [begin, end] : dashes(from, to)) cover(begin, end, radius);
  }
  for (int y = 0; y < height_; ++y) {
    for (int x = 0; x < width_; ++x) {
      float& share = covered_[index(x, y)];
      if (share > 0) blend(x, y, line.colour, std::exchange(share, 0.0f) * line.opacity);
    }
  }
}

/// Characters, not bytes: what follows the first byte of a UTF-8 character is left out.
std::string one_byte_each(const std::string& words) {
  std::string shown;
  for (const char byte : words) {
    if ((static_cast<unsigned char>(byte) & 0xc0) != 0x80) shown += byte;
  }
  return shown;
}

void Canvas::draw(const Text& text) {
  const std::string words = one_byte_each(text.words);
  const int dot = std::max(1, static_cast<int>(std::lround(text.size * scale / 12)));
  const int width = static_cast<int>(words.size()) * glyph_advance * dot - dot;
  const double shift = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? 0.5 : 1;
  int left = static_cast<int>(std::lround(text.at.x * scale - shift * width));
  const int top = static_cast<int>(std::lround(text.at.y * scale)) - glyph_ascent * dot;
  for (const char character : words) {
    const auto& rows = glyph(character);
    for (int y = 0; y < glyph_rows * dot; ++y) {
      for (int x = 0; x < glyph_columns * dot; ++x) {
        const auto bits = rows[static_cast<std::size_t>(y / dot)];
        if ((bits >> (glyph_columns - 1 - x / dot) & 1) != 0)
          blend(left + x, top + y, text.colour, 1);
      }
    }
    left += glyph_advance * dot;
  }
}

void Canvas::draw(const Raster& raster) {
  const auto edge = [](double from, double length, int cell, int cells) {
    return static_cast<int>(std::lround((from + length * cell / cells) * scale));
  };
  for (int row = 0; row < raster.rows; ++row) {
    const int top = edge(raster.place.y, raster.place.height, row, raster.rows);
    const int bottom = edge(raster.place.y, raster.place.height, row + 1, raster.rows);
    for (int column = 0; column < raster.columns; ++column) {
      const int left = edge(raster.place.x, raster.place.width, column, raster.columns);
      const int right = edge(raster.place.x, raster.place.width, column + 1, raster.columns);
      const auto cell = static_cast<std::size_t>(row) * static_cast<std::size_t>(raster.columns) +
                        static_cast<std::size_t>(column);
      for (int y = top; y < bottom; ++y) {
        for (int x = left; x < right; ++x) blend(x, y, raster.palette[raster.cells[cell]], 1);
      }
    }
  }
}

}  // namespace

std::string to_png(const Picture& picture) {
  Canvas canvas(picture.width, picture.height);
  for (const auto& shape : picture.shapes) {
    std::visit([&](const auto& one) { canvas.draw(one); }, shape);
  }
  return canvas.file();
}

}  // namespace tessera::app::picture
