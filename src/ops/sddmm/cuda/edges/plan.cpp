// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/launch.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "cuda/rows.hpp"
#include "graph/access.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/rows/scales.hpp"
#include "ops/sddmm/cuda/cost.hpp"
#include "ops/sddmm/cuda/kernels.hpp"

namespace tessera::ops {
namespace {

EdgesFunction dots_function(Precision precision, bool vectors, std::size_t policy) {
  const EdgesKey key = {stored_as(precision), vectors};
  return kernels_of<flagged_keys<EdgesKey>, EdgesKernels>(key)[policy];
}

/// Whether each head of a row can begin on a 16-byte boundary.
bool fits_vectors(const SddmmProblem& problem) { return head_bytes(problem) % 16 == 0; }

/// The scalar policy for heads of this width: the widest that they fill.
std::size_t scalar_policy_for(std::int64_t width) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < scalar_policies.size(); ++i) {
    if (scalar_policies[i].lanes <= width) best = i;
  }
  return best;
}

/// The graph and its scales on the device.
class CudaSddmm final : public PreparedSddmm {
 public:
  CudaSddmm(const SddmmProblem& problem, EdgesFunction function, int tiles_of_warp = 1)
      : problem_(problem),
        function_(function),
        tiles_per_warp_(tiles_of_warp),
        rows_(cuda::device_rows(problem.graph, problem.place())),
        edge_rows_(cuda::device_edge_rows(problem.graph, problem.place())) {
    const Graph& graph = problem.graph;
    if (problem.factor == EdgeFactor::none) return;
    const PlacedArray<float> row_scale = problem.factor == EdgeFactor::mean_scales
                                             ? PlacedArray<float>(mean_scale<float>(graph))
                                             : detail::GraphAccess::row_scale(graph);
    row_scale_ = cuda::array_in(row_scale, problem.place());
    col_scale_ = cuda::array_in(detail::GraphAccess::col_scale(graph), problem.place());
  }

  void run(const ConstOperand& u, const ConstOperand& v, const Operand& edges,
           Stream stream) const override {
    check_reach(u, "u");
    check_reach(v, "v");
    EdgesLaunch launch;
    launch.num_edges = rows_->num_edges;
    launch.indices = rows_->indices.data();
    launch.edge_rows = edge_rows_->view();
    launch.kept = {u.data, u.stride, row_scale_.data()};
    launch.gathered = {v.data, v.stride, col_scale_.data()};
    launch.edges = edges.data;
    launch.edges_stride = edges.stride;
    launch.width = head_width(problem_);
    launch.heads = problem_.heads;
    launch.tiles_per_warp = tiles_per_warp_;
    function_(launch, stream);
  }

 private:
  SddmmProblem problem_;
  EdgesFunction function_;
  int tiles_per_warp_;
  std::shared_ptr<const cuda::DeviceRows> rows_;
  std::shared_ptr<const cuda::DeviceEdgeRows> edge_rows_;
  SharedArray<float> row_scale_;
  SharedArray<float> col_scale_;
};

constexpr const char* dots_only = "dot products only";

std::string why_not_vectors(const SddmmProblem& problem, const EdgesPolicy& policy) {
  if (problem.function != EdgeFunction::dot) return dots_only;
  if (!problem.aligned) return "rows on 16-byte boundaries only";
  if (!fits_vectors(problem)) return "heads do not begin on 16-byte boundaries";
  const std::int64_t vectors = head_bytes(problem) / 16;
  const std::int64_t held = std::int64_t{policy.lanes} * policy.vectors;
  const bool idle = held >= 2 * std::max<std::int64_t>(vectors, 1) && held > 1;
  const bool too_narrow = policy.lanes < 8 && held < vectors;
  // Both rows in many chunks: what one chunk brought has left the cache when its neighbour comes.
  const bool too_long = !policy.keeps && vectors > 4 * policy.lanes;
  if (!idle && !too_narrow && !too_long) return {};
  return fmt::format("its {} x {} vectors do not fit heads of {} features", policy.lanes,
                     policy.vectors, head_width(problem));
}

