// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/nn/layer.hpp"

#include "bench/gate.hpp"

/// Layers and models have no reference of their own: the same in double precision is one.
namespace tessera::bench {

/// Gives `wide` the parameters of `narrow`.
void copy_state(nn::Layer& narrow, nn::Layer& wide);

/// Compares with fp64, relative to the largest number expected.
Gate wide_gate(const step::Tensor& computed, const step::Tensor& expected);

}  // namespace tessera::bench
