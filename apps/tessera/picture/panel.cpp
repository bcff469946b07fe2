// SPDX-License-Identifier: Apache-2.0
#include "picture/panel.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "characters.hpp"
#include "tessera/core/printable.hpp"

namespace tessera::app::picture {
namespace {

std::vector<Tick> powers_of_ten(const Axis& axis) {
  std::vector<Tick> ticks;
  // One in three where there are many.
  const double decades = std::log10(axis.high / axis.low);
  const double step = decades > 7 ? 1e3 : 10;
  for (double value = 1; value <= axis.high * 1.0001; value *= step) {
    if (value >= axis.low * 0.9999) ticks.push_back({value, short_number(value)});
  }
  return ticks;
}

}  // namespace

double Axis::share(double value) const {
  if (!logarithmic) return high > low ? (value - low) / (high - low) : 0.5;
  return high > low ? std::log(value / low) / std::log(high / low) : 0.5;
}

std::vector<Tick> round_ticks(const Axis& axis, int count, const std::string& unit) {
  if (axis.logarithmic) return powers_of_ten(axis);
  const double range = axis.high - axis.low;
  if (!(range > 0) || !std::isfinite(range)) return {};
  const double rough = range / count;
  const double magnitude = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * magnitude;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * magnitude >= rough * 0.9999) {
      step = factor * magnitude;
      break;
    }
  }
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step * 1.0001))));
  std::vector<Tick> ticks;
  for (double value = std::ceil(axis.low / step - 1e-9) * step; value <= axis.high + 1e-9 * range;
       value += step) {
    const double shown = std::abs(value) < step * 1e-6 ? 0 : value;
    const std::string number = std::abs(shown) >= 1e4 || decimals > 6
                                   ? short_number(shown)
                                   : fmt::format("{:.{}f}", shown, decimals);
    ticks.push_back({shown, number + unit});
  }
  return ticks;
}

std::string short_number(double number) {
  const double size = std::abs(number);
  if (size != 0 && size < 0.01) return fmt::format("{:.0e}", number);
  if (size < 1e4) return fmt::format("{:.4g}", number);
  if (size < 1e6) return fmt::format("{:.3g}k", number / 1e3);
  if (size < 1e9) return fmt::format("{:.3g}M", number / 1e6);
  if (size < 1e12) return fmt::format("{:.3g}G", number / 1e9);
  return fmt::format("{:.1e}", number);
}

Point Panel::at(double x_value, double y_value) const {
  return {place.x + x.share(x_value) * place.width,
          place.y + (1 - y.share(y_value)) * place.height};
}

void add_frame(Picture& picture, const Panel& panel, const std::string& title,
               const std::vector<Tick>& x_ticks, const std::vector<Tick>& y_ticks,
               const std::string& x_title) {
  const Rect& place = panel.place;
  const double right = place.x + place.width, bottom = place.y + place.height;
  auto& shapes = picture.shapes;
  for (const Tick& tick : y_ticks) {
    const double y = panel.at(panel.x.low, tick.value).y;
    shapes.push_back(Line{{{place.x, y}, {right, y}}, pale});
    shapes.push_back(Text{{place.x - 6, y + 4}, tick.label, Anchor::end, 11, grey});
  }
  for (const Tick& tick : x_ticks) {
    const double x = panel.at(tick.value, panel.y.low).x;
    shapes.push_back(Line{{{x, bottom}, {x, bottom + 4}}, grey});
    shapes.push_back(Text{{x, bottom + 17}, tick.label, Anchor::middle, 11, grey});
  }
  shapes.push_back(Line{{{place.x, place.y}, {place.x, bottom}, {right, bottom}}, grey});
  shapes.push_back(Text{{place.x, place.y - 10}, title, Anchor::start, 13});
  shapes.push_back(
      Text{{place.x + place.width / 2, bottom + 34}, x_title, Anchor::middle, 11, grey});
}

Point add_key(Picture& picture, Point at, const Colour& colour, const std::string& meaning) {
  constexpr double letter = 7;
  picture.shapes.push_back(Box{{at.x, at.y - 5, 14, 4}, colour});
  picture.shapes.push_back(Text{{at.x + 19, at.y}, meaning, Anchor::start, 11});
  return {at.x + 35 + letter * static_cast<double>(num_characters(meaning)), at.y};
}

std::string shortened(const std::string& text, std::size_t most) {
  const std::string shown = printable(text);
  return num_characters(shown) <= most ? shown : first_characters(shown, most - 3) + "...";
}

}  // namespace tessera::app::picture
