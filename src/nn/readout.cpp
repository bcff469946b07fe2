// SPDX-License-Identifier: Apache-2.0
#include "tessera/nn/readout.hpp"

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/nn/propagate.hpp"

namespace tessera::nn {
namespace {

bool needs_winners(ops::Reduction reduction) {
  return reduction == ops::Reduction::max || reduction == ops::Reduction::min;
}

/// A readout is a product with the pooling graph.
Context pooling_context(const Context& context) {
  if (context.pooling == nullptr) {
    throw Error(ErrorCode::invalid_argument, "the context has no pooling graph", "Readout",
                "set Context::pooling before the pass");
  }
  Context pooled = context;
  pooled.graph = context.pooling;
  pooled.graphs = {};
  return pooled;
}

}  // namespace

Readout::Readout(const ReadoutOptions& options, Placement placement)
    : Layer(placement), options_(options), output_(placement), grad_input_(placement) {}

const Tensor& Readout::forward(const Input& input, const Context& context) {
  const Context pooled = pooling_context(context);
  const Tensor& x = input.dense("Readout");
  MatrixView<VertexId> winners;
  if (needs_winners(options_.reduction)) {
    const std::int64_t graphs = pooled.graph->graph().num_rows();
    if (winners_.size() < graphs * x.cols()) {
      winners_ = Buffer<VertexId>(checked_area(graphs, x.cols()), *placement().memory);
    }
    winners = matrix_in(winners_, graphs, x.cols());
  }
  propagate({"Readout", pattern, options_.reduction}, x, output_, pooled, winners);
  return output_;
}

Tensor* Readout::backward(Tensor& grad_output, const Context& context) {
  MatrixView<const VertexId> winners;
  if (needs_winners(options_.reduction)) {
    winners = matrix_in(winners_, grad_output.rows(), grad_output.cols());
  }
  propagate_backward({"Readout", pattern, options_.reduction}, grad_output, grad_input_,
                     pooling_context(context), winners);
  return &grad_input_;
}

std::string Readout::describe() const {
  return fmt::format("Readout({}, {})", options_.width, to_string(options_.reduction));
}

}  // namespace tessera::nn
