// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "tessera/core/device.hpp"
#include "tessera/ops/batch_norm.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/evaluation.hpp"
#include "tessera/ops/gemm.hpp"
#include "tessera/ops/linear.hpp"
#include "tessera/ops/loss.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/ops/optimiser.hpp"
#include "tessera/ops/rounding.hpp"
#include "tessera/ops/step_clock.hpp"

#include "ops/activation/formula.hpp"

/// Where the dense ops of all devices meet. The public functions (run.cpp of each op) check their
/// arguments and call the device's version; nothing else in the library asks which device it is.
namespace tessera::ops {

/// What is done to the columns of a matrix when it is read: each number x becomes (x - first) *
/// second + third of its column's row, rounded to what is stored, and no less than 0 with `relu`.
struct ColumnReading {
  ConstOperand columns = {};  ///< absent: nothing
  bool relu = false;
};

struct GemmCall {
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  double alpha = 1;
  ConstOperand a;
  ConstOperand b;
  double beta = 0;
  Operand c;
  std::int64_t inner = 0;
  bool allows_tf32 = false;
  ConstOperand bias = {};  ///< 1 x C's columns, added to every row; may be absent
  /// The rest only where `linear_fuses` (ops/linear.hpp).
  ColumnReading of_a = {}, of_b = {};
  Operand moments = {};
  bool relu = false;  ///< follows
};

/// y = x W^T + bias, perhaps through ReLU, and the moments of y's columns.
struct LinearCall {
  ConstOperand x, weight, bias;
  Operand y;
  bool allows_tf32 = false;
  ColumnReading of_x = {};
  Operand moments = {};
  bool relu = false;
};

/// Gradients of y = x W^T + bias; each of the three may be absent.
struct LinearGradCall {
  ConstOperand x, weight, grad_y;
  Operand grad_weight, grad_bias, grad_x;
  bool allows_tf32 = false;
  ColumnReading of_x = {};
  bool before_relu = false;  ///< as in LinearSurroundings, as the next ones
  Operand grad_x_sums = {};
  NormedGradient normed = {};
  Operand norm_sums = {};
};

/// offset, plus the element of a 1 x 1 matrix where there is one.
struct ScaleFactor {
  double offset = 0;
  ConstOperand learned = {};
};

struct BatchNormCall {
  ConstOperand x, gamma, beta;
  BatchNormOptions options;
  BatchNormState state;
  Operand y, saved_mean, saved_inverse_deviation;
  ActivationFormula formula = {};
  ConstOperand shift = {};
  ConstOperand moments = {};
  Operand columns = {};
};

struct BatchNormGradCall {
  ConstOperand x, gamma, saved_mean, saved_inverse_deviation, grad_y;
  Operand grad_x, grad_gamma, grad_beta;
  ActivationFormula formula = {};
  ConstOperand beta = {};
  Operand grad_shift = {};
  GradientFactors factors = {};
  Operand grad_columns = {};
  ConstOperand sums = {};
};

struct LossCall {
  ConstOperand x;  ///< the logits
  const LossTargets::State* targets = nullptr;
  Operand grad_x;  ///< may be absent, as its sums
  double* value = nullptr;
  Operand grad_sums = {};
};

struct RoundingCall {
  ConstOperand x;
  int bits = 8;
  RoundingRange range = RoundingRange::matrix;
  const float* ranges = nullptr;  ///< 2 for each range
  float* found_ranges = nullptr;  ///< the same memory; null: they are given
  Operand y;
  ConstOperand row_scale = {};
};

struct HeadDotsGradCall {
  ConstOperand x, first, second, grad_of_first, grad_of_second;
  Operand grad_x, grad_first, grad_second;
};

struct OptimiserCall {
  OptimiserOptions options;
  std::int64_t step = 1;
  const StepClock* clock = nullptr;          ///< if there is one, it counts instead of `step`
  std::span<const OptimiserTarget> targets;  ///< of one precision
  /// The same clock, if it is to advance when the step is done, and a number that is 0 between
  /// steps.
  StepClock* advancing = nullptr;
  std::uint32_t* counter = nullptr;
};

/// The calls that may run together with others in one launch.
using ChainCall =
    std::variant<LinearCall, LinearGradCall, BatchNormCall, BatchNormGradCall, LossCall>;

/// The dense ops of one device. Operands have been checked; they may be empty. The workspace may be
/// null on the CPU.
class DenseOps {
 public:
  virtual ~DenseOps() = default;

  virtual void gemm(const GemmCall& call, Stream stream, const DenseWorkspace* workspace) const = 0;
  virtual void linear(const LinearCall& call, Stream stream, const DenseWorkspace* workspace) const;
  /// One after the other, unless a device can do better.
  virtual void linear_backward(const LinearGradCall& call, Stream stream,
                               const DenseWorkspace* workspace) const;

