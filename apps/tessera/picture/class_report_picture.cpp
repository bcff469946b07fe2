// SPDX-License-Identifier: Apache-2.0
#include "picture/class_report_picture.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "picture/panel.hpp"

namespace tessera::app::picture {
namespace {

constexpr Rect matrix_place{170, 90, 400, 400};
constexpr std::size_t most_bars = 30;      ///< labels that have room
constexpr std::size_t most_numbered = 12;  ///< classes whose cells have room for a number
constexpr int most_cells = 400;            ///< in a row: one pixel each
constexpr int shades = 100;

std::uint8_t mixed(std::uint8_t from, std::uint8_t to, double share) {
  return static_cast<std::uint8_t>(std::lround(from + share * (to - from)));
}

/// From white for none of a row to blue for all of it.
std::vector<Colour> palette() {
  std::vector<Colour> colours;
  for (int shade = 0; shade <= shades; ++shade) {
    const double share = static_cast<double>(shade) / shades;
    colours.push_back(
        {mixed(255, blue.red, share), mixed(255, blue.green, share), mixed(255, blue.blue, share)});
  }
  return colours;
}

/// Items in each cell; of very many classes a cell stands for several.
struct Cells {
  explicit Cells(const train::ClassReport& report)
      : classes(static_cast<int>(report.classes.size())),
        rows(std::min(classes, most_cells)),
        columns(rows + (report.undecided > 0 ? 1 : 0)),
        items(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns), 0),
        sums(static_cast<std::size_t>(rows), 0) {
    for (const train::ConfusedItems& cell : report.confusion) {
      const int row = place_of(cell.truth);
      const int column = cell.predicted < 0 ? rows : place_of(cell.predicted);
      items[at(row, column)] += cell.items;
      sums[static_cast<std::size_t>(row)] += cell.items;
    }
  }

  int place_of(std::int64_t number) const { return static_cast<int>(number * rows / classes); }
  std::size_t at(int row, int column) const {
    return static_cast<std::size_t>(row * columns + column);
  }
  double share(int row, int column) const {
    const std::int64_t sum = sums[static_cast<std::size_t>(row)];
    return sum == 0 ? 0 : static_cast<double>(items[at(row, column)]) / static_cast<double>(sum);
  }

  int classes, rows, columns;
  std::vector<std::int64_t> items;
  std::vector<std::int64_t> sums;  ///< of the rows
};

void add_class_names(Picture& picture, const train::ClassReport& report, const Cells& cells) {
  const double height = matrix_place.height / cells.rows;
  const double width = matrix_place.width / cells.columns;
  const double bottom = matrix_place.y + matrix_place.height;
  for (std::size_t k = 0; k < report.classes.size(); ++k) {
    const double middle = static_cast<double>(k) + 0.5;
    picture.shapes.push_back(
        Text{{matrix_place.x - 6, matrix_place.y + middle * height + 4},
             fmt::format("{} {}", shortened(report.classes[k].name, 18), letter_of(k)),
             Anchor::end,
             11});
    picture.shapes.push_back(
        Text{{matrix_place.x + middle * width, bottom + 16}, letter_of(k), Anchor::middle, 11});
  }
  if (cells.columns == cells.rows) return;
  const double middle = cells.rows + 0.5;
  picture.shapes.push_back(
      Text{{matrix_place.x + middle * width, bottom + 16}, "none", Anchor::middle, 11});
}

void add_cell_numbers(Picture& picture, const Cells& cells) {
  const double height = matrix_place.height / cells.rows;
  const double width = matrix_place.width / cells.columns;
  for (int row = 0; row < cells.rows; ++row) {
    for (int column = 0; column < cells.columns; ++column) {
      const std::int64_t items = cells.items[cells.at(row, column)];
      if (items == 0) continue;
      const Colour colour = cells.share(row, column) > 0.5 ? Colour{255, 255, 255} : black;
      picture.shapes.push_back(
          Text{{matrix_place.x + (column + 0.5) * width, matrix_place.y + (row + 0.5) * height + 4},
               short_number(static_cast<double>(items)),
               Anchor::middle,
               11,
               colour});
    }
  }
}

void add_confusion(Picture& picture, const train::ClassReport& report) {
  const Cells cells(report);
  Raster raster{matrix_place, cells.columns, cells.rows, {}, palette()};
  for (int row = 0; row < cells.rows; ++row) {
    for (int column = 0; column < cells.columns; ++column) {
      raster.cells.push_back(
          static_cast<std::uint8_t>(std::lround(cells.share(row, column) * shades)));
    }
  }
  picture.shapes.push_back(std::move(raster));
  picture.shapes.push_back(outline(matrix_place));
  const double bottom = matrix_place.y + matrix_place.height;
  picture.shapes.push_back(
      Text{{matrix_place.x, matrix_place.y - 10}, "true class (row)", Anchor::start, 13});
  picture.shapes.push_back(Text{{matrix_place.x + matrix_place.width / 2, bottom + 34},
                                "predicted class; dark: a large share of its row",
                                Anchor::middle,
                                11,
                                grey});
  if (report.classes.size() <= most_letters) add_class_names(picture, report, cells);
  if (report.classes.size() <= most_numbered) add_cell_numbers(picture, cells);
}

/// A bar for the F1 of each label, of many those that most items have.
void add_labels(Picture& picture, const train::ClassReport& report) {
  std::vector<std::size_t> order(report.classes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return report.classes[a].support > report.classes[b].support;
  });
  order.resize(std::min(order.size(), most_bars));
  std::sort(order.begin(), order.end());
  const Panel panel{matrix_place, {0, 1}, {0, 1}};
  add_frame(picture, panel, "F1 of each label", round_ticks(panel.x, 5), {}, "F1");
  const double height = matrix_place.height / static_cast<double>(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const train::ClassQuality& quality = report.classes[order[i]];
    const double top = matrix_place.y + static_cast<double>(i) * height;
    picture.shapes.push_back(Box{{matrix_place.x, top + 0.15 * height,
                                  quality.f1.value_or(0) * matrix_place.width, 0.7 * height},
                                 blue});
    picture.shapes.push_back(Text{
        {matrix_place.x - 6, top + height / 2 + 4}, shortened(quality.name, 20), Anchor::end, 11});
  }
}

