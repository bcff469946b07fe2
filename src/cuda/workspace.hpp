// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// How ops without a plan divide the memory that they are given for the length of a call.
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

/// What NVIDIA recommends for its BLAS on Hopper. It comes first, on a boundary of 256 bytes.
inline constexpr std::int64_t blas_workspace_bytes = std::int64_t{32} << 20;
inline constexpr std::int64_t partials_bytes =
    workspace_partials * static_cast<std::int64_t>(sizeof(double));
inline constexpr std::int64_t columns_bytes =
    workspace_columns * static_cast<std::int64_t>(sizeof(ColumnNumbers));
inline constexpr std::int64_t workspace_bytes =
    blas_workspace_bytes + partials_bytes + columns_bytes +
    workspace_counters * static_cast<std::int64_t>(sizeof(unsigned));

/// The parts of memory that was all 0 when it was made.
inline Workspace workspace_in(std::byte* memory) noexcept {
  std::byte* const partials = memory + blas_workspace_bytes;
  std::byte* const columns = partials + partials_bytes;
  return {reinterpret_cast<unsigned*>(columns + columns_bytes), reinterpret_cast<double*>(partials),
          reinterpret_cast<ColumnNumbers*>(columns)};
}

}  // namespace tessera::cuda
