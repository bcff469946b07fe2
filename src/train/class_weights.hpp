// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "tessera/ops/loss.hpp"
#include "tessera/train/problem.hpp"
#include "train/number_targets.hpp"

namespace tessera::train {

/// What the loss over training items wants.
struct TrainLoss {
  std::vector<float> class_weights;  ///< empty: none
  double smoothing = 0;
  std::optional<NumberLearning> numbers = {};  ///< where these are learned

  ops::LossOptions options() const { return {class_weights, smoothing}; }
};

/// For the training items of a split in the numbers of the data. Throws `invalid_argument` where
/// weights name no class, or items have several labels, and as `number_outputs` does.
TrainLoss train_loss(const Problem& problem, const Split& split, const TrainOptions& options);

}  // namespace tessera::train
