// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "tessera/core/device.hpp"

/// Memory that ops without a plan need for the length of one call. It belongs to the stream: calls
/// on one stream follow each other, so all of them use the same. Made at the first call on a stream
/// and kept, because ops may neither allocate nor wait; making it does not disturb a recording.
namespace tessera::cuda {

/// Fixed sizes, so that how a sum is cut depends on the operands alone.
inline constexpr std::int64_t workspace_counters = 1 << 14;
inline constexpr std::int64_t workspace_partials = 1 << 19;
inline constexpr std::int64_t workspace_columns = 1 << 18;

/// What a pass over the columns leaves for the pass over the elements that follows it.
struct ColumnNumbers {
  float a, b, c, d;
};

struct Workspace {
  unsigned* counters = nullptr;      ///< 0 between calls
  double* partials = nullptr;        ///< sums of parts, to be added in order
  ColumnNumbers* columns = nullptr;  ///< one for each column
};

Workspace workspace(Device device, Stream stream);

/// For calls that leave something in a workspace between two launches: no call of another thread on
/// the same stream may come between.
std::unique_lock<std::mutex> between_launches();

/// What NVIDIA recommends for its BLAS on Hopper.
inline constexpr std::size_t blas_workspace_bytes = std::size_t{32} << 20;

void* blas_workspace(Device device, Stream stream);

}  // namespace tessera::cuda
