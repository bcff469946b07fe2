// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

/// Pictures as lists of shapes, which are written as SVG or as PNG.
namespace tessera::app::picture {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
};

inline constexpr Colour black{34, 34, 34}, grey{120, 120, 120}, pale{221, 221, 221};
inline constexpr Colour blue{31, 98, 173}, orange{217, 95, 2}, green{27, 140, 90};

/// Measures are in units of SVG; x grows to the right, y downwards.
struct Point {
  double x = 0, y = 0;
};

struct Rect {
  double x = 0, y = 0, width = 0, height = 0;
};

struct Box {
  Rect place;
  Colour fill;
};

struct Line {
  std::vector<Point> points;
  Colour colour;
  double width = 1;
  double opacity = 1;
  bool dashed = false;
};

enum class Anchor { start, middle, end };

struct Text {
  Point at;  ///< where the baseline starts, has its middle or ends
  std::string words;
  Anchor anchor = Anchor::start;
  double size = 12;
  Colour colour = black;
};

/// Cells of equal size, drawn with sharp edges; each names a colour of the palette.
struct Raster {
  Rect place;
  int columns = 0, rows = 0;
  std::vector<std::uint8_t> cells;  ///< row after row
  std::vector<Colour> palette;
};

/// The border of a rectangle.
inline Line outline(const Rect& place) {
  const double right = place.x + place.width, bottom = place.y + place.height;
  return {{{place.x, place.y},
           {right, place.y},
           {right, bottom},
           {place.x, bottom},
           {place.x, place.y}},
          grey};
}

struct Picture {
  double width = 0, height = 0;
  std::vector<std::variant<Box, Line, Text, Raster>> shapes;
};

std::string to_svg(const Picture& picture);
std::string to_png(const Picture& picture);

/// Throws `invalid_argument` where the ending of a name is neither .svg nor .png. No path passes.
void require_picture_ending(const std::string& path, const char* option);

/// As the ending says. Nothing is written where no path was given.
void write(const Picture& picture, const std::string& path);

/// True for what `write` has made, which may be replaced unasked.
bool is_own_picture(const std::string& path);

}  // namespace tessera::app::picture
