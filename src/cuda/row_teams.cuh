// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "cuda/elements.cuh"
#include "cuda/launch.cuh"

/// Passes in which some lanes of a warp share a row, or a part of it, and add something over it.
namespace tessera::cuda {

inline constexpr int team_threads = 256;

/// The lanes that share columns [begin, end) of a row. Lanes of a team without a row take part in
/// sums with nothing.
template <int width, bool aligned>
struct RowTeam {
  std::int64_t row = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t cols = 0;  ///< of the whole matrix
  int lanes = 1;
  int lane = 0;

  /// Calls `visit(place)` for this lane's chunks.
  template <class Visit>
  __device__ void each(Visit&& visit) const {
    Elements<width, aligned> place;
    place.row = row;
    place.cols = cols;
    for (place.col = begin + std::int64_t{lane} * width; place.col < end;
         place.col += std::int64_t{lanes} * width) {
      place.count = static_cast<int>(end - place.col < width ? end - place.col : width);
      visit(place);
    }
  }

  /// Over the lanes of the team; every lane gets the same bits. All lanes of the warp must call.
  template <class Number>
  __device__ Number sum(Number value) const {
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      value += __shfl_xor_sync(~0u, value, distance);
    }
    return value;
  }
  __device__ float largest(float value) const {
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      value = fmaxf(value, __shfl_xor_sync(~0u, value, distance));
    }
    return value;
  }
};

/// Lanes for a row of so many chunks.
inline int team_lanes(std::int64_t chunks) {
  return static_cast<int>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(chunks, 1, 32))));
}

/// Rows cut into `pieces` of equal width, one team each: team t has piece t % pieces of row
/// t / pieces.
template <int width, bool aligned, class Function>
__global__ __launch_bounds__(team_threads) void over_rows(std::int64_t rows, std::int64_t cols,
                                                          std::int64_t pieces, int lanes,
                                                          const Function function) {
  begin_overlapped();
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t number = std::int64_t{blockIdx.x} * (team_threads / lanes) + thread / lanes;
  RowTeam<width, aligned> team;
  team.lanes = lanes;
  team.lane = thread % lanes;
  team.cols = cols;
  team.row = number / pieces;
  if (team.row < rows) {
    team.begin = (number - team.row * pieces) * (cols / pieces);
    team.end = team.begin + cols / pieces;
  }
  function(team, team.row < rows);
}

/// Calls `function(team, has_row)` for every piece of every row.
template <int width, class Function>
void for_rows(const Extent& extent, std::int64_t pieces, const Function& function, Stream stream) {
  if (extent.rows == 0 || pieces == 0) return;
  const std::int64_t piece_cols = extent.cols / pieces;
  const auto run = [&](auto chosen_width, auto aligned) {
    constexpr int w = decltype(chosen_width)::value;
    const int lanes = team_lanes((piece_cols + w - 1) / w);
    const dim3 grid(num_blocks(extent.rows * pieces, team_threads / lanes));
    launch_overlapped(over_rows<w, decltype(aligned)::value, Function>, grid, team_threads, stream,
                      extent.rows, extent.cols, pieces, lanes, function);
  };
  if (extent.aligned && piece_cols % width == 0) {
    run(std::integral_constant<int, width>{}, std::true_type{});
  } else {
    run(std::integral_constant<int, 1>{}, std::false_type{});
  }
}

}  // namespace tessera::cuda
