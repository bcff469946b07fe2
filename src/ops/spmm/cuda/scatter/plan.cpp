// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <utility>

#include "cuda/array.hpp"
#include "graph/access.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/spmm/by_edges.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/scatter/cost.hpp"
#include "ops/spmm/cuda/scatter/launch.hpp"
#include "ops/spmm/in_edge_order.hpp"

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
  return kernels_of<scatter_keys>(key, []<ScatterKey k>() { return ScatterKernels<k>::get(); });
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

/// Lanes that take a row of features together.
int lanes_for(std::int64_t features, Precision precision, bool aligned) {
  const auto element = static_cast<std::int64_t>(bytes_per_element(precision));
  const std::int64_t vectors = aligned ? features * element / 16 : features;
  return static_cast<int>(std::min<std::uint64_t>(
      32, std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(vectors, 1)))));
}

class CudaScatter final : public PreparedSpmm {
 public:
  explicit CudaScatter(const SpmmProblem& problem)
      : problem_(problem),
        terms_(edge_terms(problem)),
        aligned_(functions_of(problem.precision, terms_->function, true)),
        scalar_(functions_of(problem.precision, terms_->function, false)) {
    const bool divides = problem.reduction == Reduction::mean && problem.pass == SpmmPass::forward;
    finishes_ = divides || !problem.is_plain() ||
                bytes_per_element(problem.output()) != static_cast<int>(sizeof(float));
    if (finishes_) sums_ = workspace_.add<float>(checked_area(num_results(), sums_stride()));
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    if (problem_.features == 0 || num_results() == 0) return;
    ScatterLaunch launch;
    launch.matrix = matrix_of(*terms_, call.edge_values, problem_.pass);
    launch.work.finishes = finishes_;
    launch.features.x = call.x.data;
    launch.features.x_stride = call.x.stride;
    launch.features.y = call.y.data;
    launch.features.y_stride = call.y.stride;
    launch.features.sums = finishes_ ? sums_.in(workspace) : static_cast<float*>(call.y.data);
    launch.features.sums_stride = finishes_ ? sums_stride() : call.y.stride;
    launch.features.count = problem_.features;
    set_epilogue(problem_, call, launch.epilogue);
    const bool aligned = on_boundaries(call.x, problem_.features) &&
                         (finishes_ || on_boundaries(call.y, problem_.features));
    launch.work.lanes = lanes_for(problem_.features, problem_.precision, aligned);
    (aligned ? aligned_ : scalar_).scatter(launch, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

 private:
  std::int64_t num_results() const noexcept {
    return problem_.pass == SpmmPass::forward ? terms_->num_rows : terms_->num_cols;
  }
  /// Rows of sums in the workspace begin on 16-byte boundaries.
  std::int64_t sums_stride() const noexcept { return (problem_.features + 3) / 4 * 4; }

  SpmmProblem problem_;
  std::shared_ptr<const EdgeTerms> terms_;
  ScatterFunctions aligned_;
  ScatterFunctions scalar_;
  bool finishes_ = false;
  WorkspaceNeed workspace_;
  WorkspacePart<float> sums_;
};

class CudaEdgeDots final : public EdgeValueGradients {
 public:
  explicit CudaEdgeDots(const SpmmProblem& problem)
      : precision_(problem.precision),
        features_(problem.features),
        terms_(edge_terms(problem)),
        aligned_(functions_of(problem.precision, terms_->function, true)),
        scalar_(functions_of(problem.precision, terms_->function, false)) {}

  void run(const SpmmGradInputs& inputs, const Operand& grad_edge_values,
           Stream stream) const override {
    EdgeDotsLaunch launch;
    launch.matrix = matrix_of(*terms_, inputs.edge_values, SpmmPass::forward);
    launch.grad_y = inputs.grad_y.data;
    launch.grad_y_stride = inputs.grad_y.stride;
    launch.x = inputs.x.data;
    launch.x_stride = inputs.x.stride;
    launch.features = features_;
    launch.result = grad_edge_values.data;
    launch.result_stride = grad_edge_values.stride;
    const bool aligned =
        on_boundaries(inputs.grad_y, features_) && on_boundaries(inputs.x, features_);
    launch.lanes = lanes_for(features_, precision_, aligned);
    (aligned ? aligned_ : scalar_).dots(launch, stream);
  }

 private:
  Precision precision_;
  std::int64_t features_;
  std::shared_ptr<const EdgeTerms> terms_;
  ScatterFunctions aligned_;
  ScatterFunctions scalar_;
};

class CudaInEdgeOrder final : public PreparedSpmm {
 public:
  CudaInEdgeOrder(std::unique_ptr<const PreparedSpmm> by_rows, const SpmmProblem& problem)
      : by_rows_(std::move(by_rows)),
        terms_(edge_terms(problem)),
        edge_ids_(cuda::array_in(detail::GraphAccess::edge_ids(problem.graph), problem.place())),
        type_(storage_of(problem.precision)),
        num_moved_(problem.graph.num_edges()),
        loop_weight_(problem.edges->loop_weight()),
        move_(functions_of(problem.precision, terms_->function, true).move_values),
        moved_(workspace_.add<std::byte>(bytes_of(type_, num_moved_))),
        inner_(workspace_.add_for({by_rows_->workspace()})),
        device_(problem.device) {}

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    const WorkspaceView inner = part_for(inner_, workspace);
    if (call.edge_values.absent()) return by_rows_->run(call, stream, inner);
    MovedValuesLaunch launch;
    launch.matrix = matrix_of(*terms_, call.edge_values, SpmmPass::forward);
    launch.edge_ids = edge_ids_.data();
    launch.moved = moved_.in(workspace);
    launch.num_moved = num_moved_;
    launch.loop_weight = loop_weight_;
    move_(launch, stream);
    SpmmCall moved = call;
    moved.edge_values = ConstOperand(launch.moved, type_, device_, num_moved_, 1, 1);
    by_rows_->run(moved, stream, inner);
  }

  WorkspaceNeed workspace() const override { return workspace_; }
  std::int64_t own_bytes() const noexcept override { return by_rows_->own_bytes(); }

 private:
  std::unique_ptr<const PreparedSpmm> by_rows_;
  std::shared_ptr<const EdgeTerms> terms_;
  SharedArray<EdgeOffset> edge_ids_;
  ElementType type_;
  EdgeOffset num_moved_;
  float loop_weight_;
  MovedValuesFunction move_;
  WorkspaceNeed workspace_;
  WorkspacePart<std::byte> moved_;
  WorkspacePart<std::byte> inner_;
  Device device_;
};

std::string why_not(const SpmmProblem& problem) {
  if (problem.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (problem.reduction == Reduction::max || problem.reduction == Reduction::min) {
    return "max and min";
  }
  if (problem.heads > 1) return "several values per edge";
  if (problem.edge_features) return "features of edges, not of vertices";
  if (problem.features > max_features_of_rows) return "too many features";
  if (!problem.edges && !problem.edge_values_expected && has_subnormal_weights(problem.graph)) {
    return "would take the smallest weights for 0";
  }
  return {};
}

}  // namespace

std::unique_ptr<const EdgeValueGradients> cuda_edge_dots(const SpmmProblem& problem) {
  return std::make_unique<CudaEdgeDots>(problem);
}

std::unique_ptr<const PreparedSpmm> cuda_in_edge_order(std::unique_ptr<const PreparedSpmm> by_rows,
                                                       const SpmmProblem& problem) {
  return std::make_unique<CudaInEdgeOrder>(std::move(by_rows), problem);
}

void append_cuda_scatter_kernels(std::vector<SpmmKernel>& table) {
  table.push_back({{.name = "spmm/cuda/scatter",
                    .description = "edges in the order in which they are, added by atomics",
                    .op = "spmm",
                    .device = DeviceKind::cuda,
                    .deterministic = false,
                    .strict = false},
                   why_not,
                   [](const SpmmProblem& problem) {
                     return predict_scatter_us(problem, device_traits(problem.device));
                   },
                   [](const SpmmProblem& problem) -> std::unique_ptr<const PreparedSpmm> {
                     return std::make_unique<CudaScatter>(problem);
                   }});
}

}  // namespace tessera::ops
