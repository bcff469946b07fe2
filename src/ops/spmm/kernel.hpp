// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ops/dense/activation_formula.hpp"
#include "ops/plan/cost_formula.hpp"
#include "ops/plan/registry.hpp"
#include "ops/plan/workspace.hpp"
#include "tessera/graph/coo.hpp"
#include "tessera/ops/spmm.hpp"
#include "tessera/tiles/tiled_graph.hpp"

namespace tessera::ops {

/// The product itself, or its gradient with respect to X: A^T dY for a sum or mean, dY sent to the
/// winners for max and min.
enum class SpmmPass { forward, backward };

/// What a pass multiplies by: A forward, A^T backward.
inline tiles::Side tile_side(SpmmPass pass) {
  return pass == SpmmPass::forward ? tiles::Side::forward : tiles::Side::transposed;
}

/// Whether elements of Y are won by a source: max and min.
inline bool has_winners(Reduction reduction) {
  return reduction == Reduction::max || reduction == Reduction::min;
}

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

  bool is_forward() const noexcept { return pass == SpmmPass::forward; }
  /// Rows of Y and of X: targets and sources forward, the other way round backward.
  VertexId num_targets() const noexcept {
    return is_forward() ? graph.num_rows() : graph.num_cols();
  }
  VertexId num_sources() const noexcept {
    return is_forward() ? graph.num_cols() : graph.num_rows();
  }
  /// Whether sums are divided by the number of their edges; its gradient is a sum of shares.
  bool divides() const noexcept { return is_forward() && reduction == Reduction::mean; }
  /// Whether the largest or smallest product is looked for; its gradient is a sum.
  bool finds_best() const noexcept { return is_forward() && has_winners(reduction); }

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

inline PassSizes sizes_of(const SpmmProblem& problem) {
  return {problem.graph, tile_side(problem.pass), problem.features, problem.precision};
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

/// Throws `unsupported` where a weight of the graph is too large for the numbers of the problem's
/// precision: then even features of 1 would give infinite results.
void check_weights_fit(const SpmmProblem& problem);

/// Throws unless an epilogue's numbers and types are such as kernels can have.
void check_epilogue(const SpmmOptions& options);

/// What a plan keeps of a kernel.
class PreparedSpmm {
 public:
  virtual ~PreparedSpmm() = default;
  virtual void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const = 0;
  /// What a run needs. On the CPU it is the kernel's own affair.
  const WorkspaceNeed& workspace() const noexcept { return workspace_; }
  /// What a plan's explanation says of it besides why it was chosen; begins with "; " or is empty.
  const std::string& note() const noexcept { return note_; }
  /// What it keeps for its runs, on the CPU.
  virtual std::int64_t own_bytes() const noexcept { return 0; }

 protected:
  WorkspaceNeed workspace_;
  std::string note_;
};

using SpmmKernel = Kernel<SpmmProblem, PreparedSpmm>;

/// Every kernel of this build.
std::span<const SpmmKernel> spmm_kernels();

}  // namespace tessera::ops
