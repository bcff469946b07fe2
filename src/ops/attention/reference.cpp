// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/reference.hpp"

#include <cmath>
#include <vector>

#include "tessera/ops/dropout.hpp"

#include "core/exact_sum.hpp"
#include "ops/attention/kernel.hpp"
#include "ops/edge_softmax/reference.hpp"

namespace tessera::ops::reference {
namespace {

/// One problem, and the names of its parts.
struct Problem {
  Problem(const Graph& the_graph, const AttentionOptions& options, const AttentionInputs& inputs)
      : graph(the_graph),
        form(options.form),
        heads(options.heads),
        width(options.features / options.heads),
        slope(options.negative_slope),
        scale(inputs.scale),
        target(inputs.target.as<double>()),
        source(inputs.source.as<double>()),
        value(inputs.value.as<double>()),
        vector(inputs.vector.as<double>()),
        edge_term(inputs.edge_term.as<double>()),
        has_terms(options.edge_terms),
        dropout{options.dropout, inputs.random} {
    if (form == AttentionForm::cosine) compute_lengths();
  }

  double leaky_relu(double x) const { return x > 0 ? x : slope * x; }
  double leaky_relu_derivative(double x) const { return x > 0 ? 1 : slope; }
  double drop_factor(EdgeOffset edge, std::int64_t head) const {
    return dropout.factor(static_cast<std::uint64_t>(edge * heads + head));
  }

  /// What an edge adds inside of its score: for a head, or (gatv2) for a feature.
  double term(EdgeOffset edge, std::int64_t place) const {
    return has_terms ? edge_term(edge, place) : 0;
  }

  double score(VertexId i, VertexId j, EdgeOffset edge, std::int64_t head) const {
    if (form == AttentionForm::cosine) return vector(0, 0) * cosine(i, j);
    if (form == AttentionForm::gat) {
      return leaky_relu(target(i, head) + source(j, head) + term(edge, head));
    }
    ExactSum exact;
    for (std::int64_t f = head * width; f < (head + 1) * width; ++f) {
      exact += form == AttentionForm::dot
                   ? target(i, f) * source(j, f)
                   : vector(0, f) * leaky_relu(target(i, f) + source(j, f) + term(edge, f));
    }
    const double sum = exact.value();
    return form == AttentionForm::dot ? scale * sum + term(edge, head) : sum;
  }

  double cosine(VertexId i, VertexId j) const {
    ExactSum sum;
    for (std::int64_t f = 0; f < width; ++f) sum += unit(i, f) * unit(j, f);
    return sum.value();
  }
  double unit(VertexId i, std::int64_t f) const {
    return value(i, f) / lengths[static_cast<std::size_t>(i)];
  }
  /// Whether the length of a row depends on the row.
  bool has_length(VertexId i) const { return lengths[static_cast<std::size_t>(i)] > shortest_row; }

  void compute_lengths() {
    for (VertexId i = 0; i < graph.num_rows(); ++i) {
      ExactSum squares;
      for (std::int64_t f = 0; f < width; ++f) squares += value(i, f) * value(i, f);
      const double length = std::sqrt(squares.value());
      lengths.push_back(length < shortest_row ? shortest_row : length);
    }
  }