  /// Whether such a call can run with others on the same rows in one launch, how many can, and the
  /// launch (ops/chain/held_calls.hpp).
  virtual bool chains(const ChainCall&) const { return false; }
  virtual std::size_t longest_chain() const { return 1; }
  virtual void run_chain(std::span<const ChainCall> calls, Stream stream,
                         const DenseWorkspace* workspace) const;

  virtual void fill(Operand y, double value, Stream stream) const = 0;
  virtual void copy(ConstOperand x, Operand y, Stream stream) const = 0;
  virtual void upload(ConstOperand x, Operand y, Stream stream) const = 0;
  virtual void download(ConstOperand x, Operand y, Stream stream) const = 0;
  virtual void transpose(ConstOperand x, Operand y, Stream stream) const = 0;
  virtual void add_scaled(const ScaleFactor& alpha, ConstOperand x, double beta, Operand y,
                          Stream stream) const = 0;
  virtual void scale_rows(ConstOperand x, ConstOperand scale, Operand y, Stream stream) const = 0;
  virtual void dot(ConstOperand x, ConstOperand y, Operand result, Stream stream,
                   const DenseWorkspace* workspace) const = 0;

  virtual void round_to_codes(const RoundingCall& call, Stream stream) const = 0;

  virtual void activate(ConstOperand x, ConstOperand bias, const ActivationFormula& formula,
                        Operand y, Stream stream) const = 0;
  virtual void activate_backward(ConstOperand x, ConstOperand bias,
                                 const ActivationFormula& formula, ConstOperand grad_y,
                                 Operand grad_x, Operand grad_bias, Stream stream,
                                 const DenseWorkspace* workspace,
                                 const GradientFactors& factors = {}) const = 0;
  /// Whether gradients may come as such factors.
  virtual bool multiplies_factors(ElementType, std::int64_t /*rows*/, std::int64_t /*k*/) const {
    return false;
  }
  virtual void row_normalise(ConstOperand x, Operand y, double epsilon, Stream stream) const = 0;
  virtual void row_normalise_backward(ConstOperand x, ConstOperand grad_y, Operand grad_x,
                                      double epsilon, Stream stream) const = 0;

  virtual void unit_rows(ConstOperand x, ConstOperand factor, Operand unit, Operand scaled,
                         double epsilon, Stream stream) const = 0;
  virtual void unit_rows_backward(ConstOperand x, ConstOperand factor, Operand grad_unit,
                                  Operand grad_scaled, Operand grad_x, double epsilon,
                                  Stream stream) const = 0;

  virtual void batch_norm(const BatchNormCall& call, Stream stream,
                          const DenseWorkspace* workspace) const = 0;
  virtual void batch_norm_backward(const BatchNormGradCall& call, Stream stream,
                                   const DenseWorkspace* workspace) const = 0;

  virtual void head_dot(ConstOperand x, ConstOperand vector, Operand y, Stream stream) const = 0;
  virtual void head_dot_backward(ConstOperand x, ConstOperand vector, ConstOperand grad_y,
                                 Operand grad_x, Operand grad_vector, Stream stream,
                                 const DenseWorkspace* workspace) const = 0;
  virtual void head_dots(ConstOperand x, ConstOperand first, ConstOperand second, Operand of_first,
                         Operand of_second, Stream stream) const = 0;
  virtual void head_dots_backward(const HeadDotsGradCall& call, Stream stream,
                                  const DenseWorkspace* workspace) const = 0;
  virtual void head_mean(ConstOperand x, Operand y, Stream stream) const = 0;
  virtual void head_mean_backward(ConstOperand grad_y, Operand grad_x, Stream stream) const = 0;

  virtual void loss(ConstOperand logits, const LossTargets::State& targets, Operand grad_logits,
                    double* value, Stream stream, const DenseWorkspace* workspace,
                    Operand grad_sums) const = 0;

  virtual void evaluate(ConstOperand logits, const EvaluationTargets::State& targets,
                        EvaluationNumbers* numbers, Stream stream,
                        const DenseWorkspace* workspace) const = 0;

  virtual void optimiser_step(const OptimiserCall& call, Stream stream) const = 0;
  virtual void advance(StepClock* clock, Stream stream) const = 0;
};

/// Whether products of many rows do what `linear_fuses` is about on a GPU.
bool cuda_linear_fuses(Device device, ElementType type);

/// The dense ops of a device. Throws `backend_unavailable` where there is no such device.
const DenseOps& dense_ops(Device device);

}  // namespace tessera::ops
