// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/ops/evaluation.hpp"
#include "tessera/ops/loss.hpp"
#include "tessera/train/numbers.hpp"
#include "tessera/train/problem.hpp"

/// The numbers of a problem: where they come from, and how they are learned.
namespace tessera::train {

/// What the data says that can be predicted as numbers: its targets, or else classes that are
/// numbers or are called so. None: there are no labels. Classes that are called otherwise are an
/// `invalid_argument` error.
Targets numbers_of(const Dataset& dataset, bool graph_task);

/// Takes them for a problem. Throws where there are none.
void take_numbers(const Dataset& dataset, Problem& problem);

/// Leaves items of which no number is known out of the splits that the data has.
void leave_out_unknown(Problem& problem);

/// What outputs mean where these items are trained on. Throws `invalid_argument` where they say
/// nothing of a target, or the same.
NumberOutputs number_outputs(const Problem& problem, const Split& split,
                             const NumberOptions& options);

/// What is learned of numbers.
struct NumberLearning {
  NumberOutputs outputs;
  NumberOptions options;

  ops::LossTargets loss_targets(const Matrix<float>& numbers, std::span<const std::int64_t> rows,
                                const Place& place) const;
  ops::EvaluationTargets evaluation_targets(const Matrix<float>& numbers,
                                            const ops::EvaluatedRows& rows,
                                            const Place& place) const;
};

/// A matrix of outputs becomes what they mean.
void give_units(const NumberOutputs& outputs, MatrixView<float> values);

}  // namespace tessera::train
