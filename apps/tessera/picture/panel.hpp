// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "picture/picture.hpp"

namespace tessera::app::picture {

/// One axis: the numbers at its ends. A logarithmic one starts above 0.
struct Axis {
  double low = 0, high = 1;
  bool logarithmic = false;

  /// From 0 at the low end to 1 at the high end.
  double share(double value) const;
};

struct Tick {
  double value = 0;
  std::string label;
};

/// Round numbers within the axis: about `count` of them, or powers of ten.
std::vector<Tick> round_ticks(const Axis& axis, int count, const std::string& unit = "");

/// "950", "12k", "3.4M".
std::string short_number(double number);

/// A frame with two axes, in which numbers have places.
struct Panel {
  Rect place;
  Axis x, y;

  Point at(double x_value, double y_value) const;
};

/// The frame, its title above, ticks with pale lines across, and what x means below.
void add_frame(Picture& picture, const Panel& panel, const std::string& title,
               const std::vector<Tick>& x_ticks, const std::vector<Tick>& y_ticks,
               const std::string& x_title);

/// A small box of the colour and its meaning, from the point on; returns where the next can start.
Point add_key(Picture& picture, Point at, const Colour& colour, const std::string& meaning);

/// The text, shortened to so many characters.
std::string shortened(const std::string& text, std::size_t most);

}  // namespace tessera::app::picture
