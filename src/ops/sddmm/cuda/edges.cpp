// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "cuda/rows.hpp"
#include "ops/scales.hpp"
#include "ops/sddmm/cuda/kernels.hpp"
#include "ops/sddmm/cuda/panels.hpp"
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
  if (!idle && !too_narrow) return {};
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

/// What a policy does for every edge, apart from moving rows from L2.
double working_us(const SddmmProblem& problem, const EdgesPolicy& policy,
                  std::int64_t vector_bytes) {
  constexpr double round_us = 0.6;  // one batch of loads
  // Ids and rows of a tile; a kept row is asked for only when it is needed.
  const double tile_us = policy.keeps ? 1.6 : 1.0;
  constexpr double instructions_per_us = gpu_processors * 4 * 1.7e3;
  const auto edges = static_cast<double>(problem.graph.num_edges());
  const double floats_per_vector =
      static_cast<double>(vector_bytes) / static_cast<double>(element_bytes(problem));
  const double vectors = static_cast<double>(head_width(problem)) / floats_per_vector;
  const double chunks = std::max(1.0, std::ceil(vectors / (policy.lanes * policy.vectors)));
  const double heads = static_cast<double>(problem.heads);
  const double registers = 28 + policy.vectors * floats_per_vector +
                           policy.batch * policy.vectors * 4.0 * (policy.keeps ? 1 : 2);
  const double warps = gpu_processors * std::clamp(2048 / registers, 8.0, 64.0);
  const double tiles = std::ceil(edges / policy.tile());
  const double rounds = chunks * heads * policy.edges / policy.batch;
  const double waiting = std::ceil(tiles / warps) * (tile_us + round_us * rounds);
  // Rows in several chunks load their kept row again for each batch.
  const double again = chunks > 1 ? 1.0 / policy.batch : 0;
  const double reloading = row_bytes_of_all_edges(problem) * again / 22e6;
  const double per_edge =
      policy.vectors * (floats_per_vector * (vector_bytes > 4 ? 1.5 : 2) + (policy.keeps ? 1 : 2)) +
      14;
  const double issuing =
      tiles * heads * (chunks * policy.edges * per_edge + 30) / instructions_per_us;
  return std::max(waiting, issuing) + 0.1 * (waiting + issuing) + reloading;
}

constexpr double launch_us = 3;
constexpr double second_level_bytes_per_us = 9e6;
/// Rows that are found in L1: the loads themselves take most of the time.
constexpr double first_level_bytes_per_us = 11.5e6;

/// The cost model: rows come from L2 at its bandwidth, or at the pace of the kernel, whichever is
/// slower.
double predicted_us(const SddmmProblem& problem, const EdgesPolicy& policy,
                    std::int64_t vector_bytes) {
  const double moving = row_bytes_of_all_edges(problem) / second_level_bytes_per_us;
  const double working = working_us(problem, policy, vector_bytes);
  return launch_us + std::max(working, moving) + 0.1 * (working + moving);
}

/// By panels fewer rows come from L2, all others from L1; results are stored one by one.
double predicted_panels_us(const SddmmProblem& problem, const EdgesPolicy& policy) {
  constexpr double stores_per_us = 3e5;
  const double bytes = row_bytes_of_all_edges(problem);
  const double moving = std::max(bytes / panel_reuse(problem.graph) / second_level_bytes_per_us,
                                 bytes / first_level_bytes_per_us);
  const double storing = static_cast<double>(problem.graph.num_edges()) / stores_per_us;
  const double working = working_us(problem, policy, 16);
  return launch_us + storing + std::max(working, moving) + 0.1 * (working + moving);
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
      [](const SddmmProblem& problem) { return predicted_us(problem, vector_policies[index], 16); },
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
        return predicted_us(problem, scalar_policies[index], element_bytes(problem));
      },
      [](const SddmmProblem& problem) -> std::unique_ptr<const PreparedSddmm> {
        return std::make_unique<CudaEdgeScalars>(problem, index);
      }};
}

}  // namespace

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
