// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/launch.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "cuda/rows.hpp"
#include "graph/access.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/scales.hpp"
#include "ops/sddmm/cuda/edges/cost.hpp"
#include "ops/sddmm/cuda/kernels.hpp"

namespace tessera::ops {
namespace {

constexpr auto edges_keys = collect_keys<EdgesKey>([](auto add) {
  for (const Precision precision : kernel_precisions) {
    for (const bool vectors : {true, false}) add(EdgesKey{precision, vectors});
  }
});

EdgesFunction dots_function(Precision precision, bool vectors, std::size_t policy) {
  const EdgesKey key = {stored_as(precision), vectors};
  return kernels_of<edges_keys>(key, []<EdgesKey k>() { return EdgesKernels<k>::all(); })[policy];
}

EdgesFunction stream_function(Precision precision, std::size_t policy) {
  return kernels_of<kernel_precisions>(
      stored_as(precision), []<Precision stored>() { return EdgeStreams<stored>::all(); })[policy];
}

EdgesFunction sums_function(Precision precision) {
  return kernels_of<kernel_precisions>(
      stored_as(precision), []<Precision stored>() { return EdgeSumsKernel<stored>::get(); });
}

/// Whether each head of a row can begin on a 16-byte boundary.
bool fits_vectors(const SddmmProblem& problem) {
  return head_width(problem) * element_bytes(problem) % 16 == 0;
}

/// The scalar policy for heads of this width: the widest that they fill.
std::size_t scalar_policy_for(std::int64_t width) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < scalar_policies.size(); ++i) {
    if (scalar_policies[i].lanes <= width) best = i;
  }
  return best;
}

/// What every kernel of sddmm keeps: the graph and its scales on the device.
class CudaSddmm : public PreparedSddmm {
 public:
  explicit CudaSddmm(const SddmmProblem& problem)
      : problem_(problem),
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
    start(launch, stream);
  }

 protected:
  virtual void start(EdgesLaunch& launch, Stream stream) const = 0;

  const SddmmProblem& problem() const { return problem_; }

 private:
  SddmmProblem problem_;
  std::shared_ptr<const cuda::DeviceRows> rows_;
  std::shared_ptr<const cuda::DeviceEdgeRows> edge_rows_;
  SharedArray<float> row_scale_;
  SharedArray<float> col_scale_;
};

/// Dot products by one policy for vectors.
class CudaEdgeVectors final : public CudaSddmm {
 public:
  CudaEdgeVectors(const SddmmProblem& problem, std::size_t policy)
      : CudaSddmm(problem),
        policy_(policy),
        function_(dots_function(problem.precision, true, policy)) {}

 private:
  void start(EdgesLaunch& launch, Stream stream) const override {
    launch.tiles_per_warp = tiles_per_warp(launch.num_edges, vector_policies[policy_].tile(),
                                           device_traits(problem().device));
    function_(launch, stream);
  }

  std::size_t policy_;
  EdgesFunction function_;
};

/// Dot products by one policy for streams of rows.
class CudaEdgeStream final : public CudaSddmm {
 public:
  CudaEdgeStream(const SddmmProblem& problem, std::size_t policy)
      : CudaSddmm(problem),
        steps_(stream_steps(problem.graph, stream_policies[policy], device_traits(problem.device))),
        function_(stream_function(problem.precision, policy)) {}

 private:
  void start(EdgesLaunch& launch, Stream stream) const override {
    launch.tiles_per_warp = steps_;
    function_(launch, stream);
  }

  int steps_;
  EdgesFunction function_;
};

class CudaEdgeScalars final : public CudaSddmm {
 public:
  CudaEdgeScalars(const SddmmProblem& problem, std::size_t policy)
      : CudaSddmm(problem),
        policy_(policy),
        function_(dots_function(problem.precision, false, policy)) {}

 private:
  void start(EdgesLaunch& launch, Stream stream) const override {
    launch.tiles_per_warp = tiles_per_warp(launch.num_edges, scalar_policies[policy_].tile(),
                                           device_traits(problem().device));
    function_(launch, stream);
  }

  std::size_t policy_;
  EdgesFunction function_;
};

class CudaEdgeSums final : public CudaSddmm {
 public:
  explicit CudaEdgeSums(const SddmmProblem& problem)
      : CudaSddmm(problem), function_(sums_function(problem.precision)) {}

 private:
  void start(EdgesLaunch& launch, Stream stream) const override { function_(launch, stream); }

  EdgesFunction function_;
};

