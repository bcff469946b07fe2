// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/async_copy.cuh"
#include "cuda/vectors.cuh"
#include "ops/spmm/cuda/tall_feed.cuh"

/// How gathered rows of X come into shared memory, in the order that wgmma reads. A stage is always
/// filled: rows beyond those it uses become 0, because what lay there before times 0 may not be 0.
namespace tessera::ops {

/// Rows of 64 features are 128 bytes, their 16-byte units exchanged by the row's number modulo 8 so
/// that neither writing rows nor reading columns makes banks collide. Wider rows continue in
/// another block of the same kind.
template <int width, int rows>
struct StageLayout {
  static constexpr int num_blocks = width > 64 ? width / 64 : 1;
  static constexpr int block_bytes = rows * 128;
  static constexpr int plane_bytes = num_blocks * block_bytes;

  /// Of the 16 bytes from feature 8 * unit on.
  __device__ static std::uint32_t offset(int row, int unit) {
    return static_cast<std::uint32_t>(unit / 8 * block_bytes + row * 128 +
                                      ((unit % 8) ^ (row % 8)) * 16);
  }
};

/// The part of a row that a thread brings: 16 bytes, the same ones of every row.
template <class T, int width>
struct RowShare {
  static constexpr int elements = 16 / static_cast<int>(sizeof(T));
  static constexpr int units = width / elements;

  int unit;
  int first_row;
  int row_step;        ///< of one pass of the block over the rows
  bool active;         ///< whether the row has these features
  const char* source;  ///< in the first row of X
  std::uint32_t row_bytes;

  __device__ explicit RowShare(const TallLaunch& launch)
      : unit(static_cast<int>(threadIdx.x) % units),
        first_row(static_cast<int>(threadIdx.x) / units),
        row_step(static_cast<int>(blockDim.x) / units),
        row_bytes(static_cast<std::uint32_t>(launch.x_stride * sizeof(T))) {
    const std::int64_t feature = std::int64_t{blockIdx.y} * width + unit * elements;
    active = feature < launch.features;
    source = static_cast<const char*>(launch.x) + feature * static_cast<int>(sizeof(T));
  }
  __device__ const char* of(VertexId column) const {
    return source + static_cast<std::uint64_t>(static_cast<std::uint32_t>(column)) * row_bytes;
  }
};

/// 16-bit rows on 16-byte boundaries are copied as they are, two stages ahead.
template <class T, int width_, bool scaled_>
class CopyLoader {
 public:
  using Source = T;
  using Element = T;
  static constexpr int width = width_;
  static constexpr int rows = width == 128 ? 64 : 128;
  static constexpr int planes = 1;
  static constexpr int num_stages = 3;
  static constexpr bool scaled = scaled_;
  static constexpr bool aligned = true;
  static constexpr int max_threads = 512;
  static constexpr int min_blocks = 1;
  using Layout = StageLayout<width, rows>;
  using Record = StageRecord<rows, scaled>;
  static constexpr int stage_bytes = Layout::plane_bytes;
  // The order of units in a row repeats every 8 rows: a thread's places are 128 bytes a row apart.
  static_assert(128 / RowShare<T, width>::units % 8 == 0);

  __device__ CopyLoader(const TallLaunch& launch, std::uint32_t stages)
      : share_(launch), to_(stages + Layout::offset(share_.first_row, share_.unit)) {}

  __device__ void start(Record first) { load(first, 0); }
  __device__ void prime(Record second) { load(second, 1); }
  /// While stage `now` is multiplied.
  __device__ void advance(Record, Record after_next, int now) {
    load(after_next, now == 0 ? 2 : now - 1);
  }

 private:
  __device__ void load(Record record, int stage) {
    if (!share_.active) return;
    constexpr int at_once = 4;
    const int live = record.head().num_steps * 16;
    const std::uint32_t to = to_ + static_cast<std::uint32_t>(stage * stage_bytes);
    for (int first = share_.first_row; first < rows; first += at_once * share_.row_step) {
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        const int row = first + i * share_.row_step;
        const std::uint32_t at = to + static_cast<std::uint32_t>((row - share_.first_row) * 128);
        if (row < live) {
          cuda::copy_16_async(at, share_.of(record.columns()[row]));
        } else if (row < rows) {
          cuda::zero_16_async(at, share_.source);
        }
      }
    }
  }

  RowShare<T, width> share_;
  std::uint32_t to_;
};

