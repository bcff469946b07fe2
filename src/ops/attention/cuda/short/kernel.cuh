// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "cuda/async_copy.cuh"
#include "cuda/launch.cuh"
#include "cuda/mma.cuh"
#include "cuda/occupancy.cuh"
#include "ops/attention/cuda/short/results.cuh"
#include "ops/attention/cuda/short/step_walk.cuh"
#include "ops/attention/cuda/tall/window.cuh"

/// Dot products over windows of 16 rows: a warp takes a window by itself, 16 columns at a time, and
/// brings the rows of K and V of these columns straight from memory to the registers in which
/// matrix instructions want them. In what order the features of a product are added does not
/// matter, so that a lane takes 16 bytes of a row of K at once, and of Q those that meet them. Of V
/// it takes 16 bytes of four rows, and pairs them up: the product has features as rows and the rows
/// of the window as columns, so that its weights are where the scores have been.
///
///     lane 4 g + q has  scores of rows g, g + 8 and columns 2q, 2q + 1, 2q + 8, 2q + 9,
///                       results of features 8 g to 8 g + 7 and rows 2q, 2q + 1, 2q + 8, 2q + 9
namespace tessera::ops {

template <class T, int width>
class ShortDot {
 public:
  static constexpr int key_chunks = width / 32;    ///< of 32 features, eight per lane of a row
  static constexpr int value_chunks = width / 64;  ///< of 64 features
  /// What a thread keeps of Q: of rows g and g + 8. Nobody else reads it; registers are scarcer.
  using Queries = uint4[key_chunks][2][short_attention_warps * 32];

  __device__ ShortDot(const TallAttentionLaunch& launch, Queries& queries)
      : launch_(launch),
        q_(queries),
        queries_(features_of(launch.target, launch.target_stride, quarter() * 8)),
        keys_(features_of(launch.source, launch.source_stride, quarter() * 8)),
        values_(features_of(launch.value, launch.value_stride, group() * 8)),
        unit_(launch.scale * log2_of_e) {}

  /// Pieces [begin, end), be they of one window or another: while one step is computed, rows of the
  /// next are on their way.
  __device__ void run(std::int32_t begin, std::int32_t end) {
    StepWalk walk(launch_, begin, end);
    StepWalk::Step step;
    if (walk.advance(step)) {
#pragma unroll
      for (int part = 0; part < value_chunks; ++part) load_keys(step, part);
      load_values(step);
    }
    std::uint32_t bits = step.bits;
    walk.advance(step);
    tiles::Piece piece = launch_.pieces[begin];
    load_queries(piece);
    for (std::int32_t i = begin; i < end; ++i) {
      clear();
      cuda::wait_for_copies<0>();
      for (int left = piece.num_steps; left > 0; --left) {
        PairScores scores;
        multiply_keys(scores);
        load_keys(step, 0);
        settle(scores, bits);
        bits = step.bits;
        add_values(scores, step);
        load_values(step);
        walk.advance(step);
      }
      const tiles::Piece done = piece;
      if (i + 1 < end) {
        piece = launch_.pieces[i + 1];
        load_queries(piece);
      }
      finish(done);
    }
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int group() { return lane() / 4; }
  __device__ static int quarter() { return lane() % 4; }

  /// The features of a matrix from `first` of the head on.
  struct Features {
    const char* data;
    std::uint32_t row_bytes;

    __device__ const uint4* at(VertexId row, int feature) const {
      const auto number = static_cast<std::uint64_t>(static_cast<std::uint32_t>(row));
      return reinterpret_cast<const uint4*>(data + number * row_bytes + feature * 2);
    }
    __device__ uint4 load(VertexId row, int feature) const { return __ldg(at(row, feature)); }
  };
  __device__ static Features features_of(const void* matrix, std::int64_t stride, int first) {
    const std::int64_t feature = std::int64_t{blockIdx.y} * width + first;
    return {static_cast<const char*>(matrix) + feature * 2, static_cast<std::uint32_t>(stride * 2)};
  }

  __device__ void load_queries(const tiles::Piece& piece) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = group() + 8 * row;
      const bool exists = place < piece.num_rows && piece.num_steps > 0;
#pragma unroll
      for (int chunk = 0; chunk < key_chunks; ++chunk) {
        const std::uint32_t to = cuda::shared_address(&q_[chunk][row][threadIdx.x]);
        const uint4* const from = queries_.at(piece.first_row + (exists ? place : 0), chunk * 32);
        if (exists) {
          cuda::copy_16_async(to, from);
        } else {
          cuda::zero_16_async(to, from);
        }
      }
    }
    cuda::commit_copies();
  }
  /// 64 features of the rows.
  __device__ void load_keys(const StepWalk::Step& step, int part) {
#pragma unroll
    for (int block = 0; block < 2; ++block) {
#pragma unroll
      for (int chunk = 2 * part; chunk < 2 * part + 2; ++chunk) {
        k_[block][chunk] = keys_.load(step.keys[block], chunk * 32);
      }
    }
  }
  __device__ void load_values(const StepWalk::Step& step) {
#pragma unroll
    for (int column = 0; column < 4; ++column) {
#pragma unroll
      for (int chunk = 0; chunk < value_chunks; ++chunk) {
        v_[chunk][column] = values_.load(step.values[column], chunk * 64);
      }
    }
  }

