// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/nn/config.hpp"
#include "tessera/train/options.hpp"

namespace tessera::train {

/// Throws `invalid_argument` naming what does not go with batches of neighbours.
void require_neighbour_options(const nn::ModelConfig& config, const TrainOptions& options,
                               bool graph_task);

}  // namespace tessera::train
