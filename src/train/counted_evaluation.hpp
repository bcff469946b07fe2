// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/ops/evaluation.hpp"
#include "tessera/train/report.hpp"
#include "train/batch.hpp"

/// The metrics of an evaluation.
namespace tessera::train {

/// Those that counts tell: the others need all logits.
inline bool is_counted(Metric metric) { return metric != Metric::roc_auc; }

Evaluation evaluation_of(const ops::EvaluationNumbers& numbers, bool multi_label);

double roc_auc_of(MatrixView<const float> logits, const Batch& batch,
                  std::span<const std::int64_t> items);

}  // namespace tessera::train
