// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/precision.cuh"
#include "cuda/row_teams.cuh"
#include "cuda/workspace.hpp"
#include "ops/cuda/operands.cuh"
#include "ops/dense/dense_workspace.hpp"
#include "ops/pairs/kernels.hpp"

/// The ends of all rows, one list behind another, are cut into pieces of one length, so that a row
/// of many ends keeps many teams busy. A team adds up the ends of a piece; what it finds of a row
/// that lies in several pieces goes to memory, where the next kernel adds it up in order.
namespace tessera::ops::on_gpu {
namespace {

constexpr int threads = 256;
/// Ends that are read at once.
constexpr int ends_ahead = 4;

template <class T>
struct SumLaunch {
  const PairEnd* ends;
  const std::int32_t* offsets;
  std::int64_t num_ends, num_rows;
  std::int64_t length;  ///< of a piece
  int sides;
  bool multiplies;
  cuda::Rows<const T> of_sources, of_targets, gradient;
  std::int64_t cols, head_width;
  bool one_head;
  cuda::Rows<T> y;
  /// Of each piece: the sum of a row that began before it, and that of one that goes on behind it.
  float* parts;
  int lanes;
};

/// The columns that a lane adds up.
template <int width, bool aligned>
__device__ cuda::Elements<width, aligned> columns_of(std::int64_t cols, int lanes) {
  cuda::Elements<width, aligned> place;
  place.cols = cols;
  place.col = (std::int64_t{blockIdx.y} * lanes + static_cast<int>(threadIdx.x) % lanes) * width;
  const std::int64_t left = cols - place.col;
  place.count = static_cast<int>(left < 0 ? 0 : left < width ? left : width);
  return place;
}

/// terms = what one end adds to its row.
template <class T, int width, bool aligned>
__device__ void load_terms(const SumLaunch<T>& launch, const PairEnd& end,
                           cuda::Elements<width, aligned> place, float (&terms)[width]) {
  if (!launch.multiplies) {
    place.row = end.pair;
    return place.load(launch.gradient, terms);
  }
  place.row = end.other;
  place.load(end.is_target != 0 ? launch.of_targets : launch.of_sources, terms);
  const T* const slopes = launch.gradient.data + end.pair * launch.gradient.stride;
  if (launch.one_head) {
    const float slope = cuda::widen(*slopes);
#pragma unroll
    for (int i = 0; i < width; ++i) terms[i] *= slope;
    return;
  }
#pragma unroll
  for (int i = 0; i < width; ++i) {
    if (i < place.count) terms[i] *= cuda::widen(slopes[(place.col + i) / launch.head_width]);
  }
}

template <class T, int width, bool aligned>
__global__ __launch_bounds__(threads) void sum_pieces(const SumLaunch<T> launch) {
  cuda::begin_overlapped();
  const std::int64_t piece =
      std::int64_t{blockIdx.x} * (threads / launch.lanes) + threadIdx.x / launch.lanes;
  const std::int64_t begin = piece * launch.length;
  auto place = columns_of<width, aligned>(launch.cols, launch.lanes);
  if (begin >= launch.num_ends || place.count == 0) return;
  const std::int64_t end =
      begin + launch.length < launch.num_ends ? begin + launch.length : launch.num_ends;
  const int row_before = begin == 0 ? -1 : launch.ends[begin - 1].row;
  const int row_behind = end == launch.num_ends ? -1 : launch.ends[end].row;
  float sums[width] = {};
  const auto write = [&](int row) {
    if (row == row_before || row == row_behind) {
      const std::int64_t slot = 2 * piece + (row == row_before ? 0 : 1);
      place.row = slot;
      place.store(sums, cuda::Rows<float>{launch.parts, launch.cols});
    } else {
      place.row = row;
      if (row < launch.num_rows) place.store(sums, launch.y);
    }
  };
  int row = launch.ends[begin].row;
  for (std::int64_t first = begin; first < end; first += ends_ahead) {
    PairEnd next[ends_ahead];
    float terms[ends_ahead][width];
#pragma unroll
    for (int i = 0; i < ends_ahead; ++i) {
      if (first + i < end) next[i] = launch.ends[first + i];
    }
#pragma unroll
    for (int i = 0; i < ends_ahead; ++i) {
      const bool is_wanted = first + i < end && (launch.sides >> next[i].is_target & 1) != 0;
      if (is_wanted) {
        load_terms(launch, next[i], place, terms[i]);
      } else {
#pragma unroll
        for (int j = 0; j < width; ++j) terms[i][j] = 0;
      }
    }
#pragma unroll
    for (int i = 0; i < ends_ahead; ++i) {
      if (first + i >= end) break;
      if (next[i].row != row) {
        write(row);
        row = next[i].row;
#pragma unroll
        for (int j = 0; j < width; ++j) sums[j] = 0;
      }
#pragma unroll
      for (int j = 0; j < width; ++j) sums[j] += terms[i][j];
    }
  }
  write(row);
}

/// A warp for each row: rows in several pieces, and rows without ends.
template <class T, int width, bool aligned>
__global__ __launch_bounds__(threads) void add_pieces(const SumLaunch<T> launch) {
  cuda::begin_overlapped();
  const std::int64_t row = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32;
  if (row >= launch.num_rows) return;
  const std::int64_t begin = launch.offsets[row], end = launch.offsets[row + 1];
  const std::int64_t first = begin / launch.length;
  const std::int64_t last = end > begin ? (end - 1) / launch.length : first;
  if (end > begin && first == last) return;
  auto place = columns_of<width, aligned>(launch.cols, launch.lanes);
  const int team = static_cast<int>(threadIdx.x) % 32 / launch.lanes, teams = 32 / launch.lanes;
  float sums[width] = {};
  if (end > begin) {
#pragma unroll 4
    for (std::int64_t piece = first + team; piece <= last; piece += teams) {
      float part[width];
      place.row = 2 * piece + (piece == first ? 1 : 0);
      place.load(cuda::Rows<const float>{launch.parts, launch.cols}, part);
#pragma unroll
      for (int i = 0; i < width; ++i) sums[i] += part[i];
    }
  }
  for (int distance = launch.lanes; distance < 32; distance *= 2) {
#pragma unroll
    for (int i = 0; i < width; ++i) sums[i] += __shfl_xor_sync(~0u, sums[i], distance);
  }
  if (team != 0) return;
  place.row = row;
  place.store(sums, launch.y);
}

template <class T>
void run(const PairSum& sum, Stream stream, const DenseWorkspaceUse& use) {
  constexpr int width = cuda::chunk<T>;
  const PairEnds::State& lists = *sum.lists;
  SumLaunch<T> launch{};
  launch.ends = lists.ends.data();
  launch.offsets = lists.offsets.data();
  launch.num_ends = 2 * lists.num_pairs;
  launch.num_rows = sum.y.rows;
  launch.sides = sum.sides;
  launch.multiplies = sum.multiplies();
  launch.of_sources = rows_of<T>(sum.others[0]);
  launch.of_targets = rows_of<T>(sum.others[1]);
  launch.gradient = rows_of<T>(sum.gradient);
  launch.cols = sum.y.cols;
  launch.one_head = sum.gradient.cols == 1;
  launch.head_width = launch.cols / sum.gradient.cols;
  launch.y = rows_of<T>(sum.y);
  launch.parts = reinterpret_cast<float*>(use.data());
  // Two sums of a piece are to fit where they are kept.
  constexpr std::int64_t shortest = 32;
  constexpr auto room = cuda::blas_workspace_bytes / static_cast<std::int64_t>(sizeof(float));
  const std::int64_t most = std::max<std::int64_t>(room / (2 * launch.cols), 1);
  launch.length = std::max(shortest, (launch.num_ends + most - 1) / most);
  const std::int64_t pieces = (launch.num_ends + launch.length - 1) / launch.length;
  cuda::Extent extent = cuda::Extent{2, launch.cols}
                            .with(launch.of_sources)
                            .with(launch.of_targets)
                            .with(launch.y)
                            .with(cuda::Rows<const float>{launch.parts, launch.cols});
  if (!launch.multiplies) extent = extent.with(launch.gradient);
  const auto start = [&](auto chosen_width, auto aligned) {
    constexpr int w = decltype(chosen_width)::value;
    constexpr bool on_boundaries = decltype(aligned)::value;
    launch.lanes = cuda::team_lanes((launch.cols + w - 1) / w);
    const auto blocks = static_cast<unsigned>((launch.cols + launch.lanes * w - 1) /
                                              (std::int64_t{launch.lanes} * w));
    cuda::launch_overlapped(sum_pieces<T, w, on_boundaries>,
                            dim3(cuda::num_blocks(pieces, threads / launch.lanes), blocks), threads,
                            stream, launch);
    cuda::launch_overlapped(add_pieces<T, w, on_boundaries>,
                            dim3(cuda::num_blocks(launch.num_rows, threads / 32), blocks), threads,
                            stream, launch);
  };
  if (extent.aligned && launch.cols % width == 0) {
    start(std::integral_constant<int, width>{}, std::true_type{});
  } else {
    start(std::integral_constant<int, 1>{}, std::false_type{});
  }
}

}  // namespace

void sum_ends(const PairSum& sum, Stream stream, const DenseWorkspace* workspace) {
  const Device device = sum.lists->place.device;
  const cuda_backend::CurrentDevice current(device.index);
  const DenseWorkspaceUse use(workspace, "gradients of pairs", device, stream);
  cuda::visit_type(sum.y.type, [&]<class T>(T) { run<T>(sum, stream, use); });
}

}  // namespace tessera::ops::on_gpu
