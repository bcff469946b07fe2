// SPDX-License-Identifier: Apache-2.0
#include "picture/training_plot.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "metric_text.hpp"
#include "picture/panel.hpp"

namespace tessera::app::picture {
namespace {

using train::EpochRecord;
using train::RunReport;

/// One line for every run.
struct Series {
  const char* name;
  Colour colour;
  bool evaluated_only;
  std::function<double(const EpochRecord&)> value;
};

/// The points of a run that are numbers. Of long runs each column of pixels shows its lowest and
/// its highest, so that no spike is lost.
std::vector<Point> points_of(const RunReport& run, const Series& series) {
  std::vector<Point> all;
  for (const EpochRecord& record : run.curve) {
    if (series.evaluated_only && !record.evaluated) continue;
    const double value = series.value(record);
    if (std::isfinite(value)) all.push_back({static_cast<double>(record.epoch), value});
  }
  constexpr std::size_t columns = 700;
  if (all.size() <= 2 * columns) return all;
  std::vector<Point> kept;
  for (std::size_t column = 0; column < columns; ++column) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(column * all.size() / columns);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>((column + 1) * all.size() / columns);
    const auto [low, high] =
        std::minmax_element(begin, end, [](const Point& a, const Point& b) { return a.y < b.y; });
    kept.push_back(low < high ? *low : *high);
    kept.push_back(low < high ? *high : *low);
  }
  return kept;
}

struct Curves {
  std::vector<Series> series;
  std::vector<std::vector<std::vector<Point>>> points;  ///< [series][run]
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();
};

Curves curves_of(const train::TrainReport& report, std::vector<Series> series) {
  Curves curves{std::move(series), {}};
  for (const Series& one : curves.series) {
    auto& runs = curves.points.emplace_back();
    for (const RunReport& run : report.runs) {
      runs.push_back(points_of(run, one));
      for (const Point& point : runs.back()) {
        curves.lowest = std::min(curves.lowest, point.y);
        curves.highest = std::max(curves.highest, point.y);
      }
    }
  }
  if (!(curves.lowest <= curves.highest)) curves.lowest = curves.highest = 0;
  if (curves.lowest == curves.highest) curves.highest += 1;
  return curves;
}

void add_curves(Picture& picture, const Panel& panel, const Curves& curves) {
  const std::size_t runs = curves.points.empty() ? 1 : curves.points[0].size();
  const double opacity = std::clamp(1.5 / static_cast<double>(runs), 0.3, 1.0);
  Point key{panel.place.x + 8, panel.place.y + 14};
  for (std::size_t s = 0; s < curves.series.size(); ++s) {
    const Colour& colour = curves.series[s].colour;
    bool drawn = false;
    for (const std::vector<Point>& points : curves.points[s]) {
      Line line{{}, colour, 1.6, opacity};
      for (const Point& point : points) line.points.push_back(panel.at(point.x, point.y));
      // A single epoch is a dot.
      if (line.points.size() == 1) line.points.push_back(line.points[0]);
      drawn = drawn || !line.points.empty();
      picture.shapes.push_back(std::move(line));
    }
    if (drawn) key = add_key(picture, key, colour, curves.series[s].name);
  }
}

/// "81.52 +- 0.61 %"
std::string spread_text(train::Metric metric, const train::Summary& score) {
  if (train::is_of_numbers(metric)) {
    return fmt::format("{:.4g} +- {:.2g}", score.mean, score.deviation);
  }
  return fmt::format("{:.2f} +- {:.2f} %", 100 * score.mean, 100 * score.deviation);
}

/// Room above the highest point for the key.
Axis with_room(double low, double high) { return {low, high + 0.12 * (high - low)}; }

}  // namespace

Picture training_plot(const std::string& title, const train::TrainReport& report) {
  Picture picture{760, 640, {}};
  picture.shapes.push_back(Text{{70, 28}, shortened(title, 80), Anchor::start, 14});
  const double last = static_cast<double>(
      std::max_element(report.runs.begin(), report.runs.end(),
                       [](const RunReport& a, const RunReport& b) { return a.epochs < b.epochs; })
          ->epochs);
  const Axis epochs{1, std::max(2.0, last)};
  const std::string metric = train::to_string(report.metric);
  const bool of_numbers = train::is_of_numbers(report.metric);
  const auto share = [of_numbers](double train::Evaluation::*part) {
    return
        [=](const EpochRecord& record) { return (of_numbers ? 1 : 100) * record.evaluation.*part; };
  };
  const Curves loss =
      curves_of(report, {{"training", blue, false, [](const EpochRecord& r) { return r.loss; }},
                         {"validation", orange, true,
                          [](const EpochRecord& r) { return r.evaluation.validation_loss; }}});
  const Curves metrics =
      curves_of(report, {{"training", blue, true, share(&train::Evaluation::train)},
                         {"validation", orange, true, share(&train::Evaluation::validation)},
                         {"test", green, true, share(&train::Evaluation::test)}});
  const Panel above{
      {70, 70, 660, 210}, epochs, with_room(std::min(0.0, loss.lowest), loss.highest)};
  const Panel below{{70, 360, 660, 210}, epochs, with_room(metrics.lowest, metrics.highest)};
  std::vector<Tick> ticks = round_ticks(epochs, 8);
  std::erase_if(ticks, [](const Tick& tick) { return tick.value != std::floor(tick.value); });
  add_frame(picture, above, "loss", ticks, round_ticks(above.y, 5), "epoch");
  add_frame(picture, below, metric, ticks, round_ticks(below.y, 5, of_numbers ? "" : " %"),
            "epoch");
  add_curves(picture, above, loss);
  add_curves(picture, below, metrics);
  for (const RunReport& run : report.runs) {
    const double x = below.at(static_cast<double>(run.best_epoch), 0).x;
    picture.shapes.push_back(Line{{{x, below.place.y}, {x, below.place.y + below.place.height}},
                                  grey,
                                  1,
                                  report.runs.size() > 1 ? 0.5 : 1,
                                  true});
  }
  const train::Summary& score = report.tested ? report.test : report.validation;
  const char* const part = report.tested ? "test" : "validation";
  const std::string best =
      report.runs.size() == 1
          ? fmt::format("dashed: best on validation, epoch {}, {} {} {}", report.runs[0].best_epoch,
                        part, metric, metric_text(report.metric, score.mean))
          : fmt::format("dashed: best on validation of each of {} runs; {} {} {}",
                        report.runs.size(), part, metric, spread_text(report.metric, score));
  picture.shapes.push_back(Text{{70, 628}, best, Anchor::start, 11});
  return picture;
}

}  // namespace tessera::app::picture