  const Graph& graph;
  AttentionForm form;
  std::int64_t heads, width;
  double slope, scale;
  MatrixView<const double> target, source, value, vector, edge_term;
  bool has_terms;
  Dropout dropout;
  std::vector<double> lengths;  ///< cosine: of rows of values
};

/// The softmax of one row and head before dropout, and its log of the sum of exponentials.
struct RowWeights {
  RowWeights(const Problem& problem, VertexId i, std::int64_t head) {
    EdgeOffset edge = problem.graph.row_offsets()[i];
    for (const VertexId j : problem.graph.neighbours(i)) {
      weights.push_back(problem.score(i, j, edge++, head));
    }
    log_sum = softmax(weights);
  }
  std::vector<double> weights;
  double log_sum;
};

template <class Body>
void for_each_row_and_head(const Problem& problem, Body&& body) {
  for (VertexId i = 0; i < problem.graph.num_rows(); ++i) {
    for (std::int64_t head = 0; head < problem.heads; ++head) {
      body(i, head, RowWeights(problem, i, head));
    }
  }
}

/// Gradients while they are summed; those without memory are not wanted.
struct Gradients {
  ExactSums target, source, value, vector;
  ExactSum scale;
  MatrixView<double> edge_term;
};

/// Sends dS, the gradient of one edge's score, on to what the score was made of.
void score_backward(const Problem& p, VertexId i, VertexId j, EdgeOffset edge, std::int64_t head,
                    double grad_score, Gradients& gradients) {
  const bool wants_term = gradients.edge_term.data != nullptr;
  if (wants_term && p.form == AttentionForm::dot) gradients.edge_term(edge, head) = grad_score;
  const bool one_number_a_head = p.form == AttentionForm::gat;
  const std::int64_t begin = one_number_a_head ? head : head * p.width;
  const std::int64_t end = one_number_a_head ? head + 1 : (head + 1) * p.width;
  for (std::int64_t f = begin; f < end; ++f) {
    const double t = p.target(i, f);
    const double s = p.source(j, f);
    double to_target = 0;
    double to_source = 0;
    if (p.form == AttentionForm::dot) {
      to_target = grad_score * p.scale * s;
      to_source = grad_score * p.scale * t;
      gradients.scale += grad_score * t * s;
    } else {
      const double a = one_number_a_head ? 1 : p.vector(0, f);
      const double inside = t + s + p.term(edge, f);
      to_target = to_source = grad_score * a * p.leaky_relu_derivative(inside);
      if (wants_term) gradients.edge_term(edge, f) = to_target;
      if (p.form == AttentionForm::gatv2) {
        gradients.vector.add(0, f, grad_score * p.leaky_relu(inside));
      }
    }
    gradients.target.add(i, f, to_target);
    gradients.source.add(j, f, to_source);
  }
}

/// The same for a cosine: what goes to a row is at right angles to it.
void cosine_backward(const Problem& p, VertexId i, VertexId j, double grad_score,
                     Gradients& gradients) {
  const double cosine = p.cosine(i, j);
  gradients.vector.add(0, 0, grad_score * cosine);
  const auto add = [&](VertexId to, VertexId other) {
    const double length = p.lengths[static_cast<std::size_t>(to)];
    for (std::int64_t f = 0; f < p.width; ++f) {
      const double along = p.has_length(to) ? cosine * p.unit(to, f) : 0;
      gradients.value.add(to, f, grad_score * p.vector(0, 0) * (p.unit(other, f) - along) / length);
    }
  };
  add(i, j);
  add(j, i);
}

/// One row and head: dP = dO . V, D = sum of P f dP, dS = P (f dP - D), dV = P f dO, where f is
/// what dropout multiplies a weight by.
void row_backward(const Problem& p, VertexId i, std::int64_t head, const RowWeights& row,
                  MatrixView<const double> grad_output, Gradients& gradients) {
  const auto sources = p.graph.neighbours(i);
  const EdgeOffset first = p.graph.row_offsets()[i];
  std::vector<double> grad_weights(sources.size(), 0.0);
  ExactSum exact;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const double factor = p.drop_factor(first + static_cast<EdgeOffset>(k), head);
    ExactSum product;
    for (std::int64_t f = head * p.width; f < (head + 1) * p.width; ++f) {
      product += grad_output(i, f) * p.value(sources[k], f);
      gradients.value.add(sources[k], f, row.weights[k] * factor * grad_output(i, f));
    }
    grad_weights[k] = factor * product.value();
    exact += row.weights[k] * grad_weights[k];
  }
  const double sum = exact.value();
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const double grad_score = row.weights[k] * (grad_weights[k] - sum);
    if (p.form == AttentionForm::cosine) {
      cosine_backward(p, i, sources[k], grad_score, gradients);
    } else {
      score_backward(p, i, sources[k], first + static_cast<EdgeOffset>(k), head, grad_score,
                     gradients);
    }
  }
}

}  // namespace

void attention(const Graph& graph, const AttentionOptions& options, const AttentionInputs& inputs,
               const AttentionOutputs& outputs) {
  const Problem p(graph, options, inputs);
  ExactSums output(outputs.output.as<double>());
  for_each_row_and_head(p, [&](VertexId i, std::int64_t head, const RowWeights& row) {
    if (!outputs.log_sum.absent()) outputs.log_sum.as<double>()(i, head) = row.log_sum;
    const auto sources = graph.neighbours(i);
    for (std::size_t k = 0; k < sources.size(); ++k) {
      const EdgeOffset edge = graph.row_offsets()[i] + static_cast<EdgeOffset>(k);
      const double weight = row.weights[k] * p.drop_factor(edge, head);
      for (std::int64_t f = head * p.width; f < (head + 1) * p.width; ++f) {
        output.add(i, f, weight * p.value(sources[k], f));
      }
    }
  });
  output.store();
}

void attention_backward(const Graph& graph, const AttentionOptions& options,
                        const AttentionInputs& inputs, ConstOperand grad_output,
                        const AttentionGradOutputs& gradients) {
  const Problem p(graph, options, inputs);
  Gradients sums{ExactSums(gradients.target.as<double>()),
                 ExactSums(gradients.source.as<double>()),
                 ExactSums(gradients.value.as<double>()),
                 ExactSums(gradients.vector.as<double>()),
                 {},
                 gradients.edge_term.as<double>()};
  for_each_row_and_head(p, [&](VertexId i, std::int64_t head, const RowWeights& row) {
    row_backward(p, i, head, row, grad_output.as<double>(), sums);
  });
  for (const ExactSums* some : {&sums.target, &sums.source, &sums.value, &sums.vector}) {
    some->store();
  }
  if (gradients.scale != nullptr) *gradients.scale = sums.scale.value();
}

void attention_weights(const Graph& graph, const AttentionOptions& options,
                       const AttentionInputs& inputs, Operand weights) {
  const Problem p(graph, options, inputs);
  for_each_row_and_head(p, [&](VertexId i, std::int64_t head, const RowWeights& row) {
    for (std::size_t k = 0; k < row.weights.size(); ++k) {
      weights.as<double>()(graph.row_offsets()[i] + static_cast<EdgeOffset>(k), head) =
          row.weights[k];
    }
  });
}

}  // namespace tessera::ops::reference