  __device__ void clear() {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      base_[row] = lowest_base;
      sum_[row] = 0;
    }
#pragma unroll
    for (auto& of_chunk : sums_) {
#pragma unroll
      for (auto& of_pair : of_chunk) {
#pragma unroll
        for (auto& of_rows : of_pair) {
#pragma unroll
          for (float& sum : of_rows) sum = 0;
        }
      }
    }
  }

  /// `cells[i]`: of columns 8 i on, two of row g, then two of row g + 8.
  struct PairScores {
    float cells[2][4] = {};
  };

  __device__ void multiply_keys(PairScores& scores) const {
#pragma unroll
    for (int chunk = 0; chunk < key_chunks; ++chunk) {
      const uint4 low = q_[chunk][0][threadIdx.x];
      const uint4 high = q_[chunk][1][threadIdx.x];
      const std::uint32_t a[2][4] = {{low.x, high.x, low.y, high.y},
                                     {low.z, high.z, low.w, high.w}};
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        const uint4& key = k_[block][chunk];
        const std::uint32_t b[2][2] = {{key.x, key.y}, {key.z, key.w}};
        cuda::multiply_16x8<T>(scores.cells[block], a[0], b[0]);
        cuda::multiply_16x8<T>(scores.cells[block], a[1], b[1]);
      }
    }
  }

  /// Scores become weights, of which cells without an edge have none; bases make room for the
  /// largest score of each row.
  __device__ void settle(PairScores& scores, std::uint32_t bits) {
    float top[2] = {-cuda::infinity, -cuda::infinity};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const bool exists = (bits >> (i * 2 + k / 2 + k % 2 * 16) & 1) != 0;
        scores.cells[i][k] = exists ? scores.cells[i][k] * unit_ : -cuda::infinity;
        top[k / 2] = fmaxf(top[k / 2], scores.cells[i][k]);
      }
    }
#pragma unroll
    for (float& of_row : top) {
      of_row = fmaxf(of_row, __shfl_xor_sync(~0u, of_row, 1));
      of_row = fmaxf(of_row, __shfl_xor_sync(~0u, of_row, 2));
    }
    constexpr float slack = WeightRange<T>::slack;
    const bool rises = top[0] > base_[0] + slack || top[1] > base_[1] + slack;
    if (__any_sync(~0u, rises) != 0) raise(top);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float& cell = scores.cells[i][k];
        cell = power_of_2(cell - base_[k / 2]);
        sum_[k / 2] += cell;
      }
    }
  }
  __device__ void raise(const float (&top)[2]) {
    float factors[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float base = top[row] > base_[row] + WeightRange<T>::slack ? top[row] : base_[row];
      factors[row] = power_of_2(base_[row] - base);
      base_[row] = base;
      sum_[row] *= factors[row];
    }
    float of_results[2][2];
    to_results(factors, of_results);
#pragma unroll
    for (auto& of_chunk : sums_) {
#pragma unroll
      for (auto& of_pair : of_chunk) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
          for (int k = 0; k < 4; ++k) of_pair[half][k] *= of_results[half][k % 2];
        }
      }
    }
  }
  /// A number of each row from the lanes that have its scores to those that have its results.
  __device__ static void to_results(const float (&of_scores)[2], float (&of_results)[2][2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        of_results[half][odd] = __shfl_sync(~0u, of_scores[half], 4 * (2 * quarter() + odd));
      }
    }
  }

  /// As registers of V become free, those of K are filled with rows of the next step.
  __device__ void add_values(const PairScores& weights, const StepWalk::Step& next) {
    // Of rows 0 to 7, then of the others.
    std::uint32_t high[2][2], low[2][2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const PackedTwice<T> pair(weights.cells[i][2 * half], weights.cells[i][2 * half + 1]);
        high[half][i] = pair.high;
        low[half][i] = pair.low;
      }
    }
