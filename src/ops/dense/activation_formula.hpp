// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/ops/activation.hpp"
#include "tessera/ops/dropout.hpp"

namespace tessera::ops {

/// `ActivationOptions` as the kernels take them: plain numbers.
struct ActivationFormula {
  Activation activation = Activation::none;
  double slope = 0;
  double alpha = 0;
  bool drops = false;
  DropoutConstants dropout = {};

  bool does_nothing() const noexcept { return activation == Activation::none && !drops; }
};

/// Of options that have an activation with its numbers and a dropout.
template <class Options>
ActivationFormula formula_of(const Options& options, const Random& random = Random(0),
                             const StepClock* clock = nullptr) {
  const Dropout dropout{options.dropout, random, clock};
  return {options.activation, options.slope, options.alpha, dropout.active(), dropout.constants()};
}

}  // namespace tessera::ops
