// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/kernel.hpp"
#include "ops/tuning.hpp"

/// What a forward pass over windows of 64 rows should take, by any of its kernels.
namespace tessera::ops {

struct WindowCoefficients {
  double launch_us;
  double tile_us = 0;         ///< per tile: bringing it
  double head_tile_us;        ///< per tile and head: weights and their sum
  double feature_tile_us;     ///< per tile and feature: products with V, and with K for scores
  double last_tile_us;        ///< per tile of a long window, which others do not hide
  double moved_bytes_per_us;  ///< features once, from and to memory

  WindowCoefficients scaled(DeviceRatio ratio) const;
};

double predict_windows_us(const AttentionProblem& problem, const WindowCoefficients& fit);

}  // namespace tessera::ops