void add_calibration(Picture& picture, const train::ClassReport& report) {
  const Panel panel{{660, 90, 280, 280}, {0, 1}, {0, 1}};
  const char* const what =
      report.multi_label ? "probability of a label" : "probability of the class";
  if (!report.calibration_error) {
    picture.shapes.push_back(
        Text{{660, 90}, "no calibration: a probability is not a number", Anchor::start, 11});
    return;
  }
  add_frame(picture, panel,
            fmt::format("how often it was true (error {:.3f})", *report.calibration_error),
            round_ticks(panel.x, 5), round_ticks(panel.y, 5), what);
  picture.shapes.push_back(Line{{panel.at(0, 0), panel.at(1, 1)}, grey, 1, 1, true});
  std::int64_t most = 1;
  Line line{{}, orange, 1.6};
  for (const train::CalibrationBin& bin : report.calibration) {
    most = std::max(most, bin.count);
    if (bin.count == 0) continue;
    const Point point = panel.at(bin.probability, bin.share_true);
    line.points.push_back(point);
    picture.shapes.push_back(Box{{point.x - 3, point.y - 3, 6, 6}, orange});
  }
  picture.shapes.push_back(std::move(line));
  const Panel counts{{660, 450, 280, 80}, {0, 1}, {0, static_cast<double>(most)}};
  add_frame(picture, counts, "how many", {}, round_ticks(counts.y, 2), "");
  const auto bins = static_cast<double>(report.calibration.size());
  for (std::size_t b = 0; b < report.calibration.size(); ++b) {
    const train::CalibrationBin& bin = report.calibration[b];
    const Point top =
        counts.at((static_cast<double>(b) + 0.1) / bins, static_cast<double>(bin.count));
    const double bottom = counts.place.y + counts.place.height;
    picture.shapes.push_back(
        Box{{top.x, top.y, 0.8 * counts.place.width / bins, bottom - top.y}, blue});
  }
}

}  // namespace

Picture class_report_picture(const std::string& title, const train::ClassReport& report) {
  Picture picture{980, 580, {}};
  picture.shapes.push_back(Text{{40, 28}, shortened(title, 110), Anchor::start, 14});
  picture.shapes.push_back(
      Text{{40, 48},
           fmt::format("{} {:.2f} %, macro F1 {:.2f} %, {} items",
                       report.multi_label ? "all labels right" : "accuracy", 100 * report.accuracy,
                       100 * report.macro.f1, report.items),
           Anchor::start,
           11});
  report.multi_label ? add_labels(picture, report) : add_confusion(picture, report);
  add_calibration(picture, report);
  return picture;
}

}  // namespace tessera::app::picture
