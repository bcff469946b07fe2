// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tessera/train/checkpoint.hpp"

namespace tessera::train {

/// Two for each range.
std::vector<float> numbers_in(const StoredTensor& ranges);

}  // namespace tessera::train
