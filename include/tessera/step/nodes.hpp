// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/ops/activation.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/messages.hpp"
#include "tessera/ops/rounding.hpp"
#include "tessera/ops/spmm.hpp"
#include "tessera/step/program.hpp"
#include "tessera/step/rounder.hpp"
#include "tessera/step/topology.hpp"

/// What a step computes, a function for each kind of node: it appends the node and returns its
/// value.
namespace tessera::step {

class Pass;
class Shapes;

/// y = x W^T of a dense or a sparse x; W is out x in, as in PyTorch.
Value linear(Program& program, Value x, Value weight);
/// y = x + bias, a row of numbers.
Value add_bias(Program& program, Value x, Value bias);
struct ActivationKind {
  ops::Activation activation = ops::Activation::none;
  double slope = 0.01;  ///< leaky_relu
  double alpha = 1;     ///< elu
};
Value activate(Program& program, Value x, const ActivationKind& kind);
/// Sets a share of the elements to 0 and divides the rest by 1 - share. `number` tells the draws of
/// one step apart (`Context::random`).
Value dropout(Program& program, Value x, double share, std::uint32_t number);

/// Which product with a graph is meant: the matrix is what `derivation` makes of the graph.
struct Aggregation {
  Derivation derivation = as_given;
  ops::Reduction reduction = ops::Reduction::sum;
  int graph = 0;  ///< among those that the step is given

  friend bool operator==(const Aggregation&, const Aggregation&) = default;
};
/// y = A x.
Value aggregate(Program& program, Value x, const Aggregation& aggregation);
/// y = A x + (1 + scale) own, of which the scale is 1 x 1.
Value aggregate_with_own(Program& program, Value x, Value own, Value scale,
                         const Aggregation& aggregation);
/// What every target sums of its sources and the edges between them (ops/messages.hpp).
struct Messages {
  ops::Message message = ops::Message::relu;
  int graph = 0;

  friend bool operator==(const Messages&, const Messages&) = default;
};
/// y[i] = the sum of m(x[j], edges[e]) over the edges e from j to i; `edges` has a row for each
/// edge of the graph, in its order, such as `Program::edge_features`.
Value messages(Program& program, Value x, Value edges, const Messages& options);
/// The same and (1 + scale) own, of which the scale is 1 x 1.
Value messages_with_own(Program& program, Value x, Value edges, Value own, Value scale,
                        const Messages& options);

/// As many of the first rows of x as the graph has.
Value first_rows(Program& program, Value x, int graph);

/// y = a + b.
Value add(Program& program, Value a, Value b);
/// y = alpha a + beta b.
Value combine(Program& program, double alpha, Value a, double beta, Value b);
/// y = alpha x.
Value scaled(Program& program, double alpha, Value x);
/// A matrix of the shape of another one, all of whose elements are `value`.
Value fill(Program& program, Value like, double value);

/// What batch norm learns and keeps, each 1 x width.
struct BatchNormValues {
  Value gamma, beta;
  Value running_mean, running_variance;  ///< `Program::state`
};
struct BatchNormKind {
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< running statistics move by this share towards the batch's
  bool training = false;
};
Value batch_norm(Program& program, Value x, const BatchNormValues& values,
                 const BatchNormKind& kind);

/// x as codes of few bits would give it back; its gradient is that of the result. The rounder lives
/// as long as the program.
struct Rounding {
  ops::RoundingRange range = ops::RoundingRange::matrix;
  /// The codes hold the column scale of what this makes of the graph; null: there is none.
  Derivation scaled_by = nullptr;
  int graph = 0;
};
Value round(Program& program, Value x, Rounder& rounder, const Rounding& rounding);

/// As many rows as a graph has, all of them 0.
Value zeros(Program& program, int graph, std::int64_t cols);

/// y[i][h] = x[i][h] . vector[h] for each of `heads` heads.
Value head_dot(Program& program, Value x, Value vector, std::int64_t heads);
/// The same with two vectors in one pass.
std::pair<Value, Value> head_dots(Program& program, Value x, Value first, Value second,
                                  std::int64_t heads);
/// y[i] = the mean over the heads of x[i][h].
Value head_mean(Program& program, Value x, std::int64_t heads);

/// Attention of each target over its sources; see ops/attention.hpp for the forms.
struct Attention {
  ops::AttentionForm form = ops::AttentionForm::gat;
  std::int64_t heads = 1;
  double negative_slope = 0.2;
  double dropout = 0;        ///< of the weights
  std::uint32_t number = 0;  ///< of dropout's draws
  Derivation derivation = pattern;
  int graph = 0;

  friend bool operator==(const Attention&, const Attention&) = default;
};
struct AttentionValues {
  Value target;       ///< scores or rows of the targets; cosine: none
  Value source;       ///< of the sources; cosine: none
  Value value;        ///< what is summed
  Value vector = {};  ///< gatv2: 1 x width; cosine: the factor, 1 x 1
};
Value attend(Program& program, const Attention& attention, const AttentionValues& values);

/// Rows drawn from normal distributions (ops/gaussian.hpp): x says means and then logarithms of
/// deviations. To the loss of a step it adds their divergence from the standard one, divided by the
/// number of rows. `number` tells the draws of one step apart.
Value gaussian(Program& program, Value x, std::uint32_t number);
/// The means alone, where nothing is learned.
Value gaussian_mean(Program& program, Value x);

/// Rows scaled to unit length.
Value unit_rows(Program& program, Value x);

/// A number for each pair that the step asks for (`Context::pairs`) and head: the dot product of
/// the rows of x at both ends.
Value pair_dot(Program& program, Value x, std::int64_t heads = 1);
/// A row for each pair: that of its source in one matrix and that of its target in another.
Value pair_sum(Program& program, Value of_sources, Value of_targets);

/// An op of one's own, given by functions.
struct CustomOp {
  std::string name;
  /// Reads `pass.in(i)` and writes `pass.out(0)`.
  std::function<void(const Pass& pass)> forward = {};
  /// Reads the gradient of the result, the result, and then what forward reads; writes the gradient
  /// of input i to `pass.out(i)`, which is absent where it is not asked for. None: the op has no
  /// gradient.
  std::function<void(const Pass& pass)> backward = {};
  /// Sets the shape of the result; none: it is that of the first input.
  std::function<void(Shapes& shapes)> shape = {};
};
Value custom(Program& program, CustomOp op, std::vector<Value> in);

/// The gradient of the loss of logits against `Context::targets`, or of pairs' scores by
/// `Context::pair_loss`, with which the gradients of a step begin; the loss itself goes to
/// `Context::loss`.
Value loss_gradient(Program& program, Value logits);

}  // namespace tessera::step
