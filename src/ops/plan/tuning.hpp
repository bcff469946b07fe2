// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "core/device_traits.hpp"

/// Coefficients of cost models. Each strategy has those that were measured on one GPU in its
/// cost.cpp. Other GPUs get them scaled by what their profile has of its rates.
namespace tessera::ops {

/// Where coefficients come from.
struct Provenance {
  const char* gpu;
  const char* date;
  const char* fitted_to;
};

/// How many times as fast as the GPU of the coefficients another one is.
struct DeviceRatio {
  double processors = 1;  ///< at what happens inside of processors and in their caches
  double memory = 1;      ///< at what comes from memory
  double l1 = 1;          ///< how many times as much the caches keep
  double l2 = 1;
};

/// By the profile of a GPU with these traits: 1 and 1 where it is the one that is built in.
DeviceRatio ratio_to_h200(const DeviceTraits& traits);

/// `Coefficients` may have a function `scale(DeviceRatio)`.
template <class Coefficients>
struct Fitted {
  Provenance provenance;
  Coefficients coefficients;

  Coefficients on(const DeviceTraits& traits) const {
    Coefficients scaled = coefficients;
    if constexpr (requires(DeviceRatio ratio) { scaled.scale(ratio); }) {
      scaled.scale(ratio_to_h200(traits));
    }
    return scaled;
  }
};

/// What kernels get from the memory of the H200 that read or write rows one after the other.
inline constexpr double streamed_bytes_per_us = 4.2e6;

/// The GPU that all coefficients of this version were fitted on.
constexpr Provenance fitted_on_h200(const char* date, const char* fitted_to) {
  return {"NVIDIA H200", date, fitted_to};
}

/// What an explanation says of predictions for a GPU by its built-in profile; empty where
/// coefficients were fitted to it.
std::string note_on_costs(const DeviceTraits& traits);

}  // namespace tessera::ops
