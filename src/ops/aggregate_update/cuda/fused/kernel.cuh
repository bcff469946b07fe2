// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/precision.cuh"
#include "ops/aggregate_update/cuda/fused/rows.cuh"

/// Sums and product in one kernel. A block keeps the weights in shared memory as bf16 planes; each
/// of its groups of four warps goes over windows of 64 rows. Their sums come up in the registers
/// from which Hopper's matrix units read, a chunk of columns at a time, and are multiplied as soon
/// as they are there: they are never written, unless somebody wants them. There is no barrier after
/// the beginning.
namespace tessera::ops {

template <int cols>
inline constexpr int update_threads = update_groups(cols) * 128;

/// Adds up pieces of long rows, a warp each.
template <class T>
__global__ __launch_bounds__(128) void sum_update_pieces(
    const __grid_constant__ UpdateLaunch launch) {
  cuda::begin_overlapped();
  const int piece_number = static_cast<int>(blockIdx.x * 4 + threadIdx.x / 32);
  if (piece_number >= launch.work.num_pieces) return;
  const UpdatePiece piece = launch.work.pieces[piece_number];
  const auto* const x = static_cast<const T*>(launch.features.x);
  const bool weighted = launch.work.weighted;
  for (std::int64_t col = threadIdx.x % 32; col < launch.features.inner; col += 32) {
    float sum = 0;
#pragma unroll 4
    for (EdgeOffset edge = piece.begin; edge < piece.end; ++edge) {
      const VertexId column = __ldg(launch.matrix.indices + edge);
      const float weight = weighted ? update_weight(launch.matrix, edge, column) : 1.0f;
      sum = fmaf(weight, cuda::widen(x[column * launch.features.x_stride + col]), sum);
    }
    launch.work.slots[piece_number * launch.features.inner + col] = sum;
  }
}

/// Multiplies a chunk of both rows of every lane with the lines of the weight from `right` on.
template <int cols, class T>
__device__ void multiply_chunk(
    const float (&values)[2][UpdateLayout<T>::chunk_units][UpdateLayout<T>::lane_cols], int units,
    std::uint64_t right, std::uint64_t plane_step, std::uint64_t block_step,
    UpdateSums<cols>& sums) {
  using Layout = UpdateLayout<T>;
#pragma unroll
  for (int unit = 0; unit < Layout::chunk_units; ++unit) {
    if (unit >= units) break;
#pragma unroll
    for (int step = 0; step < Layout::unit_steps; ++step) {
      float upper[4], lower[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        upper[i] = values[0][unit][step * 4 + i];
        lower[i] = values[1][unit][step * 4 + i];
      }
      UpdateFragment<T> left;
      left.set(upper, lower);
      const std::uint64_t line = right + (unit * Layout::unit_steps + step) * cuda::wgmma_step;
      cuda::wgmma_fence();
#pragma unroll
      for (int pair = 0; pair < Layout::num_pairs; ++pair) {
        sums.multiply(left.words[Layout::left_of(pair)],
                      line + static_cast<std::uint64_t>(Layout::right_of(pair)) * plane_step,
                      block_step);
      }
      cuda::wgmma_commit();
      cuda::wgmma_wait();
      sums.keep();
    }
  }
}

/// There is no residual, and Y is stored as X is.
template <class T, int width>
__device__ void store_features(const UpdateLaunch& launch, const EpiloguePlace& place,
                               float (&values)[width]) {
  finish_features<T>(launch.epilogue, place, values);
  put_features<T>(launch.features.y, launch.features.y_stride, place, values);
}

/// The four columns of row `half` that a lane has in a block of 16.
template <class T>
__device__ void store_columns(const UpdateLaunch& launch, const UpdateRow& row, int feature,
                              float (&values)[4]) {
  EpiloguePlace place = {row.row, feature, launch.features.cols};
  if (row.row < 0 || place.feature >= place.features) return;
  if (!launch.epilogue.formula.drops || place.features % 4 == 0) {
    return store_features<T>(launch, place, values);
  }
#pragma unroll 1
  for (; place.feature < min(std::int64_t{feature} + 4, place.features); ++place.feature) {
    float value[1] = {values[0]};
    store_features<T>(launch, place, value);
#pragma unroll
    for (int i = 0; i < 3; ++i) values[i] = values[i + 1];
  }
}

/// What rows of Y go through that most layers have: a bias and relu at most, and rows that are
/// stored four columns at a time.
template <class T>
struct ShortEpilogue {
  bool relu;
  bool enough;  ///< whether this is all

  __device__ explicit ShortEpilogue(const UpdateLaunch& launch) {
    const ActivationFormula& formula = launch.epilogue.formula;
    const auto on_boundary = [](const void* at) {
      return reinterpret_cast<std::uintptr_t>(at) % (4 * sizeof(T)) == 0;
    };
    relu = formula.activation == Activation::relu;
    enough = (relu || formula.activation == Activation::none) && !formula.drops &&
             launch.features.cols % 4 == 0 && launch.features.y_stride % 4 == 0 &&
             on_boundary(launch.features.y) && on_boundary(launch.epilogue.bias);
  }

