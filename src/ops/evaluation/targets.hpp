// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/core/memory.hpp"
#include "tessera/ops/evaluation.hpp"
#include "tessera/ops/loss.hpp"

namespace tessera::ops {

/// How often a row counts in each part, and its class: one load on a GPU.
struct alignas(16) EvaluatedRow {
  std::int32_t train = 0;
  std::int32_t validation = 0;
  std::int32_t test = 0;
  std::int32_t label = 0;
};

/// The arrays lie on the device.
struct EvaluationTargets::State {
  bool is_binary = false;
  Device device;
  std::int64_t rows = 0;
  std::int64_t cols = 0;        ///< classes, or columns of the targets
  double validation_count = 1;  ///< what the sum of losses is divided by
  Buffer<EvaluatedRow> choices;
  Buffer<float> targets;  ///< for yes or no: rows x cols
  /// Where the loss is taken by itself: on the CPU, and of numbers.
  std::optional<LossTargets> validation;
  bool is_loss_alone = false;
};

}  // namespace tessera::ops
