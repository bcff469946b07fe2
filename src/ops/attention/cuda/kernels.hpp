// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "ops/attention/kernel.hpp"

/// The CUDA kernels of attention. Only in a build with CUDA.
namespace tessera::ops {

/// The kernel by rows, for those that have but one pass of their own.
std::unique_ptr<const PreparedAttention> prepare_rows_attention(const AttentionProblem& problem);

/// Which of the widths of heads that a strategy has kernels for these heads have.
template <std::size_t count>
std::optional<std::size_t> width_index(const std::array<int, count>& widths,
                                       const AttentionOptions& options) {
  const auto at = std::find(widths.begin(), widths.end(), options.features / options.heads);
  if (at == widths.end()) return std::nullopt;
  return static_cast<std::size_t>(at - widths.begin());
}

/// Whether the kernel by rows takes heads of this width: 32 lanes with four vectors of 16 bytes.
inline bool taken_by_rows(const AttentionOptions& options) {
  constexpr std::int64_t most_bytes = 32 * 4 * 16;
  return options.features > 0 &&
         bytes_of(storage_of(options.precision), options.features / options.heads) <= most_bytes;
}

void append_cuda_rows_attention(std::vector<AttentionKernel>& table);
void append_cuda_tall_attention(std::vector<AttentionKernel>& table);
void append_cuda_short_attention(std::vector<AttentionKernel>& table);
void append_cuda_pairs_attention(std::vector<AttentionKernel>& table);

}  // namespace tessera::ops
