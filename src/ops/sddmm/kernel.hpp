// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "ops/plan/cost_formula.hpp"
#include "ops/plan/registry.hpp"
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

inline PassSizes sizes_of(const SddmmProblem& problem) {
  return {problem.graph, tiles::Side::forward, problem.features, problem.precision};
}

inline std::int64_t element_bytes(const SddmmProblem& problem) {
  return static_cast<std::int64_t>(bytes_per_element(problem.precision));
}
/// Features of a head.
inline std::int64_t head_width(const SddmmProblem& problem) {
  return problem.features / std::max<std::int64_t>(1, problem.heads);
}
/// Bytes of a head of a row.
inline std::int64_t head_bytes(const SddmmProblem& problem) {
  return head_width(problem) * element_bytes(problem);
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

}  // namespace tessera::ops
