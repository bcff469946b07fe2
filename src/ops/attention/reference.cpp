// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/reference.hpp"

#include <algorithm>
#include <vector>

#include "tessera/ops/dropout.hpp"

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
        dropout{options.dropout, inputs.random} {}

  double leaky_relu(double x) const { return x > 0 ? x : slope * x; }
  double leaky_relu_derivative(double x) const { return x > 0 ? 1 : slope; }
  double drop_factor(EdgeOffset edge, std::int64_t head) const {
    return dropout.factor(static_cast<std::uint64_t>(edge * heads + head));
  }

  double score(VertexId i, VertexId j, std::int64_t head) const {
    if (form == AttentionForm::gat) return leaky_relu(target(i, head) + source(j, head));
    double sum = 0;
    for (std::int64_t f = head * width; f < (head + 1) * width; ++f) {
      sum += form == AttentionForm::dot ? target(i, f) * source(j, f)
                                        : vector(0, f) * leaky_relu(target(i, f) + source(j, f));
    }
    return form == AttentionForm::dot ? scale * sum : sum;
  }

  const Graph& graph;
  AttentionForm form;
  std::int64_t heads, width;
  double slope, scale;
  MatrixView<const double> target, source, value, vector;
  Dropout dropout;
};

/// The softmax of one row and head before dropout, and its log of the sum of exponentials.
struct RowWeights {
  RowWeights(const Problem& problem, VertexId i, std::int64_t head) {
    for (const VertexId j : problem.graph.neighbours(i)) {
      weights.push_back(problem.score(i, j, head));
    }
    log_sum = softmax(weights);
  }
  std::vector<double> weights;
  double log_sum;
};

void fill_zero(MatrixView<double> matrix) {
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    std::fill_n(matrix.row(i), matrix.cols, 0.0);
  }
}

template <class Body>
void for_each_row_and_head(const Problem& problem, Body&& body) {
  for (VertexId i = 0; i < problem.graph.num_rows(); ++i) {
    for (std::int64_t head = 0; head < problem.heads; ++head) {
      body(i, head, RowWeights(problem, i, head));
    }
  }
}

/// Gradients as views; those without data are not wanted.
struct Gradients {
  MatrixView<double> target, source, value, vector;
  double* scale;
};

/// Sends dS, the gradient of one edge's score, on to what the score was made of.
void score_backward(const Problem& p, VertexId i, VertexId j, std::int64_t head, double grad_score,
                    const Gradients& gradients) {
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
      if (gradients.scale != nullptr) *gradients.scale += grad_score * t * s;
    } else {
      const double a = one_number_a_head ? 1 : p.vector(0, f);
      to_target = to_source = grad_score * a * p.leaky_relu_derivative(t + s);
      if (gradients.vector.data != nullptr) {
        gradients.vector(0, f) += grad_score * p.leaky_relu(t + s);
      }
    }
    if (gradients.target.data != nullptr) gradients.target(i, f) += to_target;
    if (gradients.source.data != nullptr) gradients.source(j, f) += to_source;
  }
}

/// One row and head: dP = dO . V, D = sum of P f dP, dS = P (f dP - D), dV = P f dO, where f is
/// what dropout multiplies a weight by.
void row_backward(const Problem& p, VertexId i, std::int64_t head, const RowWeights& row,
                  MatrixView<const double> grad_output, const Gradients& gradients) {
  const auto sources = p.graph.neighbours(i);
  const EdgeOffset first = p.graph.row_offsets()[i];
  std::vector<double> grad_weights(sources.size(), 0.0);
  double sum = 0;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const double factor = p.drop_factor(first + static_cast<EdgeOffset>(k), head);
    for (std::int64_t f = head * p.width; f < (head + 1) * p.width; ++f) {
      grad_weights[k] += grad_output(i, f) * p.value(sources[k], f);
      if (gradients.value.data != nullptr) {
        gradients.value(sources[k], f) += row.weights[k] * factor * grad_output(i, f);
      }
    }
    grad_weights[k] *= factor;
    sum += row.weights[k] * grad_weights[k];
  }
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const double grad_score = row.weights[k] * (grad_weights[k] - sum);
    score_backward(p, i, sources[k], head, grad_score, gradients);
  }
}

}  // namespace

void attention(const Graph& graph, const AttentionOptions& options, const AttentionInputs& inputs,
               const AttentionOutputs& outputs) {
  const Problem p(graph, options, inputs);
  const auto output = outputs.output.as<double>();
  fill_zero(output);
  for_each_row_and_head(p, [&](VertexId i, std::int64_t head, const RowWeights& row) {
    if (!outputs.log_sum.absent()) outputs.log_sum.as<double>()(i, head) = row.log_sum;
    const auto sources = graph.neighbours(i);
    for (std::size_t k = 0; k < sources.size(); ++k) {
      const EdgeOffset edge = graph.row_offsets()[i] + static_cast<EdgeOffset>(k);
      const double weight = row.weights[k] * p.drop_factor(edge, head);
      for (std::int64_t f = head * p.width; f < (head + 1) * p.width; ++f) {
        output(i, f) += weight * p.value(sources[k], f);
      }
    }
  });
}

void attention_backward(const Graph& graph, const AttentionOptions& options,
                        const AttentionInputs& inputs, ConstOperand grad_output,
                        const AttentionGradOutputs& gradients) {
  const Problem p(graph, options, inputs);
  const Gradients wanted{gradients.target.as<double>(), gradients.source.as<double>(),
                         gradients.value.as<double>(), gradients.vector.as<double>(),
                         gradients.scale};
  for (const auto& matrix : {wanted.target, wanted.source, wanted.value, wanted.vector}) {
    fill_zero(matrix);
  }
  if (wanted.scale != nullptr) *wanted.scale = 0;
  for_each_row_and_head(p, [&](VertexId i, std::int64_t head, const RowWeights& row) {
    row_backward(p, i, head, row, grad_output.as<double>(), wanted);
  });
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
