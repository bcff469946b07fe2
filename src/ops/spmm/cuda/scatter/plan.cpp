// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "cuda/array.hpp"
#include "graph/access.hpp"
#include "graph/weight_sizes.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/scatter/cost.hpp"
#include "ops/spmm/cuda/scatter/launch.hpp"
#include "ops/spmm/edge_terms.hpp"

namespace tessera::ops {
namespace {

constexpr auto scatter_keys = collect_keys<ScatterKey>([](auto add) {
  for (const Precision precision : kernel_precisions) {
    for (const auto function : {WeightFunction::product, WeightFunction::gaussian}) {
      for (const bool aligned : {true, false}) add(ScatterKey{precision, function, aligned});
    }
  }
});

ScatterFunctions functions_of(Precision precision, WeightFunction function, bool aligned) {
  const ScatterKey key = {stored_as(precision), function, aligned};
  return kernels_of<scatter_keys, ScatterKernels>(key);
}

ScatterLaunch::Matrix matrix_of(const EdgeTerms& terms, const ConstOperand& edge_values,
                                SpmmPass pass) {
  ScatterLaunch::Matrix matrix;
  matrix.rows = terms.rows.data();
  matrix.cols = terms.cols.data();
  matrix.num_edges = terms.num_edges;
  matrix.transposed = pass == SpmmPass::backward;
  matrix.num_results = matrix.transposed ? terms.num_cols : terms.num_rows;
  if (edge_values.absent()) {
    matrix.graph_values = terms.values.data();
  } else {
    matrix.stored_values = edge_values.data;
    matrix.value_stride = edge_values.stride;
  }
  matrix.row_numbers = terms.row_numbers.data();
  matrix.col_numbers = terms.col_numbers.data();
  matrix.loops = terms.loops.data();
  matrix.degrees = terms.degrees.data();
  return matrix;
}

class CudaScatter final : public PreparedSpmm {
 public:
  explicit CudaScatter(const SpmmProblem& problem)
      : problem_(problem), terms_(edge_terms(problem)) {
    finishes_ = problem.divides() || !problem.is_plain() ||
                bytes_per_element(problem.output()) != static_cast<int>(sizeof(float));
    if (finishes_) sums_ = workspace_.add<float>(checked_area(num_results(), sums_stride()));
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    if (problem_.features == 0 || num_results() == 0) return;
    ScatterLaunch launch;
    launch.matrix = matrix_of(*terms_, call.edge_values, problem_.pass);
    launch.work.finishes = finishes_;
    set_features(problem_, call, launch.features);
    launch.features.sums = finishes_ ? sums_.in(workspace) : static_cast<float*>(call.y.data);
    launch.features.sums_stride = finishes_ ? sums_stride() : call.y.stride;
    set_epilogue(problem_, call, launch.epilogue);
    const bool aligned = on_boundaries(call.x, problem_.features) &&
                         (finishes_ || on_boundaries(call.y, problem_.features));
    launch.work.lanes = lanes_for(problem_.features, problem_.precision, aligned);
    functions_of(problem_.precision, terms_->function, aligned).scatter(launch, stream);
  }

 private:
  std::int64_t num_results() const noexcept {
    return problem_.is_forward() ? terms_->num_rows : terms_->num_cols;
  }
  /// Rows of sums in the workspace begin on 16-byte boundaries.
  std::int64_t sums_stride() const noexcept { return (problem_.features + 3) / 4 * 4; }

  SpmmProblem problem_;
  std::shared_ptr<const EdgeTerms> terms_;
  bool finishes_ = false;
  WorkspacePart<float> sums_;
};

/// Whether a weight of the graph is below the smallest normal number: atomic additions in memory
/// take such numbers for 0.
bool has_subnormal_weights(const Graph& graph) {
  using Of = detail::GraphAccess;
  const std::array all = {Of::values(graph), Of::row_scale(graph), Of::col_scale(graph)};
  return std::any_of(all.begin(), all.end(), [&](const PlacedArray<float>& weights) {
    const float smallest = weights.empty() ? 0 : weight_sizes(graph, weights).smallest;
    return smallest > 0 && smallest < std::numeric_limits<float>::min();
  });
}

std::string why_not(const SpmmProblem& problem) {
  if (has_winners(problem.reduction)) return "max and min";
  if (problem.heads > 1) return "several values per edge";
  if (problem.edge_features) return "features of edges, not of vertices";
  if (problem.features > max_features_of_rows) return "too many features";
  if (!problem.edges && !problem.edge_values_expected && has_subnormal_weights(problem.graph)) {
    return "would take the smallest weights for 0";
  }
  return {};
}

}  // namespace

EdgeValueGradients cuda_edge_dots(const SpmmProblem& problem) {
  return [terms = edge_terms(problem), precision = problem.precision](
             const SpmmGradInputs& inputs, const Operand& gradients, Stream stream) {
    EdgeDotsLaunch launch;
    launch.matrix = matrix_of(*terms, inputs.edge_values, SpmmPass::forward);
    launch.grad_y = inputs.grad_y.data;
    launch.grad_y_stride = inputs.grad_y.stride;
    launch.x = inputs.x.data;
    launch.x_stride = inputs.x.stride;
    launch.features = inputs.x.cols;
    launch.result = gradients.data;
    launch.result_stride = gradients.stride;
    const bool aligned =
        on_boundaries(inputs.grad_y, launch.features) && on_boundaries(inputs.x, launch.features);
    launch.lanes = lanes_for(launch.features, precision, aligned);
    functions_of(precision, terms->function, aligned).dots(launch, stream);
  };
}

MoveValues cuda_move_values(const SpmmProblem& problem) {
  const auto terms = edge_terms(problem);
  const MovedValuesFunction move =
      functions_of(problem.precision, terms->function, true).move_values;
  return [terms, move,
          edge_ids = cuda::array_in(detail::GraphAccess::edge_ids(problem.graph), problem.place()),
          num_moved = problem.graph.num_edges(), loop_weight = problem.edges->loop_weight()](
             const ConstOperand& edge_values, void* moved, Stream stream) {
    MovedValuesLaunch launch;
    launch.matrix = matrix_of(*terms, edge_values, SpmmPass::forward);
    launch.edge_ids = edge_ids.data();
    launch.moved = moved;
    launch.num_moved = num_moved;
    launch.loop_weight = loop_weight;
    move(launch, stream);
  };
}

void append_cuda_scatter_kernels(std::vector<SpmmKernel>& table) {
  KernelInfo info =
      cuda_info("spmm", "scatter", "edges in the order in which they are, added by atomics");
  info.deterministic = info.strict = false;
  table.push_back(
      cuda_kernel<SpmmKernel, why_not, predict_scatter_us, prepared<CudaScatter>>(info));
}

}  // namespace tessera::ops
