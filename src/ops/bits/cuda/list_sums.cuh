// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Codes of a byte, 16 columns of them to a lane, summed over a list of sources.
namespace tessera::ops {

inline constexpr int list_columns = 16;
/// Sources whose codes are under way at once.
inline constexpr int list_sources_at_once = 4;
/// Two sums share a word while they grow, up to so many sources.
inline constexpr int most_sources_of_word = 256;

/// Ids of the next sources; of those that do not exist 0.
struct ListSources {
  std::uint32_t ids[list_sources_at_once];

  __device__ ListSources(const std::uint16_t* sources, int left) {
#pragma unroll
    for (int k = 0; k < list_sources_at_once; ++k) ids[k] = k < left ? __ldg(sources + k) : 0;
  }
};

/// Over up to `most_sources_of_word` sources. Ids are on their way while codes are.
__device__ inline void add_few_sources(const std::uint16_t* sources, int count,
                                       const std::uint8_t* codes, std::uint32_t stride,
                                       std::int32_t (&totals)[list_columns]) {
  std::uint32_t even[4] = {}, odd[4] = {};
  ListSources next(sources, count);
  for (int left = count; left > 0; left -= list_sources_at_once) {
    const ListSources now = next;
    sources += list_sources_at_once;
    next = ListSources(sources, left - list_sources_at_once);
    std::uint32_t words[list_sources_at_once][4];
#pragma unroll
    for (int k = 0; k < list_sources_at_once; ++k) {
      uint4 loaded{};
      if (k < left) {
        loaded = __ldg(reinterpret_cast<const uint4*>(codes + std::uint64_t{now.ids[k]} * stride));
      }
      memcpy(words[k], &loaded, sizeof(loaded));
    }
#pragma unroll
    for (int k = 0; k < list_sources_at_once; k += 2) {
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        even[w] += (words[k][w] & 0x00FF00FFu) + (words[k + 1][w] & 0x00FF00FFu);
        odd[w] += __byte_perm(words[k][w], 0, 0x4341) + __byte_perm(words[k + 1][w], 0, 0x4341);
      }
    }
  }
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    totals[w * 4] += static_cast<std::int32_t>(even[w] & 0xFFFFu);
    totals[w * 4 + 1] += static_cast<std::int32_t>(odd[w] & 0xFFFFu);
    totals[w * 4 + 2] += static_cast<std::int32_t>(even[w] >> 16);
    totals[w * 4 + 3] += static_cast<std::int32_t>(odd[w] >> 16);
  }
}

/// Adds the codes of all sources to `totals`; `codes` are this lane's of the first vertex that
/// sources are counted from.
__device__ inline void add_sources(const std::uint16_t* sources, int count,
                                   const std::uint8_t* codes, std::uint32_t stride,
                                   std::int32_t (&totals)[list_columns]) {
  for (int first = 0; first < count; first += most_sources_of_word) {
    add_few_sources(sources + first, min(count - first, most_sources_of_word), codes, stride,
                    totals);
  }
}

}  // namespace tessera::ops
