// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/core/device.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/ops/plan.hpp"
#include "tessera/ops/step_clock.hpp"

/// attention: scores, softmax over each target's sources, dropout and the weighted sum, in one pass
/// that keeps nothing of the size of edges x features.
///
///     O[i][h] = sum over j in row i of  drop(softmax_j S[i][j][h]) * V[j][h]
///
/// with w = features / heads numbers a head, and
///
///     gat    S = leaky_relu(target[i][h] + source[j][h])            one number a head and vertex
///     gatv2  S = a[h] . leaky_relu(target[i][h] + source[j][h])     w numbers a head and vertex
///     dot    S = scale * target[i][h] . source[j][h]                w numbers a head and vertex
///     cosine S = factor * cos(value[i], value[j])                   AGNN: one head, a square graph
///
/// With `edge_terms`, each edge brings a number for each head (gatv2: for each feature) to what is
/// summed inside of the score: leaky_relu(target + source + term), scale * target . source + term.
///
/// A cosine takes rows shorter than 1e-12 for that long; its factor was learned, and lies on the
/// device.
/// The graph's values and scales play no part.
namespace tessera::ops {

enum class AttentionForm { gat, gatv2, dot, cosine };

const char* to_string(AttentionForm form) noexcept;

struct AttentionOptions : PlanOptions {
  AttentionForm form = AttentionForm::gat;
  Precision precision = Precision::fp32;
  std::int64_t heads = 1;
  std::int64_t features = 0;  ///< width of V and O: heads * w
  double negative_slope = 0.2;
  /// Share of edge weights set to 0 in training; the rest is divided by 1 - dropout.
  double dropout = 0;
  /// Whether runs bring terms of edges; not in the form cosine.
  bool edge_terms = false;

  friend bool operator==(const AttentionOptions&, const AttentionOptions&) = default;
};

using AttentionPlan = Plan<AttentionOptions>;

AttentionPlan plan_attention(const Graph& graph, const AttentionOptions& options);

struct AttentionInputs {
  ConstOperand target;       ///< num_rows x heads (gat) or x features; cosine: none
  ConstOperand source;       ///< num_cols x heads (gat) or x features; cosine: none
  ConstOperand value;        ///< num_cols x features
  ConstOperand vector = {};  ///< gatv2: a, 1 x features; cosine: the factor, 1 x 1
  double scale = 1;          ///< dot
  /// Which weights fall to dropout: element = CSR position * heads + head. Unused when dropout is
  /// 0.
  Random random = Random(0);
  /// If there is one, in the memory of the device: its step takes the place of `random`'s.
  const StepClock* clock = nullptr;
  /// Cosine, for the backward pass: what the forward run of the same plan wrote. Absent: the
  /// lengths are computed again.
  ConstOperand inverse_lengths = {};
  /// Where the plan has edge terms: num_edges x heads (gatv2: x features) in CSR order.
  ConstOperand edge_term = {};
};

struct AttentionOutputs {
  Operand output;  ///< num_rows x features
  /// What backward needs, num_rows x heads, fp64 where the plan is, else fp32: the log of the sum
  /// of exponentials, with the maximum inside; -inf for a row without edges. Absent: not kept.
  Operand log_sum = {};
  /// Cosine: room for the inverse lengths of the values, 1 x num_cols in the type of `log_sum`, for
  /// kernels that have them. Absent: not kept.
  Operand inverse_lengths = {};
};

void run(const AttentionPlan& plan, const AttentionInputs& inputs, const AttentionOutputs& outputs,
         Stream stream = {}, Workspace workspace = {});

struct AttentionGradOutputs {
  Operand target = {};  ///< each absent one is not computed
  Operand source = {};
  Operand value = {};  ///< of a cosine: from all that the values do, as scores and as values
  Operand vector = {};
  double* scale = nullptr;  ///< where the plan's device writes: GPU memory on a GPU
  Operand edge_term = {};   ///< where the plan has edge terms, which have no gradient of the scale
};

/// `inputs`, `output` and `log_sum` as in the forward run of a plan made with `backward`. Where
/// `value` and `source` are the same matrix (GATv2), the caller adds the two gradients.
void run_backward(const AttentionPlan& plan, const AttentionInputs& inputs, ConstOperand output,
                  ConstOperand log_sum, ConstOperand grad_output,
                  const AttentionGradOutputs& gradients, Stream stream = {},
                  Workspace workspace = {});

/// The weights after softmax and before dropout, num_edges x heads in CSR order, for those who want
/// to look at them.
void attention_weights(const AttentionPlan& plan, const AttentionInputs& inputs,
                       ConstOperand log_sum, Operand weights, Stream stream = {},
                       Workspace workspace = {});

}  // namespace tessera::ops
