// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/matrix.hpp"
#include "tessera/ops/optimiser.hpp"

namespace tessera::ops::reference {

void optimiser_step(const OptimiserOptions& options, std::int64_t step,
                    MatrixView<const double> gradient, MatrixView<double> parameter,
                    MatrixView<double> first, MatrixView<double> second);

}  // namespace tessera::ops::reference
