// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/quant/affine.hpp"

namespace tessera::quant {
namespace {

struct Bounds {
  float lower = std::numeric_limits<float>::infinity();
  float upper = -std::numeric_limits<float>::infinity();
};

std::string name_of(const QuantOptions& options, std::size_t range) {
  switch (options.granularity) {
    case Granularity::tensor: return "the matrix";
    case Granularity::columns: return fmt::format("column {}", range);
    case Granularity::classes: return fmt::format("class {}", range);
  }
  return "?";
}

std::size_t num_ranges(MatrixView<const float> x, const QuantOptions& options) {
  switch (options.granularity) {
    case Granularity::tensor: return 1;
    case Granularity::columns: return static_cast<std::size_t>(x.cols);
    case Granularity::classes: return static_cast<std::size_t>(options.classes.count);
  }
  return 0;
}

void check_options(MatrixView<const float> x, const QuantOptions& options) {
  check_bits(options.bits, "quantisation");
  if (options.calibration == Calibration::percentile &&
      !(options.share > 0 && options.share <= 1)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("a share of {}", options.share),
                "calibration", "use a share above 0, at most 1");
  }
  if (options.calibration == Calibration::bounds &&
      !(std::isfinite(options.lower) && std::isfinite(options.upper))) {
    throw Error(ErrorCode::invalid_argument, "bounds that are not finite", "calibration",
                "give two finite bounds");
  }
  if (options.granularity != Granularity::classes) return;
  if (static_cast<std::int64_t>(options.classes.of_row.size()) != x.rows) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("classes of {} rows for {}", options.classes.of_row.size(), x.rows),
                "calibration", "give every row a class");
  }
  for (const std::int32_t c : options.classes.of_row) {
    if (c >= 0 && c < options.classes.count) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("class {} of {}", c, options.classes.count), "calibration",
                "number classes from 0");
  }
}

template <class Body>
void for_each_number(MatrixView<const float> x, const QuantOptions& options, Body&& body) {
  Affine ranges;
  ranges.granularity = options.granularity;
  ranges.classes = options.classes;
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t j = 0; j < x.cols; ++j) {
      if (!std::isfinite(x(i, j))) {
        throw Error(ErrorCode::invalid_argument, fmt::format("{} has no range", x(i, j)),
                    fmt::format("calibration, row {}, column {}", i, j),
                    "clean the numbers first, or give bounds");
      }
      body(ranges.range_of(i, j), x(i, j));
    }
  }
}

std::vector<Bounds> least_and_greatest(MatrixView<const float> x, const QuantOptions& options) {
  std::vector<Bounds> bounds(num_ranges(x, options));
  for_each_number(x, options, [&](std::size_t range, float value) {
    bounds[range].lower = std::min(bounds[range].lower, value);
    bounds[range].upper = std::max(bounds[range].upper, value);
  });
  return bounds;
}

std::vector<Bounds> percentiles(MatrixView<const float> x, const QuantOptions& options) {
  std::vector<std::vector<float>> numbers(num_ranges(x, options));
  for_each_number(x, options,
                  [&](std::size_t range, float value) { numbers[range].push_back(value); });
  std::vector<Bounds> bounds(numbers.size());
  for (std::size_t range = 0; range < numbers.size(); ++range) {
    auto& sorted = numbers[range];
    if (sorted.empty()) continue;
    std::sort(sorted.begin(), sorted.end());
    const auto outside = static_cast<std::size_t>(
        (1 - options.share) / 2 * static_cast<double>(sorted.size()) + 1e-9);
    bounds[range] = {sorted[outside], sorted[sorted.size() - 1 - outside]};
  }
  return bounds;
}

std::vector<Bounds> find_bounds(MatrixView<const float> x, const QuantOptions& options) {
  switch (options.calibration) {
    case Calibration::range: return least_and_greatest(x, options);
    case Calibration::percentile: return percentiles(x, options);
    case Calibration::bounds: break;
  }
  return std::vector<Bounds>(num_ranges(x, options), {static_cast<float>(options.lower),
                                                      static_cast<float>(options.upper)});
}

}  // namespace

Affine calibrate(MatrixView<const float> x, const QuantOptions& options) {
  check_options(x, options);
  Affine affine;
  affine.bits = options.bits;
  affine.rounding = options.rounding;
  affine.granularity = options.granularity;
  if (options.granularity == Granularity::classes) affine.classes = options.classes;
  const std::uint32_t steps =
      options.rounding == Rounding::floor ? affine.max_code() + 1 : affine.max_code();
  const std::vector<Bounds> bounds = find_bounds(x, options);
  for (std::size_t range = 0; range < bounds.size(); ++range) {
    const auto [lower, upper] = bounds[range];
    if (lower > upper && options.calibration != Calibration::bounds) {
      throw Error(ErrorCode::invalid_argument, "no numbers to take a range from",
                  "calibration, " + name_of(options, range), "give bounds");
    }
    const double width = static_cast<double>(upper) - static_cast<double>(lower);
    const auto scale = static_cast<float>(width / steps);
    if (!(width > 0)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the range from {:g} to {:g} has no width", lower, upper),
                  "calibration, " + name_of(options, range),
                  "give bounds, or take one range for the whole matrix");
    }
    if (width > std::numeric_limits<float>::max() || !std::isnormal(scale)) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("the range from {:g} to {:g} in {} steps, which single precision does "
                      "not hold",
                      lower, upper, steps),
          "calibration, " + name_of(options, range), "scale the numbers first");
    }
    affine.lower.push_back(lower);
    affine.scale.push_back(scale);
  }
  return affine;
}

}  // namespace tessera::quant
