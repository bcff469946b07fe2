// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/vectors.cuh"
#include "ops/cuda/exponentials.cuh"
#include "ops/loss/cuda/rows.cuh"
#include "ops/loss/targets.hpp"

/// Cross-entropies of rows that a few lanes keep among them. What is done once for a row every lane
/// of it does, so there are as few as there can be, and numbers are looked at as seldom as there
/// can be: memory would bring the next rows sooner.
namespace tessera::ops {

/// A lane's share of a row, as it lies in memory: `kept` chunks, `lanes` of them apart. The last
/// one may go beyond the row, up to a boundary.
template <class T, int width, int kept>
struct KeptRow {
  using Chunk = cuda::Vector<T, width* static_cast<int>(sizeof(T))>;
  static constexpr int count = kept * width;

  Chunk chunks[kept];

  /// The first column of a chunk.
  __device__ static int column(int chunk, int lane, int lanes) {
    return (lane + chunk * lanes) * width;
  }

  /// Asks for it, if it is `wanted`.
  __device__ void fetch(const T* row, bool wanted, int cols, int lane, int lanes) {
#pragma unroll
    for (int i = 0; i < kept; ++i) {
      const int col = column(i, lane, lanes);
      chunks[i] = Chunk::zero();
      if (wanted && col < cols) {
        chunks[i].raw = *reinterpret_cast<const typename Chunk::Raw*>(row + col);
      }
    }
  }

  /// In fp32; what is beyond the row is less than everything.
  __device__ void widen_to(float (&values)[count], int cols, int lane, int lanes) const {
#pragma unroll
    for (int i = 0; i < kept; ++i) {
      float of_chunk[width];
      chunks[i].widen_to(of_chunk);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        values[i * width + k] = column(i, lane, lanes) + k < cols ? of_chunk[k] : -INFINITY;
      }
    }
  }

  /// Rounds `values`, leaves in them what is stored, and stores it.
  __device__ static void store(float (&values)[count], T* row, int cols, int lane, int lanes) {
#pragma unroll
    for (int i = 0; i < kept; ++i) {
      float of_chunk[width];
#pragma unroll
      for (int k = 0; k < width; ++k) of_chunk[k] = values[i * width + k];
      const Chunk rounded = Chunk::narrowed(of_chunk);
      const int col = column(i, lane, lanes);
      if (col + width <= cols) {
        rounded.store(row + col);
      } else {
#pragma unroll
        for (int k = 0; k < width; ++k) {
          if (col + k < cols) row[col + k] = cuda::narrow<T>(of_chunk[k]);
        }
      }
      if constexpr (sizeof(T) < sizeof(float)) {
        rounded.widen_to(of_chunk);
#pragma unroll
        for (int k = 0; k < width; ++k) values[i * width + k] = of_chunk[k];
      }
    }
  }
};

/// The sums of the gradient's columns that a lane has: a few rows in fp32, then in double, which a
/// number takes long to become.
template <class T, int width, int kept>
class RecentSums {
 public:
  static constexpr int count = kept * width;

  __device__ void add(const float (&gradients)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) recent_[i] += gradients[i];
    if (++rows_ == 4) join();
  }
  __device__ GradientSums<T, width, kept>& all() {
    join();
    return sums_;
  }

 private:
  __device__ void join() {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      sums_.values[i] += static_cast<double>(recent_[i]);
      recent_[i] = 0;
    }
    rows_ = 0;
  }

  GradientSums<T, width, kept> sums_;
  float recent_[count] = {};
  int rows_ = 0;
};

/// -log softmax(values) as far as wanted, and what `softmax - wanted` times `share` is in place of
/// the values.
template <int width, int kept>
__device__ float kept_cross_entropy(const cuda::RowTeam<width, true>& team, std::int32_t label,
                                    const WantedShares<float>& wanted, float share,
                                    float (&values)[kept * width]) {
  constexpr int count = kept * width;
  const auto column = [&](int i) {
    return (team.lane + i / width * team.lanes) * width + i % width;
  };
  const auto is_label = [&](int i) { return column(i) == label; };
  float largest = values[0], of_label = 0;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    largest = fmaxf(largest, values[i]);
    of_label = is_label(i) ? values[i] : of_label;
  }
  largest = team.largest(largest);
  of_label = team.sum(of_label);  // others have 0
  float missed = largest - of_label;
  if (wanted.of_other > 0) {
    float all = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) all += column(i) < team.cols ? largest - values[i] : 0.0f;
    missed = wanted.of_other * (team.sum(all) - missed) + wanted.of_label * missed;
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    values[i] = exponential(values[i] - largest);
    sum += values[i];
  }
  sum = team.sum(sum);
  const float factor = share / sum;
  const float of_own = share * wanted.of_label, of_other = share * wanted.of_other;
#pragma unroll
  for (int i = 0; i < count; ++i)
    values[i] = values[i] * factor - (is_label(i) ? of_own : of_other);
  return logf(sum) + missed;
}

}  // namespace tessera::ops
