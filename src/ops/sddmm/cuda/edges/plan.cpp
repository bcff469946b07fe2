// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/launch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "cuda/rows.hpp"
#include "ops/scales.hpp"
#include "ops/sddmm/cuda/edges/panels.hpp"
#include "ops/sddmm/cuda/kernels.hpp"
#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

constexpr double gpu_processors = 132;

/// Which function of a precision's tables runs.
struct Functions {
  const VectorFunctions& vectors;
  const ScalarFunctions& scalars;
  EdgesFunction sums;
};

Functions functions_of(Precision precision) {
  switch (precision) {
    case Precision::bf16: return {edge_vectors_bf16, edge_scalars_bf16, edge_sums_bf16};
    case Precision::fp16: return {edge_vectors_fp16, edge_scalars_fp16, edge_sums_fp16};
    default: return {edge_vectors_fp32, edge_scalars_fp32, edge_sums_fp32};
  }
}

std::int64_t element_bytes(const SddmmProblem& problem) {
  return static_cast<std::int64_t>(bytes_per_element(problem.precision));
}

std::int64_t head_width(const SddmmProblem& problem) { return problem.features / problem.heads; }

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

/// Enough tiles a warp that neighbouring rows meet in one block, few enough that the last blocks
/// end together.
int tiles_per_warp(EdgeOffset num_edges, int tile) {
  constexpr double resident_warps = gpu_processors * 32;
  constexpr double rounds = 4;
  const double tiles = static_cast<double>(num_edges) / tile;
  return static_cast<int>(std::clamp(tiles / (resident_warps * rounds), 1.0, 16.0));
}

/// What every kernel of sddmm keeps: the graph and its scales on the device.
class CudaSddmm : public PreparedSddmm {
 public:
  explicit CudaSddmm(const SddmmProblem& problem)
      : problem_(problem),
        rows_(cuda::device_rows(problem.graph, problem.device)),
        edge_rows_(cuda::device_edge_rows(problem.graph, problem.device)) {
    const Graph& graph = problem.graph;
    if (problem.factor == EdgeFactor::none) return;
    const SharedArray<float> row_scale =
        problem.factor == EdgeFactor::mean_scales ? mean_scale<float>(graph) : graph.row_scale();
    row_scale_ = cuda::to_device(row_scale.span(), problem.device);
    col_scale_ = cuda::to_device(graph.col_scale().span(), problem.device);
  }

  void run(const ConstOperand& u, const ConstOperand& v, const Operand& edges,
           Stream stream) const override {
    check_row_bytes("u", u);
    check_row_bytes("v", v);
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
  /// The kernels multiply an id by the distance between rows with 32 bits each.
  static void check_row_bytes(const char* name, const ConstOperand& operand) {
    const auto bytes =
        operand.stride * static_cast<std::int64_t>(bytes_per_element(operand.precision));
    if (bytes > std::numeric_limits<std::uint32_t>::max()) {
      throw Error(ErrorCode::unsupported, fmt::format("rows of {} bytes", bytes), name,
                  "use rows of less than 4 GiB");
    }
  }

  SddmmProblem problem_;
  std::shared_ptr<const cuda::DeviceRows> rows_;
  std::shared_ptr<const cuda::DeviceEdgeRows> edge_rows_;
  Buffer<float> row_scale_;
  Buffer<float> col_scale_;
};

/// Dot products by one policy for vectors, in the order of CSR or of panels. Operands that do not
/// lie on 16-byte boundaries go to the scalar policy of their width.
class CudaEdgeVectors final : public CudaSddmm {
 public:
  CudaEdgeVectors(const SddmmProblem& problem, std::size_t policy, bool by_panels)
      : CudaSddmm(problem),
        policy_(policy),
        panels_(by_panels ? device_panels(problem.graph, problem.device) : nullptr) {}

 private:
  void start(EdgesLaunch& launch, Stream stream) const override {
    const bool aligned = on_boundaries(launch.kept) && on_boundaries(launch.gathered);
    const Functions functions = functions_of(problem().precision);
    const std::size_t scalar = scalar_policy_for(launch.width);
    const EdgesPolicy& policy = aligned ? vector_policies[policy_] : scalar_policies[scalar];
    launch.tiles_per_warp = tiles_per_warp(launch.num_edges, policy.tile());
    if (panels_ != nullptr) {
      launch.order = panels_->order.data();
      std::swap(launch.kept, launch.gathered);
    }
    (aligned ? functions.vectors[policy_] : functions.scalars[scalar])(launch, stream);
  }

  bool on_boundaries(const EdgeEnd& end) const {
    return reinterpret_cast<std::uintptr_t>(end.features) % 16 == 0 &&
           end.stride * element_bytes(problem()) % 16 == 0;
  }

