// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/trial.hpp"

#include <fmt/format.h>

#include "ops/tune.hpp"

namespace tessera::ops {
namespace {

bool has_winners(const SpmmProblem& problem) {
  return problem.reduction == Reduction::max || problem.reduction == Reduction::min;
}

bool is_forward(const SpmmProblem& problem) { return problem.pass == SpmmPass::forward; }

}  // namespace

SpmmTrial::SpmmTrial(const SpmmProblem& problem, const Place& place) : workspace_(place) {
  const Graph& graph = problem.graph;
  const std::int64_t rows = graph.num_rows(), cols = graph.num_cols();
  const std::int64_t ends = is_forward(problem) ? cols : rows;
  const std::int64_t x_rows = problem.edge_features ? graph.num_edges() : ends;
  x_ = ScratchOperand(problem.precision, x_rows, problem.features, place);
  y_ = ScratchOperand(problem.output(), is_forward(problem) ? rows : cols, problem.features, place);
  call_.x = x_;
  call_.y = y_;
  if (problem.heads > 1 || problem.edge_values_expected) {
    edge_values_ = ScratchOperand(problem.precision, graph.num_edges(), problem.heads, place);
    call_.edge_values = edge_values_;
  }
  const SpmmEpilogue& epilogue = problem.epilogue;
  if (epilogue.bias) bias_ = ScratchOperand(problem.precision, 1, problem.features, place);
  if (epilogue.residual) {
    residual_ = ScratchOperand(problem.precision, rows, problem.features, place);
  }
  call_.bias = bias_;
  call_.residual = residual_;
  const Dropout dropout{epilogue.dropout};
  call_.formula = {epilogue.activation, epilogue.slope, epilogue.alpha, dropout.active(),
                   dropout.constants()};
  if (!has_winners(problem)) return;
  winners_ = Buffer<VertexId>(checked_area(rows, problem.features), place);
  fill_zero(winners_.data(), checked_bytes(winners_.size(), sizeof(VertexId)), place.device,
            place.stream);
  const MatrixView<VertexId> winners = matrix_in(winners_, rows, problem.features);
  if (is_forward(problem)) {
    call_.winners = winners;
  } else {
    call_.won_by = winners;
  }
}

std::string SpmmTrial::op(const SpmmProblem& problem) {
  return is_forward(problem) ? "spmm" : "spmm_backward";
}

std::string SpmmTrial::details(const SpmmProblem& problem) {
  std::string text =
      fmt::format("features {}, {}, {}, {}", problem.features, to_string(problem.precision),
                  to_string(problem.reduction), weights_text(problem.graph));
  if (problem.heads > 1) text += fmt::format(", heads {}", problem.heads);
  if (problem.edge_values_expected) text += ", values of runs";
  if (problem.edge_features) text += ", rows of edges";
  const SpmmEpilogue& epilogue = problem.epilogue;
  if (epilogue.residual) text += ", residual";
  if (epilogue.bias) text += ", bias";
  if (epilogue.activation != Activation::none) {
    text += fmt::format(", {}", to_string(epilogue.activation));
  }
  if (epilogue.dropout > 0) text += ", dropout";
  if (problem.output() != problem.precision) {
    text += fmt::format(", to {}", to_string(problem.output()));
  }
  return text;
}

}  // namespace tessera::ops
