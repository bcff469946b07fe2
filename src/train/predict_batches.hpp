// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/train/predict.hpp"

namespace tessera::train {

/// What logits mean: the class of each item, and what items and classes are called.
void name_classes(const Checkpoint& checkpoint, const Dataset& dataset, Prediction& prediction);

/// As `predict`, with `PredictOptions::partition`.
Prediction predict_in_batches(const Checkpoint& checkpoint, const Dataset& dataset,
                              const PredictOptions& options);

}  // namespace tessera::train
