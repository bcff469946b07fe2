// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/train/problem.hpp"

/// What is asked for where links are predicted.
namespace tessera::train {

/// Throws `invalid_argument` where options ask for what links cannot have.
void require_link_options(const nn::ModelConfig& config, const TrainOptions& options);

/// Gives every edge its part. A graph without edges to train on, and one that has every edge, are
/// errors.
void take_links(const Dataset& dataset, const TrainOptions& options, Problem& problem);

}  // namespace tessera::train
