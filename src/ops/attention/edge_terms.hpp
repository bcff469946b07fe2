// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/ops/dropout.hpp"
#include "tessera/ops/operand.hpp"

#include "ops/attention/edge_terms_call.hpp"
#include "ops/edge_softmax/kernel.hpp"

/// What attention with a term for each edge does to its numbers (one for each edge and head, CSR
/// order, side by side) between the kernels of other ops.
namespace tessera::ops {

/// The functions of one device. Operands are fp32, on a CPU fp64, too.
struct EdgeTermOps {
  /// scores = f(scale * raw + term), side by side.
  void (*add)(const EdgeTermsCall& terms, const Operand& scores, Stream stream);
  /// `gradients` of scores, side by side, become those of raw scores; `of_terms` gets those of the
  /// terms, if it is there.
  void (*differentiate)(const EdgeTermsCall& terms, const Operand& gradients,
                        const Operand& of_terms, Stream stream);
  /// The same two in the form gatv2.
  void (*score_by_vector)(const VectorTermsCall& terms, const Operand& scores, Stream stream);
  void (*differentiate_by_vector)(const VectorTermsCall& terms, const ConstOperand& of_scores,
                                  const VectorTermsGradients& gradients, Stream stream);
  /// Numbers of edges, whose rows may lie apart.
  void (*copy)(const ConstOperand& from, const Operand& to, Stream stream);
  /// Numbers of edges, side by side, times the factors of dropout.
  void (*drop)(const Operand& numbers, const DropoutConstants& dropout, Stream stream);
  /// Scores become weights; `log_sum`, if it is there, gets the log of the sum of exponentials of
  /// each row and head.
  void (*softmax)(const PreparedEdgeSoftmax& softmax, const Graph& graph, const Operand& scores,
                  const Operand& log_sum, Stream stream, const WorkspaceView& workspace);
};

const EdgeTermOps& cpu_edge_term_ops();
void score_by_vector_on_cpu(const VectorTermsCall& terms, const Operand& scores, Stream stream);
void differentiate_by_vector_on_cpu(const VectorTermsCall& terms, const ConstOperand& of_scores,
                                    const VectorTermsGradients& gradients, Stream stream);
const EdgeTermOps& cuda_edge_term_ops();  // of a build with CUDA

}  // namespace tessera::ops
