// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/trial.hpp"

#include <utility>

#include <fmt/format.h>

#include "ops/cuda/boundaries.hpp"
#include "ops/tune.hpp"

namespace tessera::ops {
namespace {

bool has_winners(const SpmmProblem& problem) {
  return problem.reduction == Reduction::max || problem.reduction == Reduction::min;
}

bool is_forward(const SpmmProblem& problem) { return problem.pass == SpmmPass::forward; }

/// The number of a kind of runs.
unsigned kind_of(bool edge_values, bool aligned) {
  return (edge_values ? 1u : 0u) + (aligned ? 0u : 2u);
}

bool is_aligned(const ConstOperand& operand) {
  return on_boundaries(operand, 0) && within_reach(operand);
}

class SpmmWithFallback final : public PreparedSpmm {
 public:
  SpmmWithFallback(std::unique_ptr<const PreparedSpmm> chosen, std::uint32_t kinds,
                   std::unique_ptr<const PreparedSpmm> fallback)
      : chosen_(std::move(chosen)), kinds_(kinds), fallback_(std::move(fallback)) {}

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    const bool aligned = is_aligned(call.x) && is_aligned(call.y);
    const unsigned kind = kind_of(!call.edge_values.absent(), aligned);
    const PreparedSpmm& serving = (kinds_ >> kind & 1u) != 0 ? *fallback_ : *chosen_;
    serving.run(call, stream, workspace);
  }

  WorkspaceNeed workspace() const override {
    WorkspaceNeed need = chosen_->workspace();
    need.cover(fallback_->workspace());
    return need;
  }
  std::int64_t own_bytes() const noexcept override {
    return chosen_->own_bytes() + fallback_->own_bytes();
  }

 private:
  std::unique_ptr<const PreparedSpmm> chosen_;
  std::uint32_t kinds_;
  std::unique_ptr<const PreparedSpmm> fallback_;
};

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
    residual_ = ScratchOperand(problem.precision, is_forward(problem) ? rows : cols,
                               problem.features, place);
  }
  if (epilogue.residual_scale) {
    residual_scale_ = ScratchOperand(problem.precision, 1, 1, place);
  }
  call_.bias = bias_;
  call_.residual = residual_;
  call_.residual_scale = residual_scale_;
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
  if (epilogue.residual) text += epilogue.residual_scale ? ", scaled residual" : ", residual";
  if (epilogue.bias) text += ", bias";
  if (epilogue.activation != Activation::none) {
    text += fmt::format(", {}", to_string(epilogue.activation));
  }
  if (epilogue.dropout > 0) text += ", dropout";
  if (problem.output() != problem.precision) {
    text += fmt::format(", to {}", to_string(problem.output()));
  }
  if (!problem.aligned) text += ", off boundaries";
  return text;
}

std::vector<OtherRuns<SpmmProblem>> SpmmTrial::other_runs(const SpmmProblem& problem) {
  std::vector<OtherRuns<SpmmProblem>> others;
  const auto add = [&](bool edge_values, bool aligned, const char* name) {
    if (edge_values == problem.edge_values_expected && aligned == problem.aligned) return;
    if (edge_values ? !problem.edge_values_at_run : !problem.own_weights_at_run) return;
    SpmmProblem other = problem;
    other.edge_values_expected = edge_values;
    other.aligned = aligned;
    others.push_back({kind_of(edge_values, aligned), name, std::move(other)});
  };
  add(false, true, "the graph's own weights");
  add(true, true, "edge values");
  add(false, false, "rows off 16-byte boundaries");
  add(true, false, problem.edge_values_expected ? "rows off 16-byte boundaries" : "");
  return others;
}

std::unique_ptr<const PreparedSpmm> SpmmTrial::with_fallback(
    std::unique_ptr<const PreparedSpmm> chosen, std::uint32_t kinds,
    std::unique_ptr<const PreparedSpmm> fallback) {
  return std::make_unique<SpmmWithFallback>(std::move(chosen), kinds, std::move(fallback));
}

}  // namespace tessera::ops
