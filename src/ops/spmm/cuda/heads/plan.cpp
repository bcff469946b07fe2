// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/heads/launch.hpp"

#include <algorithm>
#include <bit>

#include "cuda/array.hpp"
#include "graph/access.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/spmm/cuda/heads/cost.hpp"
#include "ops/spmm/cuda/kernels.hpp"

namespace tessera::ops {
namespace {

/// A warp takes this many edges of one row, or cuts it.
constexpr EdgeOffset longest_row = 1024;

constexpr auto heads_keys = collect_keys<HeadsKey>([](auto add) {
  for (const Precision precision : kernel_precisions) {
    for (const bool aligned : {true, false}) add(HeadsKey{precision, aligned});
  }
});

HeadsFunction function_of(Precision precision, bool aligned) {
  const HeadsKey key = {stored_as(precision), aligned};
  return kernels_of<heads_keys>(key, []<HeadsKey k>() { return HeadsKernel<k>::get(); });
}

class CudaHeads final : public PreparedSpmm {
 public:
  explicit CudaHeads(const SpmmProblem& problem)
      : problem_(problem),
        rows_(by_rows() ? cuda::device_rows(problem.graph, problem.place())
                        : cuda::device_columns(problem.graph, problem.place())),
        cuts_(cuda::cut_long_rows((by_rows() ? problem.graph.row_offsets()
                                             : detail::GraphAccess::col_offsets(problem.graph))
                                      .span(),
                                  longest_row, problem.place())),
        slots_(workspace_.add<float>(checked_area(cuts_.num_slots, problem.features))),
        aligned_(function_of(problem.precision, true)),
        scalar_(function_of(problem.precision, false)) {}

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
    launch.features.x = call.x.data;
    launch.features.x_stride = call.x.stride;
    launch.features.y = call.y.data;
    launch.features.y_stride = call.y.stride;
    launch.features.count = problem_.features;
    launch.work.slots = slots_.in(workspace);
    const bool aligned = on_boundaries(call.x, launch.features.head_width) &&
                         on_boundaries(call.y, launch.features.head_width);
    const std::int64_t vectors =
        aligned ? launch.features.count * element_bytes() / 16 : launch.features.count;
    launch.work.lanes = static_cast<int>(std::min<std::uint64_t>(
        32, std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(vectors, 1)))));
    (aligned ? aligned_ : scalar_)(launch, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

 private:
  bool by_rows() const { return problem_.pass == SpmmPass::forward; }
  std::int64_t element_bytes() const {
    return static_cast<std::int64_t>(bytes_per_element(problem_.precision));
  }

  SpmmProblem problem_;
  std::shared_ptr<const cuda::DeviceRows> rows_;
  cuda::Cuts cuts_;
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
  HeadsFunction aligned_;
  HeadsFunction scalar_;
};

std::string why_not(const SpmmProblem& problem) {
  if (problem.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (!problem.is_plain()) return "no epilogue";
  if (problem.reduction != Reduction::sum) return "sums only";
  if (problem.heads == 1 && !problem.edge_features) return "one weight per edge";
  const Graph& graph = problem.graph;
  if (graph.has_values() || graph.has_row_scale() || graph.has_col_scale()) {
    return "a graph without weights only";
  }
  return {};
}

double predicted_us(const SpmmProblem& problem) {
  return predict_heads_us(problem, device_traits(problem.device));
}

}  // namespace

void append_cuda_heads_kernels(std::vector<SpmmKernel>& table) {
  table.push_back(
      {{"spmm/cuda/heads", "a warp per row, with a weight for each head or features of edges",
        "spmm", DeviceKind::cuda, true},
       why_not,
       predicted_us,
       [](const SpmmProblem& problem) -> std::unique_ptr<const PreparedSpmm> {
         return std::make_unique<CudaHeads>(problem);
       }});
}

}  // namespace tessera::ops