  /// Stores the columns of the rows from `first_col` on, and returns for each row whether all of
  /// its numbers are finite.
  template <int cols>
  __device__ void store(const UpdateLaunch& launch, const UpdateRow (&rows)[2], int first_col,
                        const UpdateSums<cols>& sums, bool (&finite)[2]) const {
    using Four = cuda::Vector<T, 4 * static_cast<int>(sizeof(T))>;
    const int first_feature = first_col + static_cast<int>(threadIdx.x) % 4 * 4;
    const auto* const bias = static_cast<const T*>(launch.epilogue.bias);
    T* to[2];
    float probe[2] = {0, 0};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      to[half] = static_cast<T*>(launch.features.y) +
                 std::int64_t{rows[half].row} * launch.features.y_stride + first_feature;
    }
#pragma unroll
    for (int block = 0; block < cols / 16; ++block) {
      const int feature = block * 16 + first_feature;
      if (feature >= launch.features.cols) continue;
      float added[4] = {};
      if (bias != nullptr) Four::load(bias + feature).widen_to(added);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float values[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float sum = sums.at(half, block, i);
          probe[half] = fmaf(sum, 0.0f, probe[half]);  // not a number unless the sum is finite
          values[i] = sum + added[i];
          if (relu) values[i] = values[i] <= 0 ? 0 : values[i];
        }
        if (rows[half].row >= 0) Four::narrowed(values).store(to[half] + block * 16);
      }
    }
    finite[0] = probe[0] == 0;
    finite[1] = probe[1] == 0;
  }
};

/// Any other epilogue. The sums are used up.
template <int cols, class T>
__device__ void store_with_any_epilogue(const UpdateLaunch& launch, const UpdateRow (&rows)[2],
                                        int first_col, UpdateSums<cols>& sums, bool (&finite)[2]) {
  const int first_feature = first_col + static_cast<int>(threadIdx.x) % 4 * 4;
#pragma unroll 1
  for (int block = 0; block < cols / 16; ++block) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float values[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        values[i] = sums.front(half, i);
        finite[half] = finite[half] && isfinite(values[i]);
      }
      store_columns<T>(launch, rows[half], block * 16 + first_feature, values);
    }
    sums.shift();
  }
}

/// Rows of Y, and once more, without planes, those in which something is not finite.
template <int cols, class T>
__device__ void store_update(const UpdateLaunch& launch, const UpdateRow (&rows)[2],
                             UpdateSums<cols>& sums) {
  const int first_feature = static_cast<int>(threadIdx.x) % 4 * 4;
  bool finite[2] = {true, true};
  const ShortEpilogue<T> epilogue(launch);
  if (epilogue.enough) {
    epilogue.store(launch, rows, 0, sums, finite);
  } else {
    store_with_any_epilogue<cols, T>(launch, rows, 0, sums, finite);
  }
#pragma unroll 1
  for (int half = 0; half < 2; ++half) {
    const UpdateRow row = half == 0 ? rows[0] : rows[1];
    if ((half == 0 ? finite[0] : finite[1]) || row.row < 0) continue;
#pragma unroll 1
    for (int i = 0; i < cols / 4; ++i) {
      const EpiloguePlace place = {row.row, i / 4 * 16 + first_feature + i % 4,
                                   launch.features.cols};
      if (place.feature >= place.features) continue;
      float value[1] = {plain_update<T>(launch, row, place.feature)};
      store_features<T>(launch, place, value);
    }
  }
}

/// Sums of a chunk of columns, or the rows themselves.
template <class T, bool aligned>
__device__ void take_chunk(const UpdateLaunch& launch, const UpdateRow (&rows)[2], int col,
                           bool own, float own_factor,
                           typename UpdateChunk<T, aligned>::Values& values) {
  const UpdateChunk<T, aligned> chunk(launch, col);
  if (own) return chunk.take_own(rows, values);
  chunk.sum(rows, own_factor, values);
  if (launch.features.aggregated != nullptr) chunk.store(rows, values);
}

