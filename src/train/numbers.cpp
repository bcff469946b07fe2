// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/numbers.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::train {
namespace {

struct Pair {
  double predicted, target;
};

/// Those of which the data says something.
std::vector<Pair> known_pairs(MatrixView<const float> predicted, MatrixView<const float> targets,
                              std::span<const std::int64_t> rows, std::int64_t column) {
  std::vector<Pair> pairs;
  for (const std::int64_t row : rows) {
    const auto target = static_cast<double>(targets(row, column));
    if (!std::isnan(target)) pairs.push_back({static_cast<double>(predicted(row, column)), target});
  }
  return pairs;
}

}  // namespace

NumberQuality number_quality(MatrixView<const float> predicted, MatrixView<const float> targets,
                             std::span<const std::int64_t> rows, std::int64_t column) {
  const std::vector<Pair> pairs = known_pairs(predicted, targets, rows, column);
  NumberQuality quality;
  quality.count = std::ssize(pairs);
  if (pairs.empty()) return quality;
  const auto count = static_cast<double>(pairs.size());
  double mean = 0;
  for (const Pair& pair : pairs) mean += pair.target / count;
  double absolute = 0, squared = 0, spread = 0;
  bool differ = false;
  for (const auto& [value, target] : pairs) {
    absolute += std::abs(value - target);
    squared += (value - target) * (value - target);
    spread += (target - mean) * (target - mean);
    differ = differ || target != pairs.front().target;
  }
  quality.mae = absolute / count;
  quality.rmse = std::sqrt(squared / count);
  quality.r2 = differ ? 1 - squared / spread : squared == 0 ? 1 : 0;
  return quality;
}

NumberQuality number_quality(MatrixView<const float> predicted, MatrixView<const float> targets,
                             std::span<const std::int64_t> rows) {
  NumberQuality mean;
  double columns = 0;
  for (std::int64_t k = 0; k < targets.cols; ++k) {
    const NumberQuality one = number_quality(predicted, targets, rows, k);
    if (one.count == 0) continue;
    ++columns;
    mean.mae += one.mae;
    mean.rmse += one.rmse;
    mean.r2 += one.r2;
    mean.count += one.count;
  }
  if (columns == 0) return mean;
  mean.mae /= columns;
  mean.rmse /= columns;
  mean.r2 /= columns;
  return mean;
}

double metric_of(Metric metric, const NumberQuality& quality) {
  if (metric == Metric::mae) return quality.mae;
  return metric == Metric::rmse ? quality.rmse : quality.r2;
}

}  // namespace tessera::train
