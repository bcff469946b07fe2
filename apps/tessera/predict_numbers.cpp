// SPDX-License-Identifier: Apache-2.0
#include "predict_numbers.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "numbers.hpp"
#include "tessera/core/printable.hpp"

namespace tessera::app {
namespace {

struct Spread {
  double least = 0, mean = 0, most = 0;
};

Spread spread_of(const train::Prediction& prediction, std::int64_t k) {
  const Matrix<float>& values = prediction.logits;
  Spread spread;
  for (std::int64_t i = 0; i < values.rows(); ++i) {
    const auto value = static_cast<double>(values(i, k));
    spread.least = i == 0 ? value : std::min(spread.least, value);
    spread.most = i == 0 ? value : std::max(spread.most, value);
    spread.mean += value / static_cast<double>(values.rows());
  }
  return spread;
}

std::optional<train::NumberQuality> quality_of(const train::Prediction& prediction,
                                               const JudgedItems& judged, std::int64_t k) {
  if (prediction.true_numbers == nullptr) return {};
  const auto quality =
      train::number_quality(prediction.logits, *prediction.true_numbers, judged.items, k);
  if (quality.count == 0) return {};
  return quality;
}

}  // namespace

void add_numbers(const train::Prediction& prediction, const JudgedItems& judged, Table& table) {
  for (std::int64_t k = 0; k < prediction.numbers->count(); ++k) {
    const std::string name = printable(prediction.numbers->name(k));
    const Spread spread = spread_of(prediction, k);
    table.add({name, fmt::format("{:.4g} to {:.4g}, mean {:.4g}", spread.least, spread.most,
                                 spread.mean)});
    if (const auto quality = quality_of(prediction, judged, k)) {
      table.add({"against the data",
                 fmt::format("MAE {:.4g}, RMSE {:.4g}, R2 {:.4g} of {} ({})", quality->mae,
                             quality->rmse, quality->r2, judged.what, grouped(quality->count))});
    }
  }
}

void add_numbers(const train::Prediction& prediction, const JudgedItems& judged, Json& json) {
  json["targets"] = Json::array();
  for (std::int64_t k = 0; k < prediction.numbers->count(); ++k) {
    const Spread spread = spread_of(prediction, k);
    Json one{{"name", prediction.numbers->name(k)},
             {"min", spread.least},
             {"mean", spread.mean},
             {"max", spread.most}};
    if (const auto quality = quality_of(prediction, judged, k)) {
      one["test"] = {{"mae", quality->mae},
                     {"rmse", quality->rmse},
                     {"r2", quality->r2},
                     {"items", quality->count}};
    }
    json["targets"].push_back(std::move(one));
  }
}

}  // namespace tessera::app