/// Everything of one window, from its sums to its rows of Y. `next` are the rows after these.
template <int cols, class T>
__device__ void update_window(const UpdateLaunch& launch, const UpdateRow (&rows)[2],
                              const UpdateRow (&next)[2], float own_factor, std::uint64_t right,
                              std::uint64_t plane_step, std::uint64_t block_step) {
  using Layout = UpdateLayout<T>;
  using Chunk = UpdateChunk<T, true>;
  const auto inner = static_cast<int>(launch.features.inner);
  UpdateSums<cols> sums;
  const int parts = launch.weights.root != nullptr ? 2 : 1;
#pragma unroll 1
  for (int part = 0; part < parts; ++part) {
#pragma unroll 1
    for (int col = 0; col < inner; col += Chunk::chunk_cols) {
      typename Chunk::Values values;
      if (launch.features.aligned) {
        take_chunk<T, true>(launch, rows, col, part == 1, own_factor, values);
      } else {
        take_chunk<T, false>(launch, rows, col, part == 1, own_factor, values);
      }
      if (part == 0 && col == 0) expect_columns(launch, next);
      __syncwarp();
      const int units = (inner - col + Layout::unit_cols - 1) / Layout::unit_cols;
      const auto line = static_cast<std::uint64_t>(part * Layout::padded(inner) + col);
      multiply_chunk<cols, T>(values, units, right + line / 16 * cuda::wgmma_step, plane_step,
                              block_step, sums);
    }
  }
  store_update<cols, T>(launch, rows, sums);
}

template <int cols, class T>
__global__ __launch_bounds__(update_threads<cols>,
                             1) void update_rows(const __grid_constant__ UpdateLaunch launch) {
#if defined(TESSERA_HAS_WGMMA)
  using Layout = UpdateLayout<T>;
  extern __shared__ char shared[];
  const auto unaligned = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  const std::uint32_t address = (unaligned + 1023) / 1024 * 1024;
  char* const planes = shared + (address - unaligned);
  const std::int64_t inner = launch.features.inner;
  const bool root = launch.weights.root != nullptr;
  cuda::begin_overlapped();
  keep_weights<T>(launch, cols, planes);
  cuda::fence_shared_for_wgmma();
  __syncthreads();

  const auto block_bytes = static_cast<std::uint32_t>(Layout::block_bytes(inner, root));
  const std::uint64_t right = cuda::wgmma_descriptor(address, block_bytes);
  const std::uint64_t block_step = block_bytes >> 4;
  const auto plane_step = static_cast<std::uint64_t>(Layout::plane_bytes(inner, root, cols) >> 4);
  const float own_factor = self_factor<T>(launch);
  constexpr int groups = update_groups(cols);
  const int thread = static_cast<int>(threadIdx.x);
  const int group = thread / 128;
  const std::int64_t windows =
      (std::int64_t{launch.matrix.num_rows} + update_window_rows - 1) / update_window_rows;
  // Few windows are spread over all blocks. Of many, neighbours share a block; the first of them
  // has the longest rows, so that groups take turns with it.
  const bool few = windows < std::int64_t{gridDim.x} * groups;
  const auto first_of = [&](int turn) {
    return (std::int64_t{turn} * gridDim.x + blockIdx.x) * groups;
  };
  const auto window_of = [&](int turn) {
    if (few) return turn == 0 ? std::int64_t{group} * gridDim.x + blockIdx.x : windows;
    return first_of(turn) + (group + turn) % groups;
  };
  const auto place_of = [&](std::int64_t window) {
    return window * update_window_rows + thread % 128 / 32 * 16 + thread % 32 / 4;
  };
  std::int64_t window = window_of(0);
  UpdateRow next[2] = {update_row(launch, place_of(window)),
                       update_row(launch, place_of(window) + 8)};
#pragma unroll 1
  for (int turn = 0; few ? turn == 0 : first_of(turn) < windows; ++turn) {
    const UpdateRow rows[2] = {next[0], next[1]};
    const bool exists = window < windows;
    window = window_of(turn + 1);
    next[0] = update_row(launch, place_of(window));
    next[1] = update_row(launch, place_of(window) + 8);
    expect_rows<T>(launch, window * update_window_rows, update_window_rows, thread % 128, 128);
    if (exists) {
      update_window<cols, T>(launch, rows, next, own_factor, right, plane_step, block_step);
    }
  }
#endif
}

template <int cols, class T>
void run_update(const UpdateLaunch& launch, Stream stream) {
  if (launch.work.num_pieces > 0) {
    cuda::launch_overlapped(sum_update_pieces<T>, dim3(cuda::num_blocks(launch.work.num_pieces, 4)),
                            128, stream, launch);
  }
  // As much as any product needs: another thread's may be larger.
  cuda_check(cudaFuncSetAttribute(update_rows<cols, T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(most_update_shared_bytes)),
             "asking for shared memory");
  const std::int64_t bytes =
      update_shared_bytes(std::is_same_v<T, float> ? Precision::fp32 : Precision::bf16,
                          launch.features.inner, cols, launch.weights.root != nullptr);
  const unsigned windows = cuda::num_blocks(launch.matrix.num_rows, update_window_rows);
  const dim3 grid(std::min(windows, launch.work.blocks));
  cuda::launch_overlapped(update_rows<cols, T>, grid, update_threads<cols>,
                          static_cast<std::size_t>(bytes), stream, launch);
}

template <UpdateKey key>
UpdateFunction UpdateKernels<key>::get() {
  return run_update<key.cols, cuda::Stored<key.precision>>;
}

}  // namespace tessera::ops
