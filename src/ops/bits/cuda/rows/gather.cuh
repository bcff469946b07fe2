// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ops/bits/cuda/list_sums.cuh"
#include "ops/bits/cuda/rows/launch.hpp"

/// Codes of a byte added up in registers, by a team of lanes or a warp.
namespace tessera::ops {

/// `groups` groups of `lanes` lanes take turns with the sources of a row, each lane adds `bytes`
/// columns.
template <int lanes_, int groups_, int bytes_>
class ByteGather {
 public:
  static constexpr int lanes = lanes_;
  static constexpr int groups = groups_;
  static constexpr int bytes = bytes_;
  static constexpr int words = bytes / 4;
  static constexpr int in_flight = 4;
  static constexpr int step = groups * in_flight;
  /// Columns that a block takes of each row.
  static constexpr int block_columns = lanes * bytes;
  using Vector = std::conditional_t<bytes == 16, uint4, uint2>;
  static_assert(bytes == 16 || bytes == 8);
  struct Sources {
    VertexId ids[in_flight];
  };

  /// Lanes beyond the last column load the first one instead.
  __device__ explicit ByteGather(const ByteRowsLaunch& launch)
      : sources_(launch.sources),
        group_(static_cast<int>(threadIdx.x) % 32 % (lanes * groups) / lanes),
        column_(std::int64_t{blockIdx.y} * block_columns +
                static_cast<int>(threadIdx.x) % lanes * bytes),
        codes_(launch.codes + (column_ < launch.width ? column_ : 0)),
        row_bytes_(static_cast<std::uint32_t>(launch.code_stride)) {
    // One register pair, not a sum that is formed again for every source.
    asm volatile("" : "+l"(codes_));
  }

  __device__ std::int64_t column() const { return column_; }

  __device__ Sources first_sources(EdgeOffset begin, int count) const {
    return loaded(sources_ + begin + group_, count);
  }

  /// The ids of the next step are in flight together with the codes of this one.
  __device__ void gather(EdgeOffset begin, int left, Sources next) {
    const VertexId* ids = sources_ + begin + group_;
#pragma unroll 1
    while (left >= step) {
      const Sources now = next;
      ids += step;
      left -= step;
      next = loaded(ids, left);
      add<true>(step, now);
    }
    if (left > 0) add<false>(left, next);
  }

  __device__ void take_sums(float (&sums)[bytes]) const {
#pragma unroll
    for (int i = 0; i < bytes; ++i) sums[i] = sums_.number(i);
  }
  __device__ void take_sums(std::int32_t (&sums)[bytes]) const {
#pragma unroll
    for (int i = 0; i < bytes; ++i) sums[i] = sums_.sum(i);
  }

 private:
  __device__ Sources loaded(const VertexId* ids, int left) const {
    Sources sources;
#pragma unroll
    for (int u = 0; u < in_flight; ++u) {
      const bool live = left >= step || u * groups + group_ < left;
      sources.ids[u] = live ? __ldg(ids + u * groups) : 0;
    }
    return sources;
  }

  template <bool whole>
  __device__ void add(int left, const Sources& sources) {
    std::uint32_t codes[in_flight][words];
#pragma unroll
    for (int u = 0; u < in_flight; ++u) {
      Vector loaded{};
      if (whole || u * groups + group_ < left) {
        const auto offset =
            static_cast<std::uint64_t>(static_cast<std::uint32_t>(sources.ids[u])) * row_bytes_;
        loaded = __ldg(reinterpret_cast<const Vector*>(codes_ + offset));
      }
      memcpy(codes[u], &loaded, sizeof(loaded));
    }
#pragma unroll
    for (int u = 0; u < in_flight; u += 2) sums_.add(codes[u], codes[u + 1]);
  }

  const VertexId* sources_;
  int group_;
  std::int64_t column_;
  const std::uint8_t* codes_;  ///< this lane's, of the first row
  std::uint32_t row_bytes_;
  PairedSums<words> sums_;
};

/// The sums of a warp's groups put together: each exchange halves the columns that a lane is
/// concerned with, so that all of them finish some.
template <int lanes, int bytes>
class RowSums {
 public:
  static constexpr int groups = 32 / lanes;
  static constexpr int kept = bytes > groups ? bytes / groups : 1;

  /// All lanes of a warp come here.
  __device__ explicit RowSums(std::int32_t (&sums)[bytes]) {
    exchange<lanes, bytes>(sums);
#pragma unroll
    for (int i = 0; i < kept; ++i) sums_[i] = sums[i];
  }

  /// Other lanes have the same sums as one that counts.
  __device__ bool counts() const { return group() < bytes; }
  /// Where the sums of this lane begin among those of the block's columns.
  __device__ int first() const {
    int from = 0;
#pragma unroll
    for (int half = bytes / 2, bit = 1; half >= kept; half /= 2, bit *= 2) {
      if ((group() & bit) != 0) from += half;
    }
    return lane() % lanes * bytes + from;
  }
  __device__ const std::int32_t (&sums() const)[kept] { return sums_; }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int group() { return lane() / lanes; }

  template <int distance, int count>
  __device__ static void exchange(std::int32_t (&sums)[bytes]) {
    if constexpr (distance < 32) {
      constexpr int half = count > 1 ? count / 2 : 1;
      const bool upper = count > 1 && (lane() & distance) != 0;
#pragma unroll
      for (int i = 0; i < half; ++i) {
        const std::int32_t sent = count == 1 || upper ? sums[i] : sums[count - half + i];
        if (upper) sums[i] = sums[count - half + i];
        sums[i] += __shfl_xor_sync(0xFFFFFFFFu, sent, distance);
      }
      exchange<2 * distance, half>(sums);
    }
  }

  std::int32_t sums_[kept];
};

}  // namespace tessera::ops
