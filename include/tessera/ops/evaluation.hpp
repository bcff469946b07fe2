// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "tessera/core/device.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/loss.hpp"
#include "tessera/ops/operand.hpp"

/// How predictions do, counted where the logits are, so that a few numbers come back instead of
/// them. fp64, fp32 or bf16 on the CPU; fp32, bf16 or fp16 on a GPU.
namespace tessera::ops {

/// The rows of the three parts of a split. A row listed twice counts twice.
struct EvaluatedRows {
  std::span<const std::int64_t> train;
  std::span<const std::int64_t> validation;
  std::span<const std::int64_t> test;
};

/// What one part has. Classes: the rows whose predicted class is their label, and the others; the
/// prediction is the highest logit, the lowest class among ties, and none where a logit is not a
/// number. Yes or no for every element, where a logit above 0 says yes: the elements rightly found,
/// and those where the answer is not the target.
struct PartCounts {
  std::int64_t right = 0;
  std::int64_t wrong = 0;

  friend bool operator==(const PartCounts&, const PartCounts&) = default;
};

struct EvaluationNumbers {
  PartCounts train;
  PartCounts validation;
  PartCounts test;
  double validation_loss = 0;  ///< as `loss` over the rows of that part

  friend bool operator==(const EvaluationNumbers&, const EvaluationNumbers&) = default;
};

/// What is known of the rows: checked once and kept where the numbers are computed, as
/// `LossTargets` is.
class EvaluationTargets {
 public:
  static EvaluationTargets classes(std::span<const std::int64_t> labels, const EvaluatedRows& rows,
                                   std::int64_t num_classes, const Place& place = {});
  static EvaluationTargets binary(MatrixView<const float> targets, const EvaluatedRows& rows,
                                  const Place& place = {});
  /// Of numbers the loss alone is written: nothing is right or wrong.
  static EvaluationTargets numbers(MatrixView<const float> targets, const EvaluatedRows& rows,
                                   NumberLoss kind, const Place& place = {},
                                   double huber_delta = 1);

  struct State;
  explicit EvaluationTargets(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const State& state() const noexcept { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

/// Writes the numbers to `numbers`, in the memory of the targets' device, in one pass.
void evaluate(ConstOperand logits, const EvaluationTargets& targets, EvaluationNumbers* numbers,
              Stream stream = {}, const DenseWorkspace* workspace = nullptr);

}  // namespace tessera::ops
