// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/nn/epilogue.hpp"
#include "tessera/nn/names.hpp"

namespace tessera::nn {

/// Which product with a graph a layer means: the matrix is what `derivation` makes of the graph.
struct Propagation {
  const char* layer;  ///< for errors
  Derivation derivation;
  ops::Reduction reduction = ops::Reduction::sum;
  bool has_gradient = true;  ///< whether training needs dX
};

/// Y = A X; `y` takes the shape it needs. `winners` is for max alone.
void propagate(const Propagation& propagation, const Tensor& x, Tensor& y, const Context& context,
               MatrixView<VertexId> winners = {});

/// Rows that a product adds to its own, 1 + scale times each.
struct ScaledResidual {
  const Tensor& rows;
  const Parameter& scale;  ///< 1 x 1
};

/// Y = A X + (1 + scale) residual, by one kernel where that is as fast.
void propagate(const Propagation& propagation, const Tensor& x, const ScaledResidual& residual,
               Tensor& y, const Context& context);

/// dX = A^T dY + (1 + scale) residual, the same way.
void propagate_backward(const Propagation& propagation, const Tensor& grad_y,
                        const ScaledResidual& residual, Tensor& grad_x, const Context& context);

/// Whether a product of these features can finish its rows itself and be as fast.
bool can_finish(const Epilogue& epilogue, const Tensor& x, const Context& context);

/// Y = epilogue(A X + residual) by one kernel, where `can_finish`. `residual` may be null.
void propagate_and_finish(const Propagation& propagation, const Tensor& x, const Tensor* residual,
                          Epilogue& epilogue, std::uint32_t layer_number, Tensor& y,
                          const Context& context);

/// dX = A^T dY.
void propagate_backward(const Propagation& propagation, const Tensor& grad_y, Tensor& grad_x,
                        const Context& context, MatrixView<const VertexId> winners = {});

}  // namespace tessera::nn
