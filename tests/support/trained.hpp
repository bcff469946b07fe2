// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/files.hpp"
#include "support/training_data.hpp"
#include "tessera/train/checkpoint.hpp"
#include "tessera/train/fit.hpp"

namespace tessera::test {

/// What a short training leaves.
inline train::Checkpoint trained_checkpoint(const Dataset& dataset, const nn::ModelConfig& config,
                                            std::int64_t epochs = 5) {
  const TemporaryFolder folder;
  train::TrainOptions options = short_training(epochs);
  options.checkpoint.path = folder / "model";
  train::fit(dataset, config, options);
  return train::load_checkpoint(options.checkpoint.path);
}

}  // namespace tessera::test
