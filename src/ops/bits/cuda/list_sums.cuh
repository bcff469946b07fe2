// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Codes of a byte, 16 columns of them to a lane, summed over a list of sources.
namespace tessera::ops {

/// Sums of the bytes of a few words: two share a word while they grow, over up to 256 numbers.
template <int words>
class PairedSums {
 public:
  __device__ void add(const std::uint32_t (&first)[words], const std::uint32_t (&second)[words]) {
#pragma unroll
    for (int w = 0; w < words; ++w) {
      even_[w] += (first[w] & 0x00FF00FFu) + (second[w] & 0x00FF00FFu);
      odd_[w] += __byte_perm(first[w], 0, 0x4341) + __byte_perm(second[w], 0, 0x4341);
    }
  }

  /// Of byte `i` of all words.
  __device__ std::int32_t sum(int i) const {
    return static_cast<std::int32_t>(i % 4 < 2 ? pair(i) & 0xFFFFu : pair(i) >> 16);
  }
  /// As a number of fp32: 0x4B000000 with a sum in its lowest digits is 2^23 more than the sum.
  __device__ float number(int i) const {
    return __uint_as_float(__byte_perm(pair(i), 0x4B000000u, i % 4 < 2 ? 0x7610 : 0x7632)) -
           8388608.0f;
  }

 private:
  __device__ std::uint32_t pair(int i) const { return i % 2 == 0 ? even_[i / 4] : odd_[i / 4]; }

  std::uint32_t even_[words] = {};
  std::uint32_t odd_[words] = {};
};

inline constexpr int list_columns = 16;
/// Sources whose codes are in flight at once.
inline constexpr int list_sources_at_once = 4;
/// Of `PairedSums`.
inline constexpr int most_sources_of_word = 256;

/// Ids of the next sources; of those that do not exist 0.
struct ListSources {
  std::uint32_t ids[list_sources_at_once];

  __device__ ListSources(const std::uint16_t* sources, int left) {
#pragma unroll
    for (int k = 0; k < list_sources_at_once; ++k) ids[k] = k < left ? __ldg(sources + k) : 0;
  }
};

/// Over up to `most_sources_of_word` sources. Ids of the next ones are in flight.
__device__ inline void add_few_sources(const std::uint16_t* sources, int count,
                                       const std::uint8_t* codes, std::uint32_t stride,
                                       std::int32_t (&totals)[list_columns]) {
  PairedSums<4> sums;
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
    for (int k = 0; k < list_sources_at_once; k += 2) sums.add(words[k], words[k + 1]);
  }
#pragma unroll
  for (int i = 0; i < list_columns; ++i) totals[i] += sums.sum(i);
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