/// fp32 rows, which are split into bf16 planes on the way (high, low, and lower still), and rows on
/// no boundary: through registers, loaded two stages and stored one stage ahead.
template <class T, int width_, int planes_, bool scaled_, bool aligned_, int groups>
class ConvertLoader {
 public:
  using Source = T;
  using Element = std::conditional_t<std::is_same_v<T, float>, __nv_bfloat16, T>;
  static constexpr bool splits = std::is_same_v<T, float>;
  static constexpr int width = width_;
  static constexpr int planes = planes_;
  static constexpr int num_stages = 2;
  static constexpr bool scaled = scaled_;
  static constexpr bool aligned = aligned_;
  /// Unaligned rows are rare: one kernel serves blocks of every size.
  static constexpr int max_threads = aligned ? groups * 128 : 512;
  static constexpr int min_blocks = !aligned ? 1 : groups == 1 ? 3 : 2;
  /// Loads in flight: as many as there are registers for.
  static constexpr int passes = width > 32 && min_blocks == 3 ? 8 : 4;
  using Share = RowShare<T, width>;
  static constexpr int rows = passes * groups * 128 / Share::units;
  using Layout = StageLayout<width, rows>;
  using Record = StageRecord<rows, scaled || splits>;
  static constexpr int stage_bytes = planes * Layout::plane_bytes;
  static_assert(splits || planes == 1);

  __device__ ConvertLoader(const TallLaunch& launch, std::uint32_t stages)
      : launch_(launch), share_(launch), stages_(stages) {}

  __device__ void start(Record first) {
    pull(first);
    store(first, 0);
  }
  __device__ void prime(Record second) { pull(second); }
  __device__ void advance(Record next, Record after_next, int now) {
    store(next, 1 - now);
    pull(after_next);
  }

 private:
  /// fp32 units of four features become half a unit of bf16.
  __device__ std::uint32_t place_of(int row) const {
    if constexpr (splits) {
      return Layout::offset(row, share_.unit / 2) + static_cast<std::uint32_t>(share_.unit % 2 * 8);
    } else {
      return Layout::offset(row, share_.unit);
    }
  }

  __device__ void pull(Record record) {
    const int live = share_.active ? record.head().num_steps * 16 : 0;
#pragma unroll
    for (int i = 0; i < passes; ++i) {
      const int row = share_.first_row + i * share_.row_step;
      loaded_[i] = row < live ? load(share_.of(record.columns()[row])) : uint4{};
    }
  }

  __device__ uint4 load(const char* from) const {
    if constexpr (aligned) {
      return __ldg(reinterpret_cast<const uint4*>(from));
    } else {
      const std::int64_t feature = std::int64_t{blockIdx.y} * width + share_.unit * Share::elements;
      T values[Share::elements];
#pragma unroll
      for (int i = 0; i < Share::elements; ++i) {
        values[i] = feature + i < launch_.features ? reinterpret_cast<const T*>(from)[i] : T(0.0f);
      }
      uint4 raw;
      memcpy(&raw, values, sizeof(raw));
      return raw;
    }
  }

  __device__ void store(Record record, int stage) {
    const std::uint32_t to = stages_ + static_cast<std::uint32_t>(stage * stage_bytes);
#pragma unroll
    for (int i = 0; i < passes; ++i) {
      const int row = share_.first_row + i * share_.row_step;
      if (row >= rows) break;
      const std::uint32_t at = to + place_of(row);
      if constexpr (splits) {
        // Beyond the last row of the stage scales are whatever was there before.
        const bool scales = launch_.scales != nullptr && row < record.head().num_steps * 16;
        store_planes(at, loaded_[i], scales ? __uint_as_float(record.scales()[row]) : 1.0f);
      } else {
        const uint4& raw = loaded_[i];
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(raw.x), "r"(raw.y),
                     "r"(raw.z), "r"(raw.w)
                     : "memory");
      }
    }
  }

  /// Each plane holds what the planes before it left: products with 0 and 1 are exact, so the sum
  /// is as good as the planes together, 2^-17 of a feature for two and fp32 itself for three.
  __device__ static void store_planes(std::uint32_t at, const uint4& raw, float scale) {
    float values[4] = {__uint_as_float(raw.x) * scale, __uint_as_float(raw.y) * scale,
                       __uint_as_float(raw.z) * scale, __uint_as_float(raw.w) * scale};
#pragma unroll
    for (int plane = 0; plane < planes; ++plane) {
      std::uint32_t pairs[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
        memcpy(&pairs[i], &pair, sizeof(pair));
        values[2 * i] -= __uint_as_float(pairs[i] << 16);
        values[2 * i + 1] -= __uint_as_float(pairs[i] & 0xffff0000u);
      }
      asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(at + plane * Layout::plane_bytes),
                   "r"(pairs[0]), "r"(pairs[1])
                   : "memory");
    }
  }

  const TallLaunch& launch_;
  Share share_;
  std::uint32_t stages_;
  uint4 loaded_[passes];
};

}  // namespace tessera::ops
