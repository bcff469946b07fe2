// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/train/predict.hpp"

namespace tessera::train {

/// As `predict`, with `PredictOptions::partition`.
Prediction predict_in_batches(const Checkpoint& checkpoint, const Dataset& dataset,
                              const PredictOptions& options);

}  // namespace tessera::train
