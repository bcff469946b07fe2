// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "ops/pairs/lists.hpp"

/// How each op runs on the CPU, and on a GPU. Operands have been checked, and are not empty; ids
/// and what is drawn have been, too, on the CPU.
namespace tessera::ops {

struct PairScoring {
  ConstOperand sources, targets, pairs;
  Operand y;
};

struct PairLossCall {
  ConstOperand scores;
  PairLossOptions options;
  Operand gradient, gradient_sum;  ///< each may be absent
  double* value = nullptr;

  std::int64_t negatives() const { return scores.rows - options.positives; }
  std::int64_t per_positive() const {
    return options.positives == 0 ? 0 : negatives() / options.positives;
  }
  /// Of what the loss is the mean, at least 1.
  double counted() const {
    const std::int64_t count = options.kind == PairLossKind::bce ? scores.rows : negatives();
    return static_cast<double>(std::max<std::int64_t>(count, 1));
  }
};

namespace on_cpu {

void choose_pairs(ConstOperand pairs, const PairBatches& batches, Operand chosen);
void draw_negatives(ConstOperand positives, const NonEdgeLists& known, const NegativeDraw& draw,
                    Operand negatives);
void list_ends(ConstOperand pairs, PairEnds::State& lists);
void pair_dot(const PairScoring& scoring);
void pair_sum(const PairScoring& scoring);
void sum_ends(const PairSum& sum);
void pair_loss(const PairLossCall& call);

}  // namespace on_cpu

namespace on_gpu {

void choose_pairs(ConstOperand pairs, const PairBatches& batches, Operand chosen, Device device,
                  Stream stream);
void draw_negatives(ConstOperand positives, const NonEdgeLists& known, const NegativeDraw& draw,
                    Operand negatives, Device device, Stream stream);
/// Takes the memory that listing needs.
void prepare_lists(PairEnds::State& lists);
void list_ends(ConstOperand pairs, PairEnds::State& lists, Stream stream);
void pair_dot(const PairScoring& scoring, Device device, Stream stream);
void pair_sum(const PairScoring& scoring, Device device, Stream stream);
void sum_ends(const PairSum& sum, Stream stream, const DenseWorkspace* workspace);
void pair_loss(const PairLossCall& call, Device device, Stream stream,
               const DenseWorkspace* workspace);

}  // namespace on_gpu

}  // namespace tessera::ops
