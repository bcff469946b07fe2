// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/ops/operand.hpp"

namespace tessera::ops {

/// How a raw score becomes a score: f(scale * raw + term), f = leaky_relu or nothing.
struct EdgeTermsCall {
  std::int64_t num_numbers = 0;
  std::int64_t heads = 1;
  ConstOperand raw;   ///< num_edges x heads, side by side
  ConstOperand term;  ///< num_edges x heads
  double scale = 1;
  double slope = 1;  ///< of leaky_relu; 1: nothing is done to what was summed
};

/// The form gatv2, where an edge has as many numbers as a vertex: the score of a head is the sum of
/// vector * leaky_relu(raw + term) over its features.
struct VectorTermsCall {
  std::int64_t heads = 1;
  ConstOperand raw;     ///< num_edges x features, side by side
  ConstOperand term;    ///< num_edges x features
  ConstOperand vector;  ///< 1 x features
  double slope = 1;

  /// The gradient of the vector is summed over so many pieces of the edges, and then over them.
  static constexpr std::int64_t most_pieces = 1024;
  static constexpr std::int64_t least_edges = 64;  ///< of a piece
  static std::int64_t num_pieces(std::int64_t edges) {
    const std::int64_t pieces = (edges + least_edges - 1) / least_edges;
    return pieces < most_pieces ? pieces : most_pieces;
  }
};

/// Where gradients of the form gatv2 go.
struct VectorTermsGradients {
  Operand raw;             ///< the memory of the raw sums: both in one place
  Operand term = {};       ///< absent: not wanted
  Operand vector = {};     ///< absent: not wanted
  double* sums = nullptr;  ///< room for num_pieces x features
};

}  // namespace tessera::ops
