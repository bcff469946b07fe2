// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/nn/layer.hpp"

/// Layers on graphs whose targets are the first of their sources, as batches of neighbours have.
namespace tessera::nn {

/// X W^T of the targets. Sparse sources have no first rows to multiply: all are, and the first
/// results are taken.
step::Value product_of_targets(const StepInputs& in, step::Value weight);

/// Of what is made of all sources the part of the targets, where these have no features of their
/// own.
step::Value part_of_targets(const StepInputs& in, step::Value of_sources);

/// What a layer makes of graph `graph` of those it takes. One of a list (`Context::graphs`) that
/// has scales is scaled already, which only the code that drew its edges can do: it stays as it is.
Derivation unless_scaled(const StepInputs& in, Derivation derivation, int graph = 0);

}  // namespace tessera::nn