std::string why_not_dot(const SddmmProblem& problem) {
  if (problem.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (problem.function != EdgeFunction::dot) return "dot products only";
  return {};
}

std::string why_not_vectors(const SddmmProblem& problem, const EdgesPolicy& policy) {
  if (std::string reason = why_not_dot(problem); !reason.empty()) return reason;
  if (!problem.aligned) return "rows on 16-byte boundaries only";
  if (!fits_vectors(problem)) return "heads do not begin on 16-byte boundaries";
  const std::int64_t vectors = head_width(problem) * element_bytes(problem) / 16;
  const std::int64_t held = std::int64_t{policy.lanes} * policy.vectors;
  const bool idle = held >= 2 * std::max<std::int64_t>(vectors, 1) && held > 1;
  const bool too_narrow = policy.lanes < 8 && held < vectors;
  // Both rows in many chunks: what one chunk brought has left the cache when its neighbour comes.
  const bool too_long = !policy.keeps && vectors > 4 * policy.lanes;
  if (!idle && !too_narrow && !too_long) return {};
  return fmt::format("its {} x {} vectors do not fit heads of {} features", policy.lanes,
                     policy.vectors, head_width(problem));
}

std::string why_not_stream(const SddmmProblem& problem, const StreamPolicy& policy) {
  if (std::string reason = why_not_dot(problem); !reason.empty()) return reason;
  if (!problem.aligned) return "rows on 16-byte boundaries only";
  if (problem.heads != 1) return "one head only";
  if (problem.factor != EdgeFactor::none) return "without scales only";
  // Edges are asked for up to two steps after the last one of a run.
  constexpr std::int64_t ahead = 1024;
  if (problem.graph.num_edges() > std::numeric_limits<std::int32_t>::max() - ahead) {
    return "streams count edges with 31 bits";
  }
  if (head_width(problem) * element_bytes(problem) == policy.row_bytes()) return {};
  return fmt::format("rows of {} bytes only", policy.row_bytes());
}

std::string why_not_scalars(const SddmmProblem& problem, const EdgesPolicy& policy) {
  if (std::string reason = why_not_dot(problem); !reason.empty()) return reason;
  if (problem.aligned && fits_vectors(problem)) return "vectors of 16 bytes are faster";
  if (policy.lanes == scalar_policies[scalar_policy_for(head_width(problem))].lanes) return {};
  return fmt::format("its {} lanes do not fit heads of {} features", policy.lanes,
                     head_width(problem));
}

std::string why_not_sums(const SddmmProblem& problem) {
  if (problem.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (problem.function != EdgeFunction::add) return "sums only";
  return {};
}

KernelInfo info_of(const char* kind, const EdgesPolicy& policy) {
  KernelInfo info;
  info.name = fmt::format("sddmm/cuda/{}_{}x{}x{}{}", kind, policy.lanes, policy.vectors,
                          policy.edges, policy.keeps ? "" : "_both");
  info.description = fmt::format(
      "equal shares of edges, {} lanes per edge with {} vectors each, {} edges in turn, {}",
      policy.lanes, policy.vectors, policy.edges,
      policy.keeps ? "one end's row in registers" : "both rows loaded for each");
  info.op = "sddmm";
  info.device = DeviceKind::cuda;
  return info;
}

template <std::size_t index>
SddmmKernel vector_kernel() {
  return {
      info_of("vectors", vector_policies[index]),
      [](const SddmmProblem& problem) { return why_not_vectors(problem, vector_policies[index]); },
      [](const SddmmProblem& problem) {
        return predict_edges_us(problem, vector_policies[index], 16, device_traits(problem.device));
      },
      [](const SddmmProblem& problem) -> std::unique_ptr<const PreparedSddmm> {
        return std::make_unique<CudaEdgeVectors>(problem, index);
      }};
}

template <std::size_t index>
SddmmKernel stream_kernel() {
  constexpr StreamPolicy policy = stream_policies[index];
  KernelInfo info;
  info.name = fmt::format("sddmm/cuda/stream_{}x{}x{}", policy.lanes, policy.vectors, policy.depth);
  info.description = fmt::format(
      "runs of edges, {} lanes per edge with {} vectors each, {} rows always on their way",
      policy.lanes, policy.vectors, policy.depth);
  info.op = "sddmm";
  info.device = DeviceKind::cuda;
  return {
      info,
      [](const SddmmProblem& problem) { return why_not_stream(problem, stream_policies[index]); },
      [](const SddmmProblem& problem) {
        return predict_stream_us(problem, stream_policies[index], device_traits(problem.device));
      },
      [](const SddmmProblem& problem) -> std::unique_ptr<const PreparedSddmm> {
        return std::make_unique<CudaEdgeStream>(problem, index);
      }};
}

template <std::size_t index>
SddmmKernel scalar_kernel() {
  return {
      info_of("scalars", scalar_policies[index]),
      [](const SddmmProblem& problem) { return why_not_scalars(problem, scalar_policies[index]); },
      [](const SddmmProblem& problem) {
        return predict_edges_us(problem, scalar_policies[index], element_bytes(problem),
                                device_traits(problem.device));
      },
      [](const SddmmProblem& problem) -> std::unique_ptr<const PreparedSddmm> {
        return std::make_unique<CudaEdgeScalars>(problem, index);
      }};
}

}  // namespace

void append_cuda_sddmm_kernels(std::vector<SddmmKernel>& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(vector_kernel<i>()), ...); }
  (std::make_index_sequence<vector_policies.size()>{});
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(stream_kernel<i>()), ...); }
  (std::make_index_sequence<stream_policies.size()>{});
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(scalar_kernel<i>()), ...); }
  (std::make_index_sequence<scalar_policies.size()>{});
  table.push_back({{"sddmm/cuda/sums", "a number for each lane in the order of storage", "sddmm",
                    DeviceKind::cuda, true},
                   why_not_sums,
                   [](const SddmmProblem& problem) {
                     return predict_edge_sums_us(problem, device_traits(problem.device));
                   },
                   [](const SddmmProblem& problem) -> std::unique_ptr<const PreparedSddmm> {
                     return std::make_unique<CudaEdgeSums>(problem);
                   }});
}

}  // namespace tessera::ops
