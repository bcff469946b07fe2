// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "tessera/data/dataset.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/nn/layer.hpp"
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

/// Makes a model of one's own for data of this shape: `shape.features` in, `shape.outputs` out.
/// With a readout in it where graphs are classified.
using ModelMaker = std::function<std::unique_ptr<nn::Layer>(const nn::DataShape& shape,
                                                            const step::Placement& placement)>;

/// The same with a model of one's own, made anew for each run. There are no files of checkpoints of
/// such models: `CheckpointOptions::kept` gets the best weights, to be `restore`d.
TrainReport fit(const Dataset& dataset, const ModelMaker& maker, const TrainOptions& options);
TrainReport fit(const Problem& problem, const ModelMaker& maker, const TrainOptions& options);

}  // namespace tessera::train
