// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/aggregate_update.hpp"

/// What aggregate_update means. Sequential and in double precision.
namespace tessera::ops::reference {

/// Inputs in double; parts without memory are absent.
struct AggregateUpdateNumbers {
  MatrixView<const double> x, weight;
  MatrixView<const double> root_weight = {};
  MatrixView<const double> bias = {};
  double self_scale = 0;
  Random random = Random(0);
};

/// Y, and Z where `aggregated` has memory. Widths are those of the matrices.
void aggregate_update(const Graph& graph, const AggregateUpdateOptions& options,
                      const AggregateUpdateNumbers& numbers, MatrixView<double> y,
                      MatrixView<double> aggregated = {});

struct AggregateUpdateGradients {
  MatrixView<double> x = {}, weight = {}, root_weight = {}, bias = {};
};

/// From `grad_y`, the gradient of what was activated; outputs without memory are not computed.
void aggregate_update_backward(const Graph& graph, const AggregateUpdateOptions& options,
                               const AggregateUpdateNumbers& numbers,
                               MatrixView<const double> grad_y,
                               const AggregateUpdateGradients& gradients);

}  // namespace tessera::ops::reference
