// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/trial.hpp"

#include <utility>

#include <fmt/format.h>

#include "ops/cuda/boundaries.hpp"
#include "ops/plan/tune.hpp"

namespace tessera::ops {
namespace {

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
      : chosen_(std::move(chosen)), kinds_(kinds), fallback_(std::move(fallback)) {
    workspace_.cover(chosen_->workspace());
    workspace_.cover(fallback_->workspace());
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    const bool aligned = is_aligned(call.x) && is_aligned(call.y);
    const unsigned kind = kind_of(!call.edge_values.absent(), aligned);
    const PreparedSpmm& serving = (kinds_ >> kind & 1u) != 0 ? *fallback_ : *chosen_;
    serving.run(call, stream, workspace);
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

SpmmTrial::SpmmTrial(const SpmmProblem& problem, const Place& place) : TrialOperands(place) {
  const Graph& graph = problem.graph;
  const std::int64_t targets = problem.num_targets(), sources = problem.num_sources();
  const std::int64_t features = problem.features;
  const auto given = [&](std::int64_t rows, std::int64_t cols) {
    return matrix(problem.precision, rows, cols);
  };
  call_.x = given(problem.edge_features ? graph.num_edges() : sources, features);
  call_.y = matrix(problem.output(), targets, features);
  if (problem.heads > 1 || problem.edge_values_expected) {
    call_.edge_values = given(graph.num_edges(), problem.heads);
  }
  const SpmmEpilogue& epilogue = problem.epilogue;
  if (epilogue.bias) call_.bias = given(1, features);
  if (epilogue.residual) call_.residual = given(targets, features);
  if (epilogue.residual_scale) call_.residual_scale = given(1, 1);
  call_.formula = formula_of(epilogue);
  if (!has_winners(problem.reduction)) return;
  const MatrixView<VertexId> winners = {zeros<VertexId>(checked_area(graph.num_rows(), features)),
                                        graph.num_rows(), features, device()};
  if (problem.is_forward()) {
    call_.winners = winners;
  } else {
    call_.won_by = winners;
  }
}

std::string SpmmTrial::op(const SpmmProblem& problem) {
  return problem.is_forward() ? "spmm" : "spmm_backward";
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
