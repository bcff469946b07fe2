// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/train/trainer.hpp"

/// What a training begins with.
namespace tessera::train {

/// The split in the numbers that a full batch gives its items.
Split placed(const Split& split, const Problem& problem);

/// A model of somebody else's, checked and as ours begin.
std::unique_ptr<nn::Layer> started(const Problem& problem, std::unique_ptr<nn::Layer> model,
                                   const TrainOptions& options, std::uint64_t seed);

}  // namespace tessera::train
