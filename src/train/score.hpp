// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/train/metrics.hpp"
#include "train/batch.hpp"

namespace tessera::train {

/// Whether counts tell a metric: others need all logits.
bool is_counted(Metric metric);

/// A metric over some items of a batch. Logits of numbers are in their units.
double score(Metric metric, MatrixView<const float> logits, const Batch& batch,
             std::span<const std::int64_t> items);

}  // namespace tessera::train
