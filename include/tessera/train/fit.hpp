// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/data/dataset.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/train/options.hpp"
#include "tessera/train/problem.hpp"
#include "tessera/train/report.hpp"

namespace tessera::train {

/// Trains a model, once for each seed, and says how good it got: the test metric at the epoch that
/// was best on the validation items. The same options give the same bits for any number of threads,
/// and for a run that was stopped and resumed.
TrainReport fit(const Dataset& dataset, const nn::ModelConfig& config, const TrainOptions& options);

/// The same on data that was prepared with the same options.
TrainReport fit(const Problem& problem, const nn::ModelConfig& config, const TrainOptions& options);

}  // namespace tessera::train