std::string why_not_stream(const SddmmProblem& problem) {
  if (std::string reason = why_not_on_tiles(problem); !reason.empty()) return reason;
  if (problem.heads != 1) return "one head only";
  // Edges are asked for up to two steps after the last one of a run.
  constexpr std::int64_t ahead = 1024;
  if (problem.graph.num_edges() > std::numeric_limits<std::int32_t>::max() - ahead) {
    return "streams count edges with 31 bits";
  }
  if (head_bytes(problem) == stream_row_bytes) return {};
  return fmt::format("rows of {} bytes only", stream_row_bytes);
}

std::string why_not_scalars(const SddmmProblem& problem) {
  if (problem.function != EdgeFunction::dot) return dots_only;
  return problem.aligned && fits_vectors(problem) ? "vectors of 16 bytes are faster" : "";
}

std::string why_not_sums(const SddmmProblem& problem) {
  return problem.function == EdgeFunction::add ? "" : "sums only";
}

std::unique_ptr<const PreparedSddmm> prepare_dots(const SddmmProblem& problem, bool vectors,
                                                  std::size_t policy) {
  const EdgesPolicy& shape = vectors ? vector_policies[policy] : scalar_policies[policy];
  return std::make_unique<CudaSddmm>(
      problem, dots_function(problem.precision, vectors, policy),
      tiles_per_warp(problem.graph.num_edges(), shape.tile(), device_traits(problem.device)));
}

KernelInfo info_of(const EdgesPolicy& policy) {
  return cuda_info(
      "sddmm",
      fmt::format("vectors_{}x{}x{}{}", policy.lanes, policy.vectors, policy.edges,
                  policy.keeps ? "" : "_both"),
      fmt::format("equal shares of edges, {} lanes per edge with {} vectors each, {} edges in "
                  "turn, {}",
                  policy.lanes, policy.vectors, policy.edges,
                  policy.keeps ? "one end's row in registers" : "both rows loaded for each"));
}

double predict_vectors_us(const SddmmProblem& problem, const EdgesPolicy& policy,
                          const DeviceTraits& traits) {
  return predict_edges_us(problem, policy, 16, traits);
}
std::unique_ptr<const PreparedSddmm> prepare_vectors(const SddmmProblem& problem,
                                                     const EdgesPolicy& policy) {
  return prepare_dots(problem, true, static_cast<std::size_t>(&policy - vector_policies.data()));
}

double predict_scalars_us(const SddmmProblem& problem, const DeviceTraits& traits) {
  return predict_edges_us(problem, scalar_policies[scalar_policy_for(head_width(problem))],
                          element_bytes(problem), traits);
}
std::unique_ptr<const PreparedSddmm> prepare_scalars(const SddmmProblem& problem) {
  return prepare_dots(problem, false, scalar_policy_for(head_width(problem)));
}

std::unique_ptr<const PreparedSddmm> prepare_stream(const SddmmProblem& problem) {
  return std::make_unique<CudaSddmm>(problem, kernels_of<EdgeStream>(problem.precision),
                                     stream_steps(problem.graph, device_traits(problem.device)));
}

std::unique_ptr<const PreparedSddmm> prepare_sums(const SddmmProblem& problem) {
  return std::make_unique<CudaSddmm>(problem, kernels_of<EdgeSumsKernel>(problem.precision));
}

}  // namespace

void append_cuda_sddmm_kernels(std::vector<SddmmKernel>& table) {
  append_kernels<why_not_vectors, predict_vectors_us, prepare_vectors, vector_policies>(table,
                                                                                        info_of);
  table.push_back(cuda_kernel<SddmmKernel, why_not_stream, predict_stream_us, prepare_stream>(
      cuda_info("sddmm", fmt::format("stream_{}x{}x{}", stream_lanes, stream_vectors, stream_depth),
                fmt::format("runs of edges, {} lanes per edge with {} vectors each, {} rows always "
                            "in flight",
                            stream_lanes, stream_vectors, stream_depth))));
  table.push_back(cuda_kernel<SddmmKernel, why_not_scalars, predict_scalars_us, prepare_scalars>(
      cuda_info("sddmm", "scalars",
                "equal shares of edges, a feature at a time, with the lanes that fit")));
  table.push_back(cuda_kernel<SddmmKernel, why_not_sums, predict_edge_sums_us, prepare_sums>(
      cuda_info("sddmm", "sums", "a number for each lane in the order of storage")));
}

}  // namespace tessera::ops
