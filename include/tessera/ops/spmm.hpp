// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "tessera/core/device.hpp"
#include "tessera/graph/coo.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/ops/plan.hpp"

/// spmm: every target gathers the features of its sources.
///
///     Y[i][f] = reduce over j in row i of A[i][j] * X[j][f]
///
/// An empty row gives 0 under every reduction. For max and min the lowest source wins a tie.
namespace tessera::ops {

enum class Reduction { sum, mean, max, min };

const char* to_string(Reduction reduction) noexcept;
Reduction parse_reduction(const std::string& text);

/// What becomes of a row after its reduction, before it is stored:
///
///     Y[i][f] = drop(activate(reduced[i][f] + (1 + residual_scale) * residual[i][f] + bias[f]))
///
/// Activations and dropout are those of `bias_activation_dropout`, and the same elements fall:
/// number i * features + f. An empty row is 0 before this. A backward pass takes the gradient of
/// what was reduced.
struct SpmmEpilogue {
  bool bias = false;      ///< runs bring a bias of 1 x features, stored as X is
  bool residual = false;  ///< runs bring a matrix of the shape of Y, stored as X is
  /// Runs bring a number for it, 1 x 1 and stored as X is, as a layer that learns it has it; else
  /// it is 0.
  bool residual_scale = false;
  Activation activation = Activation::none;
  double slope = 0.01;  ///< leaky_relu
  double alpha = 1;     ///< elu
  double dropout = 0;   ///< share of elements set to 0; the rest is divided by 1 - dropout
  /// How Y is stored: fp32 for 16-bit features, or 16 bits for fp32 features. Absent: as X is.
  std::optional<Precision> output = {};

  auto operator<=>(const SpmmEpilogue&) const = default;
};

struct SpmmOptions : PlanOptions {
  Reduction reduction = Reduction::sum;
  Precision precision = Precision::fp32;
  std::int64_t features = 0;  ///< width of X
  /// Whether runs may bring values of edges. Where the chosen kernel cannot take them, the plan has
  /// another for such runs.
  bool edge_values_at_run = true;
  /// Whether most runs will: kernels are then chosen, and timed, for such runs.
  bool edge_values_expected = false;
  /// Whether backward runs may ask for the gradient of edge values, which takes memory of its own
  /// on a GPU.
  bool edge_value_gradient = true;
  /// How many values an edge has, each of which weighs its own share of the features. More than one
  /// are for plain sums over a graph without weights; runs then always bring them.
  std::int64_t heads = 1;
  SpmmEpilogue epilogue = {};
  /// What becomes of dX of a sum or mean: a residual, of the shape of X, and its scale alone.
  SpmmEpilogue backward_epilogue = {};
  /// As `kernel`, for dX of the backward pass.
  std::string backward_kernel = {};

  friend bool operator==(const SpmmOptions&, const SpmmOptions&) = default;
};

using SpmmPlan = Plan<SpmmOptions>;

SpmmPlan plan_spmm(const Graph& graph, const SpmmOptions& options);

/// On edges in no order, which lie on the plan's device. A default plan makes rows of them
/// (gather-apply-reduce, `Coo::graph`). With `allow_nondeterministic` it may also add every edge to
/// its target as it comes (gather-apply-scatter, "spmm/cuda/scatter"): the cost model decides by
/// degree, width and `epochs`; naming that kernel, or another, decides it, too. Either way edge
/// values, and their gradient, come in the order of the edges; those of loops that a rule adds are
/// not among them. There is one head. `graph()` of a plan that scatters is empty.
SpmmPlan plan_spmm(const Coo& edges, const SpmmOptions& options);

struct SpmmInputs {
  ConstOperand x;  ///< num_cols x features
  /// Values of edges in CSR order (of a plan on a Coo: in its order), num_edges x heads, instead
  /// of the graph's own values; scales
  /// still apply. Absent: the graph's.
  ConstOperand edge_values = {};
  ConstOperand bias = {};            ///< where the epilogue has one: 1 x features
  ConstOperand residual = {};        ///< where the epilogue has one: num_rows x features
  ConstOperand residual_scale = {};  ///< the same: 1 x 1
  /// What dropout draws from, where the epilogue has any. If there is a clock, in the memory of the
  /// plan's device, its step takes the place of `random`'s.
  Random random = Random(0);
  const StepClock* clock = nullptr;
};

struct SpmmOutputs {
  Operand y;  ///< num_rows x features, in the epilogue's output type
  /// For max and min, optionally: the winning source of every element (-1 for an empty row), which
  /// the backward pass needs.
  MatrixView<VertexId> winners = {};
};

void run(const SpmmPlan& plan, const SpmmInputs& inputs, const SpmmOutputs& outputs,
         Stream stream = {}, Workspace workspace = {});

struct SpmmGradInputs {
  ConstOperand grad_y;
  ConstOperand x = {};                      ///< needed for grad_edge_values
  ConstOperand edge_values = {};            ///< as in the forward run
  MatrixView<const VertexId> winners = {};  ///< needed for max and min
  ConstOperand residual = {};        ///< where the backward epilogue has one: num_cols x features
  ConstOperand residual_scale = {};  ///< the same: 1 x 1
};

struct SpmmGradOutputs {
  Operand grad_x = {};            ///< absent: not computed
  Operand grad_edge_values = {};  ///< num_edges x heads in CSR order; absent: not computed
};

/// The gradients: dX = A^T dY (sum, mean), or dY sent to the winners (max, min), and
/// dA[i][j] = dY[i] . X[j] for the edge values. The plan must have been made with `backward`.
void run_backward(const SpmmPlan& plan, const SpmmGradInputs& inputs,
                  const SpmmGradOutputs& outputs, Stream stream = {}, Workspace workspace = {});

}  // namespace tessera::ops
