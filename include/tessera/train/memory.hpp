// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/nn/config.hpp"
#include "tessera/nn/layer.hpp"
#include "tessera/train/options.hpp"
#include "tessera/train/problem.hpp"

namespace tessera::train {

/// What training takes at most, in bytes.
struct TrainingMemory {
  std::int64_t parameters = 0;   ///< values, gradients, copies of 16 bits, moments
  std::int64_t activations = 0;  ///< what forward keeps and backward writes
  std::int64_t graph = 0;        ///< what plans hold: adjacencies, tiles, workspaces
  std::int64_t features = 0;
  std::int64_t rest = 0;  ///< labels, and the workspace of dense ops
  /// What this process holds beside all that, where training takes its memory, too: the data.
  std::int64_t data = 0;

  std::int64_t total() const { return parameters + activations + graph + features + rest + data; }
};

/// What `fit` will take of the options' memory. All plans are made, so that what they hold is known
/// and not guessed; tensors are only counted. `problem` may have been prepared for the same model
/// without `precomputed`.
TrainingMemory predict_memory(const Problem& problem, const nn::ModelConfig& config,
                              const TrainOptions& options);

/// The program of a training step, with the loss. Plans are made, and nothing is computed.
nn::StepExplanation explain_step(const Problem& problem, const nn::ModelConfig& config,
                                 const TrainOptions& options);

}  // namespace tessera::train