#pragma unroll
    for (int chunk = 0; chunk < value_chunks; ++chunk) {
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        const std::uint32_t v[4] = {word(v_[chunk][0], pair), word(v_[chunk][1], pair),
                                    word(v_[chunk][2], pair), word(v_[chunk][3], pair)};
        const std::uint32_t a[4] = {
            __byte_perm(v[0], v[1], 0x5410), __byte_perm(v[0], v[1], 0x7632),
            __byte_perm(v[2], v[3], 0x5410), __byte_perm(v[2], v[3], 0x7632)};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          cuda::multiply_16x8<T>(sums_[chunk][pair][half], a, low[half]);
          cuda::multiply_16x8<T>(sums_[chunk][pair][half], a, high[half]);
        }
      }
      if (chunk + 1 < value_chunks) load_keys(next, chunk + 1);
    }
  }
  __device__ static std::uint32_t word(const uint4& vector, int i) {
    return i == 0 ? vector.x : i == 1 ? vector.y : i == 2 ? vector.z : vector.w;
  }

  __device__ void finish(const tiles::Piece& piece) const {
    const ShortResults<T, width> results(launch_, piece);
    float factors[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float total = sum_[row] + __shfl_xor_sync(~0u, sum_[row], 1);
      total += __shfl_xor_sync(~0u, total, 2);
      factors[row] = results.settle(group() + 8 * row, base_[row], total, quarter() == 0);
    }
    float of_results[2][2];
    to_results(factors, of_results);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
#pragma unroll
        for (int chunk = 0; chunk < value_chunks; ++chunk) {
          EightFeatures<T> features;
#pragma unroll
          for (int k = 0; k < 8; ++k) {
            features.values[k] = sums_[chunk][k / 2][half][k % 2 * 2 + odd];
          }
          results.store(8 * half + 2 * quarter() + odd, chunk * 64 + group() * 8, features,
                        of_results[half][odd]);
        }
      }
    }
    results.finish();
  }

  const TallAttentionLaunch& launch_;
  Queries& q_;
  Features queries_, keys_, values_;
  float unit_;
  uint4 k_[2][key_chunks];    ///< of columns g and g + 8
  uint4 v_[value_chunks][4];  ///< of columns 2q, 2q + 1, 2q + 8, 2q + 9
  float base_[2], sum_[2];    ///< of rows g and g + 8, the sums over this lane's columns
  /// Of features 8 g + 2 i and the next: two rows of the first, then of the second; of rows 2q and
  /// 2q + 1, then of those 8 further on.
  float sums_[value_chunks][4][2][4];
};

/// Blocks that an SM should hold, as registers allow.
template <int width>
inline constexpr int short_attention_blocks = width == 64 ? 8 : 4;

template <class T, int width>
__global__ __launch_bounds__(
    short_attention_warps * 32,
    (short_attention_blocks<width>)) void attend_short_windows(const TallAttentionLaunch launch) {
  __shared__ typename ShortDot<T, width>::Queries queries;
  cuda::let_next_begin();
  const auto worker =
      static_cast<std::int32_t>(blockIdx.x * short_attention_warps + threadIdx.x / 32);
  if (worker >= launch.num_workers) return;
  const std::int32_t begin = launch.worker_offsets[worker];
  const std::int32_t end = launch.worker_offsets[worker + 1];
  cuda::wait_for_previous();
  if (begin == end) return;
  ShortDot<T, width> windows(launch, queries);
  windows.run(begin, end);
}

template <class T>
constexpr ShortAttentionFunctions make_short_dots() {
  constexpr auto function_of = []<int width>(std::integral_constant<int, width>) {
    return TallAttentionFunction{
        [](const TallAttentionLaunch& launch, Stream stream) {
          const dim3 grid(cuda::num_blocks(launch.num_workers, short_attention_warps),
                          static_cast<unsigned>(launch.heads));
          cuda::launch_overlapped(attend_short_windows<T, width>, grid, short_attention_warps * 32,
                                  stream, launch);
        },
        [] {
          return cuda::resident_blocks(attend_short_windows<T, width>, short_attention_warps * 32,
                                       0);
        }};
  };
  return []<std::size_t... i>(std::index_sequence<i...>, auto make) {
    return ShortAttentionFunctions{make(std::integral_constant<int, short_head_widths[i]>{})...};
  }
  (std::make_index_sequence<short_head_widths.size()>{}, function_of);
}

}  // namespace tessera::ops
