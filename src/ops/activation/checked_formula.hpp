// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/activation/formula.hpp"
#include "ops/check.hpp"

namespace tessera::ops {

/// What kernels need of options that make sense; others are errors.
ActivationFormula checked_formula(const Checker& check, const ActivationOptions& options);

}  // namespace tessera::ops
