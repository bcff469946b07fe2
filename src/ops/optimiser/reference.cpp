// SPDX-License-Identifier: Apache-2.0
#include "ops/optimiser/reference.hpp"

#include <cmath>

namespace tessera::ops::reference {

void optimiser_step(const OptimiserOptions& options, std::int64_t step,
                    MatrixView<const double> gradient, MatrixView<double> parameter,
                    MatrixView<double> first, MatrixView<double> second) {
  const auto steps = static_cast<double>(step);
  const double first_correction = 1 - std::pow(options.beta1, steps);
  const double second_correction = 1 - std::pow(options.beta2, steps);
  for (std::int64_t i = 0; i < parameter.rows; ++i) {
    for (std::int64_t j = 0; j < parameter.cols; ++j) {
      double& p = parameter(i, j);
      double g = gradient(i, j);
      if (options.kind == OptimiserKind::adamw) {
        p -= options.learning_rate * options.weight_decay * p;
      } else {
        g += options.weight_decay * p;
      }
      if (options.kind == OptimiserKind::sgd) {
        if (options.momentum != 0) g = first(i, j) = options.momentum * first(i, j) + g;
        p -= options.learning_rate * g;
        continue;
      }
      double& m = first(i, j);
      double& v = second(i, j);
      m = options.beta1 * m + (1 - options.beta1) * g;
      v = options.beta2 * v + (1 - options.beta2) * g * g;
      p -= options.learning_rate * (m / first_correction) /
           (std::sqrt(v / second_correction) + options.epsilon);
    }
  }
}

}  // namespace tessera::ops::reference
