// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/nn/bit_network.hpp"
#include "tessera/nn/sequential.hpp"

namespace tessera::nn {

/// What a stack with few bits computes outside training, as products of codes with the ranges of
/// its last pass: the steps up to the first layer that is computed in floating point. Throws
/// `unsupported` for nodes that have no form in integers. `is_sparse`: of the features of that
/// pass.
BitSteps bit_steps_of(Sequential& stack, bool is_sparse);

}  // namespace tessera::nn
