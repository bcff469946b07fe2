// SPDX-License-Identifier: Apache-2.0
#include "picture/graph_picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "numbers.hpp"
#include "picture/panel.hpp"

namespace tessera::app::picture {
namespace {

constexpr int shades = 200;

/// Nothing is white; a single edge can be told from nothing, and many edges are dark.
std::vector<Colour> palette() {
  constexpr std::array<Colour, 5> anchors = {
      {{158, 202, 225}, {66, 146, 198}, {33, 102, 172}, {84, 39, 136}, {37, 5, 60}}};
  std::vector<Colour> colours{{255, 255, 255}};
  for (int shade = 0; shade < shades; ++shade) {
    const double place = static_cast<double>(shade) / (shades - 1) * (anchors.size() - 1);
    const auto left = std::min(static_cast<std::size_t>(place), anchors.size() - 2);
    const double share = place - static_cast<double>(left);
    const auto mixed = [&](std::uint8_t Colour::*part) {
      const double a = anchors[left].*part, b = anchors[left + 1].*part;
      return static_cast<std::uint8_t>(std::lround(a + share * (b - a)));
    };
    colours.push_back({mixed(&Colour::red), mixed(&Colour::green), mixed(&Colour::blue)});
  }
  return colours;
}

/// The numbers of edges that the lightest and the darkest colour stand for.
struct Range {
  std::int64_t least = 0, most = 0;
};

/// The colour of a number of edges, by the logarithm.
std::uint8_t shade_of(std::int64_t edges, const Range& range) {
  if (edges == 0) return 0;
  if (range.most <= range.least) return shades / 2;
  const auto log_ratio = [&](std::int64_t number) {
    return std::log(static_cast<double>(number) / static_cast<double>(range.least));
  };
  const double share = log_ratio(edges) / log_ratio(range.most);
  return static_cast<std::uint8_t>(1 + std::lround(share * (shades - 1)));
}

std::string cell_size(const Density& density) {
  const auto across = [](std::int64_t vertices, int cells) {
    return cells == 0 ? 0 : static_cast<double>(vertices) / cells;
  };
  const double rows = across(density.num_rows, density.rows);
  const double columns = across(density.num_cols, density.columns);
  if (rows <= 1 && columns <= 1) return "each cell is one pair of vertices";
  const auto shown = [](double vertices) {
    return vertices < 100 ? fmt::format("{:.3g}", vertices) : short_number(std::round(vertices));
  };
  return fmt::format("each cell is {} targets x {} sources", shown(rows), shown(columns));
}

void add_matrix(Picture& picture, const Density& density, const Rect& place, const Range& range) {
  const double right = place.x + place.width, bottom = place.y + place.height;
  if (!density.edges.empty()) {
    Raster raster{place, density.columns, density.rows, {}, palette()};
    raster.cells.reserve(density.edges.size());
    for (const std::int64_t edges : density.edges) raster.cells.push_back(shade_of(edges, range));
    picture.shapes.push_back(std::move(raster));
  }
  picture.shapes.push_back(outline(place));
  const std::int64_t last_row = std::max<std::int64_t>(0, std::int64_t{density.num_rows} - 1);
  const std::int64_t last_column = std::max<std::int64_t>(0, std::int64_t{density.num_cols} - 1);
  const auto label = [&](double x, double y, std::string words, Anchor anchor) {
    picture.shapes.push_back(Text{{x, y}, std::move(words), anchor, 11, grey});
  };
  label(place.x - 6, place.y + 10, "0", Anchor::end);
  label(place.x - 6, bottom, short_number(static_cast<double>(last_row)), Anchor::end);
  label(place.x, bottom + 16, "0", Anchor::start);
  label(right, bottom + 16, short_number(static_cast<double>(last_column)), Anchor::end);
  label((place.x + right) / 2, bottom + 16, "source (column)", Anchor::middle);
  label(place.x, place.y - 8, "target (row)", Anchor::start);
}

/// Which share of the windows in each row of cells is on tensor cores.
void add_cores(Picture& picture, const std::vector<std::uint8_t>& on_tensor_cores,
               const Rect& place) {
  constexpr int steps = 10;
  Raster raster{
      place, 1, static_cast<int>(std::min<std::size_t>(on_tensor_cores.size(), 200)), {}, {}};
  for (int step = 0; step <= steps; ++step) {
    const auto mixed = [&](std::uint8_t Colour::*part) {
      return static_cast<std::uint8_t>((pale.*part * (steps - step) + orange.*part * step) / steps);
    };
    raster.palette.push_back({mixed(&Colour::red), mixed(&Colour::green), mixed(&Colour::blue)});
  }
  const auto rows = static_cast<std::size_t>(raster.rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t first = on_tensor_cores.size() * row / rows;
    const std::size_t end = on_tensor_cores.size() * (row + 1) / rows;
    std::size_t tensor = 0;
    for (std::size_t window = first; window < end; ++window) tensor += on_tensor_cores[window];
    raster.cells.push_back(static_cast<std::uint8_t>(tensor * steps / (end - first)));
  }
  picture.shapes.push_back(std::move(raster));
}

/// What the colours mean.
void add_scale(Picture& picture, Point at, double width, const Range& range,
               const std::string& words) {
  const bool one_colour = range.most <= range.least;
  if (range.most > 0) {
    Raster raster{{at.x, at.y, width, 12}, shades, 1, {}, palette()};
    for (int shade = 0; shade < shades; ++shade) {
      raster.cells.push_back(one_colour ? shades / 2 : static_cast<std::uint8_t>(shade + 1));
    }
    picture.shapes.push_back(std::move(raster));
    const Axis axis{static_cast<double>(range.least), static_cast<double>(range.most), true};
    std::vector<Tick> ticks{{axis.low, short_number(axis.low)}};
    if (!one_colour) ticks.push_back({axis.high, short_number(axis.high)});
    for (const Tick& tick : one_colour ? std::vector<Tick>{} : round_ticks(axis, 5)) {
      const double share = axis.share(tick.value);
      if (share > 0.1 && share < 0.9) ticks.push_back(tick);
    }
    for (const Tick& tick : ticks) {
      const double x = at.x + (one_colour ? 0.5 : axis.share(tick.value)) * width;
      picture.shapes.push_back(Text{{x, at.y + 26}, tick.label, Anchor::middle, 11, grey});
    }
  }
  picture.shapes.push_back(Text{{at.x, at.y + 44}, words, Anchor::start, 11});
}

/// Bars over 0, 1, 2-3, 4-7, ...; both axes logarithmic.
void add_histogram(Picture& picture, const Rect& place, const std::vector<std::int64_t>& counts,
                   const Colour& colour, const std::string& title, const std::string& x_title) {
  const std::int64_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  const auto buckets = static_cast<double>(std::max<std::size_t>(4, counts.size()));
  // Half an edge below the lowest bar, so that a single vertex has a bar.
  const Panel panel{
      place, {0, buckets}, {0.5, std::max(10.0, static_cast<double>(most) * 1.3), true}};
  std::vector<Tick> ticks;
  const std::size_t every = counts.size() > 18 ? 4 : counts.size() > 9 ? 2 : 1;
  for (std::size_t bucket = 0; bucket < counts.size(); bucket += every) {
    const double low = bucket == 0 ? 0 : std::ldexp(1.0, static_cast<int>(bucket) - 1);
    ticks.push_back({static_cast<double>(bucket) + 0.5, short_number(low)});
  }
  add_frame(picture, panel, title, ticks, round_ticks(panel.y, 5), x_title);
  for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
    if (counts[bucket] == 0) continue;
    const Point top =
        panel.at(static_cast<double>(bucket) + 0.1, static_cast<double>(counts[bucket]));
    const double width = 0.8 * place.width / buckets;
    picture.shapes.push_back(Box{{top.x, top.y, width, place.y + place.height - top.y}, colour});
  }
}

}  // namespace

