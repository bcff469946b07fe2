// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/error.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/train/options.hpp"

namespace tessera::train {

/// Throws `out_of_memory` at once, naming what to lower, where no machine like this one can hold
/// the model, what it is trained on, or the reports of so many runs.
void require_memory(const nn::ModelConfig& config, const nn::DataShape& shape,
                    const TrainOptions& options);

/// An `out_of_memory` error that also says what takes how much, and what to change.
Error explained(const Error& error, const nn::ModelConfig& config, const nn::DataShape& shape,
                const TrainOptions& options);

}  // namespace tessera::train
