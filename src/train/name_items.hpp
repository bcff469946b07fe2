// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/train/predict.hpp"

namespace tessera::train {

/// What logits mean: the class of each item, what items and classes are called, and what the data
/// knows of them.
void name_items(const Checkpoint& checkpoint, const Dataset& dataset, Prediction& prediction);

}  // namespace tessera::train
