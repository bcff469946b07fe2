// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "ops/plan/tuning.hpp"

/// What schedules are made of, in the microseconds that it takes at the rates of a GPU: what
/// `CountFit`s are shares of.
namespace tessera::ops {

/// What one load that has to wait for memory takes: a step of a block whose loads others do not
/// hide. It is about the same on all GPUs.
inline constexpr double step_us = 0.6;

/// Bytes, from or to memory.
inline double moved_us(double bytes, const DeviceTraits& traits) {
  constexpr Provenance h200 = fitted_on_h200("", "");
  return bytes / (h200.memory_bytes_per_us * ratio_to(h200, traits).memory);
}

/// Bytes of rows that processors gather from the second-level cache, and operations of tensor cores
/// on 16 bits: both by what the profile of the H200 has.
inline double gathered_us(double bytes, const DeviceTraits& traits) {
  return bytes / (9.6e6 * ratio_to(fitted_on_h200("", ""), traits).processors);
}
inline double multiplied_us(double operations, const DeviceTraits& traits) {
  return operations / (636e6 * ratio_to(fitted_on_h200("", ""), traits).processors);
}

/// How many blocks a processor has one after the other, where it holds so many at the same time.
inline double turns_of(double blocks, double at_once, const DeviceTraits& traits) {
  return std::max(1.0, blocks / (at_once * std::max(1, traits.processors)));
}

}  // namespace tessera::ops
