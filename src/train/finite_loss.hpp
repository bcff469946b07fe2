// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "tessera/train/trainer.hpp"

namespace tessera::train {

inline void require_finite_loss(double loss, std::int64_t epoch) {
  if (std::isfinite(loss)) return;
  throw Diverged(ErrorCode::invalid_argument,
                 fmt::format("training diverged: the loss of epoch {} is {}", epoch, loss),
                 "training", "lower the learning rate");
}

}  // namespace tessera::train
