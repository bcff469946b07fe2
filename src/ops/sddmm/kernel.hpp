// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "ops/registry.hpp"
#include "tessera/ops/sddmm.hpp"

namespace tessera::ops {

/// What every edge's number is multiplied with.
enum class EdgeFactor {
  none,
  scales,       ///< row_scale * col_scale: the gradient of a sum's edge values
  mean_scales,  ///< the same over the row's degree: that of a mean's
};

struct SddmmProblem {
  Graph graph;
  EdgeFunction function = EdgeFunction::dot;
  Precision precision = Precision::fp32;
  std::int64_t features = 0;
  std::int64_t heads = 1;
  EdgeFactor factor = EdgeFactor::none;
  Device device = {};
  MemoryResource* memory = nullptr;  ///< as in PlanOptions
  Stream stream = {};
  /// Whether, in the calls that the kernel is chosen for, operands lie as `is_aligned` says.
  bool aligned = true;
  /// Whether the calls are few, so that they do not pay for arrays of the size of the graph.
  bool occasional = false;

  Place place() const { return {device, memory, stream}; }
  void set_place(const Place& place) {
    device = place.device;
    memory = place.memory;
    stream = place.stream;
  }
};

inline CostShape cost_shape(const SddmmProblem& problem) {
  const Graph& graph = problem.graph;
  const auto bytes = static_cast<int>(bytes_per_element(problem.precision));
  return {static_cast<double>(graph.num_edges()) / std::max(1, graph.num_rows()),
          static_cast<double>(problem.features) * bytes, bytes};
}

/// Distances between the numbers of two edges that kernels on tiles compute with.
inline constexpr std::int64_t max_dot_stride = 1 << 28;

/// What a plan keeps of a kernel. Operands have been checked.
class PreparedSddmm {
 public:
  virtual ~PreparedSddmm() = default;
  virtual void run(const ConstOperand& u, const ConstOperand& v, const Operand& edges,
                   Stream stream) const = 0;
};

using SddmmKernel = Kernel<SddmmProblem, PreparedSddmm>;

/// Every kernel of this build.
std::span<const SddmmKernel> sddmm_kernels();

std::span<const SddmmKernel> cpu_sddmm_kernels();

}  // namespace tessera::ops
