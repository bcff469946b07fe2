// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/core/device.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/ops/step_clock.hpp"

namespace tessera::ops {

enum class OptimiserKind { sgd, adam, adamw };

struct OptimiserOptions {
  OptimiserKind kind = OptimiserKind::adam;
  double learning_rate = 0.01;
  double momentum = 0;  ///< sgd
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  /// Added to the gradient (sgd, adam), or taken off the parameter itself (adamw).
  double weight_decay = 0;
};

/// One step on one parameter, as PyTorch's optimisers of the same names. `step` counts from 1.
/// `first` (momentum) and `second` (adam) have the parameter's shape and start as 0; sgd without
/// momentum needs neither. fp32 or fp64 on the CPU, fp32 on a GPU; the gradient of an fp32
/// parameter may be bf16.
void optimiser_step(const OptimiserOptions& options, std::int64_t step, ConstOperand gradient,
                    Operand parameter, Operand first, Operand second, Device device = {},
                    Stream stream = {});

/// A parameter and what belongs to it, as above.
struct OptimiserTarget {
  ConstOperand gradient;
  Operand parameter;
  Operand first = {};
  Operand second = {};
  double decay = 1;  ///< what the weight decay of the options is multiplied by
  /// A bf16 copy of the parameter, written with it, for products of 16 bits. Absent: none.
  Operand rounded = {};
  /// A transposed copy of the parameter, or of `rounded` where that is there, written with it.
  /// Absent: none.
  Operand turned = {};
  bool gradient_is_turned = false;  ///< `gradient` is the transpose of what it stands for
};

/// The same on several parameters at once, by a clock in the memory of the device: it is step
/// `clock->step + 1`, at a learning rate of `clock->rate_factor` times that of the options.
void optimiser_step(const OptimiserOptions& options, const StepClock* clock,
                    std::span<const OptimiserTarget> targets, Device device = {},
                    Stream stream = {});

/// The same, and then the clock advances, in the same pass. `counter` is one number in the memory
/// of the device, 0 before the first step, which belongs to the clock. Gradients are multiplied by
/// `gradient_factor`, a number there, if there is one.
void step_and_advance(const OptimiserOptions& options, StepClock* clock, std::uint32_t* counter,
                      std::span<const OptimiserTarget> targets, Device device = {},
                      Stream stream = {}, const double* gradient_factor = nullptr);

/// Writes the factor, at most 1, that gives all gradients together a Euclidean norm of `most` at
/// most. Sums are added in double, in an order that depends on the shapes alone.
void clip_gradients(double most, double* factor, std::span<const OptimiserTarget> targets,
                    Device device = {}, Stream stream = {},
                    const DenseWorkspace* workspace = nullptr);

/// Goes on with the mean of what `values` were after each of the `clock->step` steps so far, of
/// which each counts `decay` (above 0, at most 1) times as much as the next. `mean` begins as 0.
/// Both are as parameters are.
void average(double decay, const StepClock* clock, ConstOperand values, Operand mean,
             Device device = {}, Stream stream = {});

}  // namespace tessera::ops
