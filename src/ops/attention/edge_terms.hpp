// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "tessera/graph/graph.hpp"
#include "tessera/ops/dropout.hpp"
#include "tessera/ops/operand.hpp"

/// What attention in stages does to its numbers (one for each edge and head, CSR
/// order, side by side) between the kernels of other ops.
namespace tessera::ops {

/// How a raw score becomes a score: f(scale * raw + term), f = leaky_relu or nothing. In the form
/// gatv2 an edge has as many numbers as a vertex: the score of a head is the sum of vector *
/// leaky_relu(raw + term) over its features.
struct EdgeTermsCall {
  std::int64_t heads = 1;
  ConstOperand raw;   ///< num_edges x heads (gatv2: features), side by side
  ConstOperand term;  ///< of the same shape; absent on a GPU: 0
  double scale = 1;
  double slope = 1;  ///< of leaky_relu; 1: nothing is done to what was summed
  bool is_gatv2 = false;
  ConstOperand vector;  ///< gatv2: 1 x features

  /// The gradient of the vector is summed over so many pieces of the edges, and then over them.
  static constexpr std::int64_t most_pieces = 1024;
  static constexpr std::int64_t least_edges = 64;  ///< of a piece
  static std::int64_t num_pieces(std::int64_t edges) {
    const std::int64_t pieces = (edges + least_edges - 1) / least_edges;
    return pieces < most_pieces ? pieces : most_pieces;
  }
};

/// Where gradients go.
struct EdgeTermsGradients {
  Operand raw;             ///< the memory of the scores' gradients; gatv2: of the raw sums
  Operand term;            ///< absent: not wanted
  Operand vector;          ///< gatv2; absent: not wanted
  double* sums = nullptr;  ///< gatv2: room for num_pieces x features
};

/// The backward pass of dot products without terms, on a GPU: dot products become f P, with P =
/// exp(scale * dot - log_sum) and f the factors of dropout.
struct WeightsCall {
  const void* edge_rows;  ///< what `EdgeTermOps::edge_rows` made
  Operand scores;         ///< num_edges x heads, side by side
  double scale;
  ConstOperand output, grad_output, log_sum;
  Dropout dropout;
  /// Of f P; they become those of the dot products, scale * P (f dP - dO . O). Absent: not wanted.
  Operand gradients;
  double* scale_gradient;  ///< null: not wanted
  // Room for 2 numbers for each row and head, and for parts of the gradient of the scale.
  float* row_state;
  double* scale_sums;

  static constexpr std::int64_t share = 4;  ///< numbers of a thread, which arrays are multiples of
  static constexpr std::int64_t most_scale_sums = 1056;
};

/// The functions of one device. Operands are fp32, on a CPU fp64, too.
struct EdgeTermOps {
  void (*score)(const EdgeTermsCall& terms, const Operand& scores, Stream stream);
  void (*differentiate)(const EdgeTermsCall& terms, const ConstOperand& of_scores,
                        const EdgeTermsGradients& gradients, Stream stream);
  /// Numbers of edges, side by side, times the factors of dropout.
  void (*drop)(const Operand& numbers, const DropoutConstants& dropout, Stream stream);
  // Of dot products without terms, on a GPU alone: what finds the row of an edge, made when the
  // plan is, and the backward pass of weights.
  std::shared_ptr<const void> (*edge_rows)(const Graph& graph, const Place& place);
  void (*differentiate_weights)(const WeightsCall& weights, Stream stream);
};

const EdgeTermOps& cpu_edge_term_ops();
const EdgeTermOps& cuda_edge_term_ops();  // of a build with CUDA

}  // namespace tessera::ops
