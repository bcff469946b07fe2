// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tessera/core/memory.hpp"
#include "tessera/ops/loss.hpp"

namespace tessera::ops {

/// The same values in the memory of the place, in the order of its stream.
template <class T>
Buffer<T> placed(Buffer<T> values, const Place& place) {
  if (place.device.kind == DeviceKind::cpu) return values;
  Buffer<T> copy(values.size(), place);
  copy_bytes(copy.data(), values.data(), static_cast<std::size_t>(values.size()) * sizeof(T),
             place.device, place.stream);
  return copy;
}

/// The rows of a matrix, one behind another.
Buffer<float> without_gaps(MatrixView<const float> matrix);

/// What is wanted of a row.
enum class LossForm { classes, binary, numbers };

/// The arrays lie on the device. Losses walk over all rows with `weights`, how often each was
/// chosen times the weight of its class: a row listed twice counts twice without two threads
/// writing to it.
struct LossTargets::State {
  LossForm form = LossForm::classes;
  Device device;
  Place place;
  std::int64_t rows = 0;
  std::int64_t cols = 0;  ///< classes, or columns of the targets
  double count = 1;       ///< what the sum is divided by
  double smoothing = 0;
  Buffer<float> weights;
  Buffer<std::int32_t> labels;  ///< for classes; 0 where there is none
  /// For yes or no: rows x cols, smoothed. For numbers the same, not-a-number where there is none.
  Buffer<float> targets;
  NumberLoss number_loss = NumberLoss::squared;
  double huber_delta = 1;
};

/// Of what is wanted of a row, 1 in all: the share of its own class, and of each other one.
template <class T>
struct WantedShares {
  T of_label = 1;
  T of_other = 0;

  static WantedShares of(const LossTargets::State& targets) {
    const double of_other = targets.smoothing / static_cast<double>(targets.cols);
    return {static_cast<T>(1 - targets.smoothing + of_other), static_cast<T>(of_other)};
  }
};

}  // namespace tessera::ops
