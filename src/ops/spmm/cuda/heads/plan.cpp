// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/heads/launch.hpp"

#include <algorithm>

#include "core/device_traits.hpp"
#include "cuda/array.hpp"
#include "graph/access.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/plan/tuning.hpp"
#include "ops/spmm/cuda/kernels.hpp"

namespace tessera::ops {
namespace {

struct HeadsCoefficients {
  double launch_us;
  double gathered_bytes_per_us;

  void scale(DeviceRatio ratio) { gathered_bytes_per_us *= ratio.processors; }
};

constexpr Fitted<HeadsCoefficients> coefficients = {
    fitted_on_h200("2026-11-15", "attention with 4 and 8 heads on a few graphs, by eye"),
    {.launch_us = 3, .gathered_bytes_per_us = 6e6}};

/// What sums with a weight per edge and head, or of features of edges, should take.
double predict_heads_us(const SpmmProblem& problem, const DeviceTraits& traits) {
  const HeadsCoefficients fit = coefficients.on(traits);
  return fit.launch_us + static_cast<double>(problem.graph.num_edges()) *
                             static_cast<double>(problem.features + problem.heads) *
                             static_cast<double>(bytes_per_element(problem.precision)) /
                             fit.gathered_bytes_per_us;
}

/// A warp takes this many edges of one row, or cuts it.
constexpr EdgeOffset longest_row = 1024;

HeadsFunction function_of(Precision precision, bool aligned) {
  const HeadsKey key = {stored_as(precision), aligned};
  return kernels_of<flagged_keys<HeadsKey>, HeadsKernel>(key);
}

class CudaHeads final : public PreparedSpmm {
 public:
  explicit CudaHeads(const SpmmProblem& problem)
      : problem_(problem),
        rows_(problem.is_forward() ? cuda::device_rows(problem.graph, problem.place())
                                   : cuda::device_columns(problem.graph, problem.place())),
        cuts_(cuda::cut_long_rows(
            (problem.is_forward() ? problem.graph.row_offsets()
                                  : detail::GraphAccess::col_offsets(problem.graph))
                .span(),
            longest_row, problem.place())),
        slots_(workspace_.add<float>(checked_area(cuts_.num_slots, problem.features))) {}

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    HeadsLaunch launch;
    launch.work.rows = cuts_.rows(*rows_);
    launch.matrix.indices = rows_->indices.data();
    launch.matrix.positions = rows_->positions.data();
    launch.features.of_edges = problem_.edge_features;
    launch.matrix.values = call.edge_values.data;
    launch.matrix.value_stride = call.edge_values.stride;
    // Without weights a row is one head.
    launch.features.head_width = std::max<std::int64_t>(1, problem_.features / problem_.heads);
    set_features(problem_, call, launch.features);
    launch.work.slots = slots_.in(workspace);
    const bool aligned = on_boundaries(call.x, launch.features.head_width) &&
                         on_boundaries(call.y, launch.features.head_width);
    launch.work.lanes = lanes_for(problem_.features, problem_.precision, aligned);
    function_of(problem_.precision, aligned)(launch, stream);
  }

 private:
  SpmmProblem problem_;
  std::shared_ptr<const cuda::DeviceRows> rows_;
  cuda::Cuts cuts_;
  WorkspacePart<float> slots_;
};

std::string why_not(const SpmmProblem& problem) {
  if (!problem.is_plain()) return "no epilogue";
  if (problem.reduction != Reduction::sum) return "sums only";
  if (problem.heads == 1 && !problem.edge_features) return "one weight per edge";
  const Graph& graph = problem.graph;
  if (graph.has_values() || graph.has_row_scale() || graph.has_col_scale()) {
    return "a graph without weights only";
  }
  return {};
}

}  // namespace

void append_cuda_heads_kernels(std::vector<SpmmKernel>& table) {
  table.push_back(cuda_kernel<SpmmKernel, why_not, predict_heads_us, prepared<CudaHeads>>(cuda_info(
      "spmm", "heads", "a warp per row, with a weight for each head or features of edges")));
}

}  // namespace tessera::ops