  std::size_t policy_;
  std::shared_ptr<const DevicePanels> panels_;
};

class CudaEdgeScalars final : public CudaSddmm {
 public:
  CudaEdgeScalars(const SddmmProblem& problem, std::size_t policy)
      : CudaSddmm(problem), policy_(policy) {}

 private:
  void start(EdgesLaunch& launch, Stream stream) const override {
    launch.tiles_per_warp = tiles_per_warp(launch.num_edges, scalar_policies[policy_].tile());
    functions_of(problem().precision).scalars[policy_](launch, stream);
  }

  std::size_t policy_;
};

class CudaEdgeSums final : public CudaSddmm {
 public:
  using CudaSddmm::CudaSddmm;

 private:
  void start(EdgesLaunch& launch, Stream stream) const override {
    functions_of(problem().precision).sums(launch, stream);
  }
};

std::string why_not_dot(const SddmmProblem& problem) {
  if (problem.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (problem.function != EdgeFunction::dot) return "dot products only";
  return {};
}

std::string why_not_vectors(const SddmmProblem& problem, const EdgesPolicy& policy) {
  if (std::string reason = why_not_dot(problem); !reason.empty()) return reason;
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

/// Panels want a row kept over many edges.
constexpr bool panels_can_use(const EdgesPolicy& policy) {
  return policy.keeps && policy.edges == policy.lanes && policy.vectors >= 4;
}

std::string why_not_panels(const SddmmProblem& problem, const EdgesPolicy& policy) {
  if (problem.graph.num_edges() > std::numeric_limits<std::uint32_t>::max()) {
    return "panels count edges with 32 bits";
  }
  if (head_width(problem) * element_bytes(problem) > 16 * policy.lanes * policy.vectors) {
    return "a row does not fit its registers";
  }
  return why_not_vectors(problem, policy);
}

std::string why_not_scalars(const SddmmProblem& problem, const EdgesPolicy& policy) {
  if (std::string reason = why_not_dot(problem); !reason.empty()) return reason;
  if (fits_vectors(problem)) return "vectors of 16 bytes are faster";
  if (policy.lanes == scalar_policies[scalar_policy_for(head_width(problem))].lanes) return {};
  return fmt::format("its {} lanes do not fit heads of {} features", policy.lanes,
                     head_width(problem));
}

double row_bytes_of_all_edges(const SddmmProblem& problem) {
  return static_cast<double>(problem.graph.num_edges()) *
         static_cast<double>(problem.features * element_bytes(problem));
}

// Fitted to timings of an H200 on 13 graphs at 16 to 256 features, with both ends from one matrix.
constexpr double launch_us = 7.6;
constexpr double memory_bytes_per_us = 4.1e6;

/// How long the warps wait for their loads, if nothing else takes time.
double waiting_us(const SddmmProblem& problem, const EdgesPolicy& policy, double chunks,
                  double floats_per_vector) {
  // One batch of loads. A kept row is asked for only when it is needed, after all others.
  const double round_us = policy.keeps ? 0.78 : 0.39;
  const double registers = 26 + policy.vectors * floats_per_vector + 3.0 * policy.batch +
                           policy.batch * policy.vectors * 4.0 * (policy.keeps ? 1 : 2) +
                           (element_bytes(problem) == 2 ? 4 : 0);
  const double blocks = std::clamp(std::floor(65536 / (registers * edges_block_threads)), 1.0, 6.0);
  const double warps = gpu_processors * edges_block_warps * blocks;
  const double tiles = std::ceil(static_cast<double>(problem.graph.num_edges()) / policy.tile());
  const double rounds = chunks * static_cast<double>(problem.heads) * policy.edges / policy.batch;
  return std::max(1.0, tiles / warps + 0.4) * round_us * rounds;
}

/// How long issuing the instructions takes, if nothing else does.
double issuing_us(const SddmmProblem& problem, const EdgesPolicy& policy, double chunks,
                  double floats_per_vector) {
  constexpr double instructions_per_us = gpu_processors * 4 * 963;
  const double tiles = std::ceil(static_cast<double>(problem.graph.num_edges()) / policy.tile());
  const double per_edge =
      policy.vectors * (1.1 * floats_per_vector + (policy.keeps ? 12 : 0)) + 19.5;
  return tiles * static_cast<double>(problem.heads) * (chunks * policy.edges * per_edge + 30) /
         instructions_per_us;
}

double source_bytes(const SddmmProblem& problem) {
  return static_cast<double>(problem.graph.num_cols()) *
         static_cast<double>(problem.features * element_bytes(problem));
}

/// Rows of V as they come for every edge: through L1, from L2, or from memory.
double moving_us(const SddmmProblem& problem) {
  constexpr double second_level_bytes = 40e6;
  const double rate = source_bytes(problem) > second_level_bytes ? 10.3e6 : 16.3e6;
  return row_bytes_of_all_edges(problem) / rate;
}

/// The slowest of the three, and a little of the others.
double predicted_us(const SddmmProblem& problem, const EdgesPolicy& policy,
                    std::int64_t vector_bytes, double moving) {
  const double floats_per_vector =
      static_cast<double>(vector_bytes) / static_cast<double>(element_bytes(problem));
  const double vectors = static_cast<double>(head_width(problem)) / floats_per_vector;
  const double chunks = std::max(1.0, std::ceil(vectors / (policy.lanes * policy.vectors)));
  constexpr double power = 3.5;
  const double sum = std::pow(waiting_us(problem, policy, chunks, floats_per_vector), power) +
                     std::pow(issuing_us(problem, policy, chunks, floats_per_vector), power) +
                     std::pow(moving, power);
  return launch_us + std::pow(sum, 1 / power);
}

/// By panels a row of V comes once for all targets of a panel that have it.
double predicted_panels_us(const SddmmProblem& problem, const EdgesPolicy& policy) {
  const double moving = std::max(moving_us(problem) / panel_reuse(problem.graph),
                                 source_bytes(problem) / memory_bytes_per_us);
  return predicted_us(problem, policy, 16, moving);
}

std::string why_not_sums(const SddmmProblem& problem) {
  if (problem.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (problem.function != EdgeFunction::add) return "sums only";
  return {};
}

double predicted_sums_us(const SddmmProblem& problem) {
  constexpr double numbers_per_us = 4e5;
  return launch_us + static_cast<double>(problem.graph.num_edges()) *
                         static_cast<double>(problem.heads) / numbers_per_us;
}

KernelInfo info_of(const char* kind, const EdgesPolicy& policy) {
  KernelInfo info;
  info.name = fmt::format("sddmm/cuda/{}_{}x{}x{}{}", kind, policy.lanes, policy.vectors,
                          policy.edges, policy.keeps ? "" : "_both");
  info.description = fmt::format(
      "equal shares of edges, {} lanes an edge with {} vectors each, {} edges in turn, {}",
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
        return predicted_us(problem, vector_policies[index], 16, moving_us(problem));
      },
      [](const SddmmProblem& problem) -> std::unique_ptr<const PreparedSddmm> {
        return std::make_unique<CudaEdgeVectors>(problem, index, false);
      }};
}

template <std::size_t index>
SddmmKernel panel_kernel() {
  KernelInfo info = info_of("panels", vector_policies[index]);
  info.description += ", edges of 64 rows ordered by source";
  return {
      info,
      [](const SddmmProblem& problem) { return why_not_panels(problem, vector_policies[index]); },
      [](const SddmmProblem& problem) {
        return predicted_panels_us(problem, vector_policies[index]);
      },
      [](const SddmmProblem& problem) -> std::unique_ptr<const PreparedSddmm> {
        return std::make_unique<CudaEdgeVectors>(problem, index, true);
      }};
}

template <std::size_t index>
void append_vector_kernels(std::vector<SddmmKernel>& table) {
  table.push_back(vector_kernel<index>());
  if constexpr (panels_can_use(vector_policies[index])) table.push_back(panel_kernel<index>());
}

template <std::size_t index>
SddmmKernel scalar_kernel() {
  return {
      info_of("scalars", scalar_policies[index]),
      [](const SddmmProblem& problem) { return why_not_scalars(problem, scalar_policies[index]); },
      [](const SddmmProblem& problem) {
        return predicted_us(problem, scalar_policies[index], element_bytes(problem),
                            moving_us(problem));
      },
      [](const SddmmProblem& problem) -> std::unique_ptr<const PreparedSddmm> {
        return std::make_unique<CudaEdgeScalars>(problem, index);
      }};
}

}  // namespace

std::unique_ptr<const PreparedSddmm> prepare_cuda_scalars(const SddmmProblem& problem) {
  return std::make_unique<CudaEdgeScalars>(problem, scalar_policy_for(head_width(problem)));
}

void append_cuda_sddmm_kernels(std::vector<SddmmKernel>& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (append_vector_kernels<i>(table), ...); }
  (std::make_index_sequence<vector_policies.size()>{});
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(scalar_kernel<i>()), ...); }
  (std::make_index_sequence<scalar_policies.size()>{});
  table.push_back({{"sddmm/cuda/sums", "a number for each lane in the order of storage", "sddmm",
                    DeviceKind::cuda, true},
                   why_not_sums,
                   predicted_sums_us,
                   [](const SddmmProblem& problem) -> std::unique_ptr<const PreparedSddmm> {
                     return std::make_unique<CudaEdgeSums>(problem);
                   }});
}

}  // namespace tessera::ops
