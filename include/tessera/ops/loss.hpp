// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "tessera/core/device.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/operand.hpp"

/// Losses over chosen rows, as means, with their gradients in the same pass. A row chosen twice
/// counts twice. `grad_logits` may be the memory of `logits`, or absent; if present it is written
/// whole: 0 in rows that were not chosen. fp64, fp32 or bf16 on the CPU; fp32, bf16 or fp16 on a
/// GPU.
namespace tessera::ops {

class CallChain;

struct LossOptions {
  /// Classes: what a row of each of them counts, of which the mean is; empty: 1.
  std::span<const float> class_weights = {};
  /// This share of a row's weight is not wanted of its class but of all alike; of a yes or no, half
  /// of it is wanted of the other answer.
  double smoothing = 0;
};

/// What a number d beside the one that is wanted costs, as torch has it.
enum class NumberLoss {
  squared,   ///< d^2
  absolute,  ///< |d|
  huber,     ///< d^2 / 2 where |d| is below delta, else delta * (|d| - delta / 2)
};

const char* to_string(NumberLoss kind) noexcept;
/// An unknown name is an `invalid_argument` error that lists those there are.
NumberLoss parse_number_loss(const std::string& text);

/// What is wanted of the chosen rows: checked once and kept where the loss is computed, so that
/// `loss` itself neither copies nor waits. Copied in the order of the place's stream: a loss on
/// another stream must come after that.
class LossTargets {
 public:
  /// One class per row of logits. A chosen row without a label (-1) or with a class out of range is
  /// an error.
  static LossTargets classes(std::span<const std::int64_t> labels,
                             std::span<const std::int64_t> rows, std::int64_t num_classes,
                             const Place& place = {}, const LossOptions& options = {});
  /// Yes or no for every element: 1 or 0; anything else in a chosen row is an error,
  /// as weights of classes are.
  static LossTargets binary(MatrixView<const float> targets, std::span<const std::int64_t> rows,
                            const Place& place = {}, const LossOptions& options = {});
  /// A number for every element, or not-a-number where none is known: such an element plays no part
  /// and has gradient 0. An infinite one in a chosen row is an error, as a `huber_delta` is that is
  /// not above 0; only `huber` looks at it.
  static LossTargets numbers(MatrixView<const float> targets, std::span<const std::int64_t> rows,
                             NumberLoss kind, const Place& place = {}, double huber_delta = 1);

  struct State;
  explicit LossTargets(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const State& state() const noexcept { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

/// The mean over the chosen rows of -log softmax(logits[row])[class], or over their elements of the
/// binary cross-entropy of sigmoid(logits), computed without overflow, or over all their numbers
/// that are wanted of what the difference costs. It is written to `value`, in the memory of the
/// targets' device. No rows, or no numbers, give 0. `grad_sums`, 1 x cols, if there is one, gets
/// the sums of the columns of `grad_logits`: the gradient of a bias. With a chain
/// (detail/ops/call_chain.hpp) it runs when that does.
void loss(ConstOperand logits, const LossTargets& targets, Operand grad_logits, double* value,
          Stream stream = {}, const DenseWorkspace* workspace = nullptr, Operand grad_sums = {},
          CallChain* chain = nullptr);

/// The same at once, for those who need it once: prepares the targets and waits for the value.
double cross_entropy(ConstOperand logits, std::span<const std::int64_t> labels,
                     std::span<const std::int64_t> rows, Operand grad_logits, Device device = {},
                     Stream stream = {}, const DenseWorkspace* workspace = nullptr);
double binary_cross_entropy(ConstOperand logits, MatrixView<const float> targets,
                            std::span<const std::int64_t> rows, Operand grad_logits,
                            Device device = {}, Stream stream = {},
                            const DenseWorkspace* workspace = nullptr);

}  // namespace tessera::ops
