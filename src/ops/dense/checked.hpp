// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/dense/dense_ops.hpp"
#include "ops/plan/check.hpp"

/// What several dense ops check of the options and gradients that they are given.
namespace tessera::ops {

/// What kernels need of options that make sense; others are errors.
ActivationFormula checked_formula(const Checker& check, const ActivationOptions& options);

/// Throws unless the factors give a gradient of x, in place of another, and `grad_x` is there.
/// Where the device does not multiply on its way they are multiplied into `grad_x`, which is what
/// is returned then; else nothing.
ConstOperand checked_factors(const Checker& check, const ConstOperand& x,
                             const GradientFactors& factors, const ConstOperand& grad_y,
                             const Operand& grad_x, Device device, Stream stream,
                             const DenseWorkspace* workspace);

}  // namespace tessera::ops