Picture graph_picture(const std::string& title, const Density& density, const Degrees& degrees) {
  Picture picture{960, 690, {}};
  picture.shapes.push_back(Text{{60, 28}, shortened(title, 90), Anchor::start, 14});
  const Rect matrix{60, 70, 512, 512};
  const Range range{density.least, density.most};
  add_matrix(picture, density, matrix, range);
  add_scale(picture, {60, 620}, 512, range, "edges per cell; " + cell_size(density));
  const std::string x_title = "degree, in powers of two";
  add_histogram(picture, {660, 70, 270, 190}, degrees.in, blue, "vertices by in-degree", x_title);
  add_histogram(picture, {660, 360, 270, 190}, degrees.out, orange, "vertices by out-degree",
                x_title);
  return picture;
}

Picture compared_picture(const std::string& title, const Side& before, const Side& after) {
  const auto lines = static_cast<double>(std::max(before.notes.size(), after.notes.size()));
  const double scale_y = 576 + 17 * lines;
  Picture picture{960, scale_y + 70, {}};
  picture.shapes.push_back(Text{{60, 28}, shortened(title, 90), Anchor::start, 14});
  const Range range{std::min(before.density.least, after.density.least),
                    std::max(before.density.most, after.density.most)};
  double left = 60;
  for (const Side* side : {&before, &after}) {
    const Rect matrix{left, 84, 400, 400};
    add_matrix(picture, side->density, matrix, range);
    if (!side->on_tensor_cores.empty()) {
      add_cores(picture, side->on_tensor_cores, {left + 406, 84, 10, 400});
    }
    picture.shapes.push_back(Text{{left, 58}, side->title, Anchor::start, 13});
    double y = 522;
    for (const std::string& note : side->notes) {
      picture.shapes.push_back(Text{{left, y += 17}, note, Anchor::start, 11});
    }
    left += 470;
  }
  add_scale(picture, {60, scale_y}, 400, range, "edges per cell; " + cell_size(before.density));
  return picture;
}

}  // namespace tessera::app::picture
