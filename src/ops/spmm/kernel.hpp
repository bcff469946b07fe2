// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ops/activation/formula.hpp"
#include "ops/registry.hpp"
#include "ops/workspace.hpp"
#include "tessera/graph/coo.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera::ops {

/// The product itself, or its gradient with respect to X: A^T dY for a sum or mean, dY sent to the
/// winners for max and min.
enum class SpmmPass { forward, backward };

struct SpmmProblem {
  Graph graph;
  /// The matrix as edges in no order, in place of the graph; kernels on rows never see it.
  std::optional<Coo> edges = {};
  Reduction reduction = Reduction::sum;
  Precision precision = Precision::fp32;
  std::int64_t features = 0;
  SpmmPass pass = SpmmPass::forward;
  /// Edge values are num_edges x heads; each head weighs its own share of the features.
  std::int64_t heads = 1;
  /// x has one row per edge in CSR order, not one per source; nothing is weighted.
  bool edge_features = false;
  Device device = {};
  MemoryResource* memory = nullptr;  ///< as in PlanOptions
  Stream stream = {};
  bool edge_values_at_run = true;     ///< whether a call may have edge values
  bool edge_values_expected = false;  ///< whether those that the kernel is chosen for have them
  bool own_weights_at_run = true;     ///< whether a call may come without
  /// Whether, in those calls, every row of x and y begins on a 16-byte boundary.
  bool aligned = true;
  /// Whether the calls are few, so that they do not pay for arrays of the size of the graph.
  bool occasional = false;
  /// Whether a kernel may look for another order of rows, which takes seconds (row_order.hpp).
  bool reorders = false;
  SpmmEpilogue epilogue = {};
  std::int64_t epochs = 100;  ///< as in PlanOptions

  Place place() const { return {device, memory, stream}; }
  void set_place(const Place& place) {
    device = place.device;
    memory = place.memory;
    stream = place.stream;
  }

  /// How Y is stored.
  Precision output() const noexcept { return epilogue.output.value_or(precision); }
  /// Whether sums are stored as they are, in the type of X.
  bool is_plain() const noexcept {
    SpmmEpilogue same;
    same.output = epilogue.output;
    return epilogue == same && output() == precision;
  }
};

inline CostShape cost_shape(const SpmmProblem& problem) {
  const Graph& graph = problem.graph;
  const VertexId rows = problem.pass == SpmmPass::forward ? graph.num_rows() : graph.num_cols();
  const auto bytes = static_cast<int>(bytes_per_element(problem.precision));
  return {static_cast<double>(graph.num_edges()) / std::max(1, rows),
          static_cast<double>(problem.features) * bytes, bytes};
}

/// The operands of a run, already checked. In a backward pass `x` is dY, `y` is dX.
struct SpmmCall {
  ConstOperand x;
  ConstOperand edge_values;           ///< absent: the graph's own
  MatrixView<const VertexId> won_by;  ///< backward of max and min
  Operand y;
  MatrixView<VertexId> winners;  ///< forward of max and min; no memory: not wanted
  ConstOperand bias = {};
  ConstOperand residual = {};
  ConstOperand residual_scale = {};
  ActivationFormula formula = {};  ///< activation and dropout of the epilogue
};

/// Throws unless an epilogue's numbers and types are such as kernels can have.
void check_epilogue(const SpmmOptions& options);

/// What a plan keeps of a kernel.
class PreparedSpmm {
 public:
  virtual ~PreparedSpmm() = default;
  virtual void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const = 0;
  /// What a run needs. On the CPU it is the kernel's own affair.
  virtual WorkspaceNeed workspace() const { return {}; }
  /// What a plan's explanation says of it besides why it was chosen; begins with "; " or is empty.
  virtual std::string note() const { return {}; }
  /// What it keeps for its runs, on the CPU.
  virtual std::int64_t own_bytes() const noexcept { return 0; }
};

using SpmmKernel = Kernel<SpmmProblem, PreparedSpmm>;

/// Every kernel of this build.
std::span<const SpmmKernel> spmm_kernels();

std::span<const SpmmKernel> cpu_spmm_kernels();

}  // namespace tessera::ops
