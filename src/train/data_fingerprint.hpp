// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tessera/train/options.hpp"
#include "tessera/train/problem.hpp"

namespace tessera::train {

inline constexpr const char* fingerprint_prefix = "fingerprint.";

/// What tells this data from any other: "fingerprint.edges", "fingerprint.weights", … with sixteen
/// hexadecimal digits each. To be taken before features are normalised or propagated, whose last
/// bits depend on the device.
std::vector<Setting> data_fingerprint(const Problem& problem);

}  // namespace tessera::train
