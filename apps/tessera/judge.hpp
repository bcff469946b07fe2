// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/data/dataset.hpp"
#include "tessera/train/predict.hpp"

namespace tessera::app {

/// Items that predictions are compared on with what the data says.
struct JudgedItems {
  std::string what;  ///< "the test part of the training's split"
  std::vector<std::int64_t> items;
};

/// What the model was tested on, or else the test part of the data, or else all items; without
/// those that the data says nothing of. None: it says nothing of any.
JudgedItems items_to_judge(const Dataset& dataset, const train::Checkpoint& checkpoint,
                           const train::Prediction& prediction);

/// How good predictions are there.
struct Quality {
  std::string items;
  double metric = 0;  ///< accuracy, or micro-F1 of several labels
  std::int64_t count = 0;
};

/// None of numbers, which predict_numbers.hpp judges.
std::optional<Quality> assess(const Dataset& dataset, const train::Checkpoint& checkpoint,
                              const train::Prediction& prediction);

}  // namespace tessera::app
