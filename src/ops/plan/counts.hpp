// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "core/device_rates.hpp"
#include "ops/plan/measured_profile.hpp"
#include "ops/plan/tuning.hpp"

/// What schedules are made of, in the microseconds that it takes at the rates of a GPU: what
/// `CountFit`s are shares of.
namespace tessera::ops {

/// What one load that has to wait for memory takes: a step of a block whose loads others do not
/// hide. It is about the same on all GPUs.
inline constexpr double step_us = 0.6;

/// Bytes, from or to memory.
inline double moved_us(double bytes, const DeviceTraits& traits) {
  constexpr double stated_of_h200 = 4.8e6;
  return bytes / (stated_of_h200 * ratio_to_h200(traits).memory);
}

/// Bytes of rows that processors gather from the second-level cache, and operations of tensor cores
/// on 16 bits.
inline double gathered_us(double bytes, const DeviceTraits& traits) {
  return bytes / rate_of(profile_of(traits).l2_gather, 512);
}
inline double multiplied_us(double operations, const DeviceTraits& traits) {
  return operations / profile_of(traits).mma_bf16_per_us;
}

/// How many blocks a processor has one after the other, where it holds so many at the same time.
inline double turns_of(double blocks, double at_once, const DeviceTraits& traits) {
  return std::max(1.0, blocks / (at_once * std::max(1, traits.processors)));
}

}  // namespace tessera::ops
