// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/nn/gat.hpp"

namespace tessera::nn {

/// "GAT(1433, 8 heads x 8, attention dropout 0.6, elu)".
std::string describe_attention(const char* name, const GatOptions& options);

}  // namespace tessera::nn
