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

/// The arrays lie on the device. Losses walk over all rows with `times`, how often each was chosen:
/// a row listed twice counts twice without two threads writing to it.
struct LossTargets::State {
  bool is_binary = false;
  Device device;
  Place place;
  std::int64_t rows = 0;
  std::int64_t cols = 0;  ///< classes, or columns of the targets
  double count = 1;       ///< what the sum is divided by
  Buffer<std::int32_t> times;
  Buffer<std::int32_t> labels;  ///< for classes; 0 where there is none
  Buffer<float> targets;        ///< for yes or no: rows x cols
};

}  // namespace tessera::ops
