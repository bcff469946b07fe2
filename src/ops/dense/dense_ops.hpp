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

#include "ops/dense/activation_formula.hpp"

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

struct FillCall {
  Operand y;
  double value = 0;
};

/// Within a device, or between it and this process, where the call waits for what it has copied.
struct CopyCall {
  ConstOperand x;
  Operand y;
};

struct TransposeCall {
  ConstOperand x;
  Operand y;
};

/// y = (offset + learned) * x + beta * y, where `learned` is the element of a 1 x 1 matrix.
struct AddScaledCall {
  ConstOperand x;
  Operand y;
  double offset = 0, beta = 0;
  ConstOperand learned = {};  ///< may be absent
};

struct ScaleRowsCall {
  ConstOperand x, scale;
  Operand y;
};

struct DotCall {
  ConstOperand x, y;
  Operand result;
};

struct ActivationCall {
  ConstOperand x, bias;
  ActivationFormula formula;
  Operand y;
};

struct ActivationGradCall {
  ConstOperand x, bias;
  ActivationFormula formula;
  ConstOperand grad_y;
  Operand grad_x, grad_bias;  ///< each may be absent
  GradientFactors factors = {};
};

struct UnitRowsCall {
  ConstOperand x, factor;  ///< without a factor there is no `scaled`
  Operand unit, scaled;
  double epsilon;
};

/// What is added to `grad_x`, or, without a factor, written there.
struct UnitRowsGradCall {
  ConstOperand x, factor, grad_unit, grad_scaled;
  Operand grad_x;
  double epsilon;
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

/// The heads of x with one vector, or with two.
struct HeadDotsCall {
  ConstOperand x;
  ConstOperand vectors[2];
  Operand y[2];
  int count = 2;
};

struct HeadDotsGradCall {
  ConstOperand x;
  ConstOperand vectors[2];
  ConstOperand grad_y[2];
  Operand grad_x;  ///< may be absent beside one vector, as its gradient
  Operand grad_vectors[2];
  int count = 2;
};

struct HeadMeanCall {
  ConstOperand x;
  Operand y;
};

struct HeadMeanGradCall {
  ConstOperand grad_y;
  Operand grad_x;
};

struct EvaluationCall {
  ConstOperand x;  ///< the logits
  const EvaluationTargets::State* targets = nullptr;
  EvaluationNumbers* numbers = nullptr;
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
  const double* gradient_factor = nullptr;  ///< null: 1
};

struct ClipCall {
  double most = 0;
  double* factor = nullptr;
  std::span<const OptimiserTarget> targets;
};

struct AverageCall {
  double decay = 1;
  const StepClock* clock = nullptr;
  ConstOperand x;
  Operand y;  ///< the mean
};

struct AdvanceCall {
  StepClock* clock = nullptr;
};

using DenseCall =
    std::variant<GemmCall, LinearCall, LinearGradCall, FillCall, CopyCall, TransposeCall,
                 AddScaledCall, ScaleRowsCall, DotCall, ActivationCall, ActivationGradCall,
                 UnitRowsCall, UnitRowsGradCall, BatchNormCall, BatchNormGradCall, LossCall,
                 EvaluationCall, RoundingCall, HeadDotsCall, HeadDotsGradCall, HeadMeanCall,
                 HeadMeanGradCall, OptimiserCall, ClipCall, AverageCall, AdvanceCall>;

/// The calls that may run together with others in one launch.
using ChainCall =
    std::variant<LinearCall, LinearGradCall, BatchNormCall, BatchNormGradCall, LossCall>;

/// The dense ops of one device. Operands have been checked; they may be empty. The workspace may be
/// null on the CPU.
class DenseOps {
 public:
  virtual ~DenseOps() = default;

  virtual void run(const DenseCall& call, Stream stream,
                   const DenseWorkspace* workspace = nullptr) const = 0;

  /// Whether such a call can run with others on the same rows in one launch, how many can, and the
  /// launch (ops/dense/call_chain.hpp).
  virtual bool chains(const ChainCall&) const { return false; }
  virtual std::size_t longest_chain() const { return 1; }
  virtual void run_chain(std::span<const ChainCall> calls, Stream stream,
                         const DenseWorkspace* workspace) const;

  /// Whether gradients may come as such factors.
  virtual bool multiplies_factors(std::int64_t /*rows*/, std::int64_t /*k*/) const { return false; }
};

/// The dense ops of a device. Throws `backend_unavailable` where there is no such device.
const DenseOps& dense_ops(Device device);

}  // namespace tessera::ops
