// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/nn/config.hpp"
#include "tessera/nn/sequential.hpp"

namespace tessera::nn {

/// Adds the layers that a configuration means.
void build_stack(const ModelConfig& config, std::int64_t features, std::int64_t outputs,
                 Sequential& stack);

}  // namespace tessera::nn
