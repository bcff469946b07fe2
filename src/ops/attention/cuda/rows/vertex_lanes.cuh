// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/vectors.cuh"
#include "ops/attention/cuda/row_launch.hpp"

/// The features of a vertex over the lanes of a warp (lane_shape.hpp): who has which, and sums over
/// the lanes of a head.
///
///     2 heads of 16 features, 4 per lane, two edges at once:
///     | edge 0: head 0 head 0 head 0 head 0 head 1 head 1 head 1 head 1 | edge 1: ...
namespace tessera::ops {

template <class T, int count_, int vectors_, LaneLoads loads_>
class VertexLanes {
 public:
  using Type = T;
  static constexpr int count = count_;
  static constexpr int vectors = vectors_;
  static constexpr int held = count * vectors;
  using Vector = cuda::Vector<T, count* static_cast<int>(sizeof(T))>;

  /// Features of a vertex as they lie in memory.
  struct Loaded {
    Vector vectors[vectors_];
  };

  __device__ explicit VertexLanes(const RowsAttentionLaunch& launch)
      : head_lanes_(launch.shape.head_lanes),
        place_(static_cast<int>(threadIdx.x) & (launch.shape.head_lanes - 1)),
        width_(static_cast<int>(launch.width)) {
    const int in_edge = static_cast<int>(threadIdx.x) & (launch.shape.lanes - 1);
    const int in_slice = in_edge >> launch.shape.log_head_lanes;
    const std::int64_t head = std::int64_t{blockIdx.y} * launch.shape.heads + in_slice;
    has_head_ = in_slice < launch.shape.heads && head < launch.heads;
    head_ = has_head_ ? static_cast<int>(head) : 0;
    first_ = head_ * width_;
    if constexpr (loads_ == LaneLoads::padded) find_live_bits();
  }

  __device__ int head() const { return head_; }
  __device__ bool has_head() const { return has_head_; }
  /// One lane of each head.
  __device__ bool speaks_for_head() const { return has_head_ && place_ == 0; }

  /// Feature i of those that this lane holds, in its row; and whether it exists.
  __device__ int feature(int i) const { return first_ + in_head(i); }
  __device__ bool exists(int i) const {
    return has_head_ && in_head(loads_ == LaneLoads::whole ? i / count * count : i) < width_;
  }

  /// Where this lane's features lie in the rows of a matrix.
  struct Reader {
    const char* first = nullptr;  ///< in row 0
    std::uint32_t row_bytes = 0;
    VertexId last_row = 0;

    __device__ const T* at(VertexId vertex) const {
      return reinterpret_cast<const T*>(
          first + static_cast<std::uint64_t>(static_cast<std::uint32_t>(vertex)) * row_bytes);
    }
  };
  __device__ Reader features_of(const AttentionRows& rows) const {
    return reader(rows, feature(0));
  }
  __device__ Reader numbers_of(const AttentionRows& rows) const { return reader(rows, head_); }

  /// Zeros unless `wanted`, and for features that do not exist.
  __device__ Loaded load(const Reader& reader, VertexId vertex, bool wanted) const {
    Loaded loaded;
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      const T* const from = reader.at(vertex) + k * head_lanes_ * count;
      if constexpr (loads_ == LaneLoads::whole) {
        loaded.vectors[k] = Vector::load_if(wanted && exists(k * count), from);
      } else if constexpr (loads_ == LaneLoads::padded) {
        const bool ends_here = !exists(k * count + count - 1) && vertex >= reader.last_row;
        if (wanted && ends_here) {
          loaded.vectors[k] = load_single(from, k, true);
        } else {
          loaded.vectors[k] = live(Vector::load_if(wanted && exists(k * count), from));
        }
      } else {
        loaded.vectors[k] = load_single(from, k, wanted);
      }
    }
    return loaded;
  }

