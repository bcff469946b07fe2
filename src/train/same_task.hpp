// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/train/checkpoint.hpp"
#include "tessera/train/problem.hpp"

namespace tessera::train {

/// Throws `invalid_argument` where a checkpoint predicts links, numbers or classes, and the problem
/// is another of these.
void require_same_task(const Checkpoint& checkpoint, const Problem& problem,
                       const std::string& path);

}  // namespace tessera::train