  __device__ static void widen(const Loaded& loaded, float (&values)[held]) {
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      float some[count];
      loaded.vectors[k].widen_to(some);
#pragma unroll
      for (int i = 0; i < count; ++i) values[k * count + i] = some[i];
    }
  }

  /// This lane's share of the product of an own row with another.
  __device__ static float product(const float (&own)[held], const Loaded& loaded) {
    float values[held];
    widen(loaded, values);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < held; ++i) sum = fmaf(own[i], values[i], sum);
    return sum;
  }
  /// Adds a row, weighted.
  __device__ static void add(float weight, const Loaded& loaded, float (&sums)[held]) {
    float values[held];
    widen(loaded, values);
#pragma unroll
    for (int i = 0; i < held; ++i) sums[i] = fmaf(weight, values[i], sums[i]);
  }

  __device__ void load_widened(const AttentionRows& rows, VertexId vertex, bool wanted,
                               float (&values)[held]) const {
    widen(load(features_of(rows), vertex, wanted), values);
  }

  /// This lane's head's number of a row of `heads` numbers, as it lies in memory; 0 unless
  /// `wanted`. One load with a condition and no branch, so that several of them are in flight
  /// together.
  __device__ static T load_number(const Reader& reader, VertexId vertex, bool wanted) {
    const T* const from = reader.at(vertex);
    T number = cuda::narrow<T>(0.0f);
    if constexpr (sizeof(T) == 4) {
      asm("{ .reg .pred p; setp.ne.s32 p, %1, 0;\n"
          "  @p ld.global.nc.f32 %0, [%2]; }"
          : "+f"(number)
          : "r"(static_cast<int>(wanted)), "l"(from));
    } else {
      std::uint16_t bits = 0;
      asm("{ .reg .pred p; setp.ne.s32 p, %1, 0;\n"
          "  @p ld.global.nc.u16 %0, [%2]; }"
          : "+h"(bits)
          : "r"(static_cast<int>(wanted)), "l"(from));
      memcpy(&number, &bits, sizeof number);
    }
    return number;
  }

  __device__ void store(const AttentionSums& to, VertexId row, const float (&values)[held]) const {
    T* const out = static_cast<T*>(to.data) + row * to.stride;
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      float some[count];
#pragma unroll
      for (int i = 0; i < count; ++i) some[i] = values[k * count + i];
      const bool complete = exists(k * count + (loads_ == LaneLoads::padded ? count - 1 : 0));
      if (loads_ != LaneLoads::single && complete) {
        Vector::narrowed(some).store(out + feature(k * count));
      } else if constexpr (loads_ != LaneLoads::whole) {
#pragma unroll
        for (int i = 0; i < count; ++i) {
          if (exists(k * count + i)) out[feature(k * count + i)] = cuda::narrow<T>(some[i]);
        }
      }
    }
  }
  /// A row of fp32, whatever the type of features.
  __device__ void store_wide(float* row, const float (&values)[held]) const {
#pragma unroll
    for (int i = 0; i < held; ++i) {
      if (exists(i)) row[feature(i)] = values[i];
    }
  }
  /// What other blocks or kernels may have written.
  __device__ void load_wide(const float* row, float (&values)[held]) const {
#pragma unroll
    for (int i = 0; i < held; ++i) values[i] = exists(i) ? __ldcg(row + feature(i)) : 0.0f;
  }

  __device__ void store_number(const AttentionSums& to, VertexId row, float value) const {
    static_cast<T*>(to.data)[row * to.stride + head_] = cuda::narrow<T>(value);
  }

  /// Adds each of some numbers over the lanes of a head; all of these get the same bits. All lanes
  /// of a warp must call together.
  template <int size>
  __device__ void add_over_head(float (&numbers)[size]) const {
    for (int distance = head_lanes_ / 2; distance >= 1; distance /= 2) {
#pragma unroll
      for (float& number : numbers) number += __shfl_xor_sync(~0u, number, distance);
    }
  }

 private:
  /// Feature by feature; zeros unless `wanted`, and for features that do not exist.
  __device__ Vector load_single(const T* from, int k, bool wanted) const {
    T elements[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      elements[i] = wanted && exists(k * count + i) ? from[i] : T(0.0f);
    }
    Vector vector;
    memcpy(&vector.raw, elements, sizeof elements);
    return vector;
  }

  /// What of this lane's only vector exists, as masks of its words.
  static constexpr int words = static_cast<int>(count * sizeof(T) + 3) / 4;
  __device__ void find_live_bits() {
    static_assert(loads_ != LaneLoads::padded || vectors == 1);
    constexpr int per_word = 4 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int word = 0; word < words; ++word) {
      live_bits_[word] = 0;
#pragma unroll
      for (int i = 0; i < per_word; ++i) {
        constexpr std::uint32_t ones = sizeof(T) == 4 ? ~0u : 0xffffu;
        if (exists(word * per_word + i)) live_bits_[word] |= ones << (16 * i);
      }
    }
  }
  __device__ Vector live(Vector vector) const {
    std::uint32_t bits[words];
    memcpy(bits, &vector.raw, sizeof bits);
#pragma unroll
    for (int word = 0; word < words; ++word) bits[word] &= live_bits_[word];
    memcpy(&vector.raw, bits, sizeof bits);
    return vector;
  }

  __device__ static Reader reader(const AttentionRows& rows, int first) {
    Reader reader{static_cast<const char*>(rows.data) + first * static_cast<int>(sizeof(T)),
                  rows.row_bytes, rows.last_row};
    // One register pair, not a sum that is formed again for every edge.
    asm volatile("" : "+l"(reader.first));
    return reader;
  }
  __device__ int in_head(int i) const {
    return (i / count * head_lanes_ + place_) * count + i % count;
  }

  int head_lanes_;
  int place_;  ///< among the lanes of the head
  int width_;
  int head_;
  int first_;  ///< feature of the head
  bool has_head_;
  std::uint32_t live_bits_[loads_ == LaneLoads::padded ? words : 1];
};

}  // namespace tessera::ops
