// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/gemm/cuda/normed_tiles.cuh"

/// The gradient of a dense layer's weight before a batch norm, where the layer's input needs none:
/// as `normed_gradient` without its second product, and of wider rows. A block makes planes of a
/// tile, then multiplies them, while rows of the next ones are in flight and another block of
/// the same processor does the other of the two.
namespace tessera::ops {

inline constexpr int weight_threads = product_threads;
inline constexpr int weight_stages = 2;
inline constexpr int weight_lines = 32;
inline constexpr int widest_normed_weight = 96;

struct WeightLayout {
  static constexpr int plane_bytes = weight_lines * 128;
  static constexpr int planes_bytes = num_planes * plane_bytes;

  /// Planes of the gradient, of the first 64 columns of x and of the rest of it.
  static constexpr int gradient_planes = 0;
  static constexpr int x_planes = planes_bytes;
  static constexpr int rest_planes = 2 * planes_bytes;

  /// Rows as they come: of y, of the gradient, of x.
  static constexpr int narrow_bytes = weight_lines * 64 * 4;
  static constexpr int stage_bytes = 2 * narrow_bytes + weight_lines * widest_normed_weight * 4;
  static constexpr int stages = 3 * planes_bytes;
  static constexpr int columns = stages + weight_stages * stage_bytes;
  static constexpr int arrivals = columns + 5 * 64 * 4;
  /// 1024 bytes more, to begin on such a boundary.
  static constexpr int bytes = arrivals + weight_stages * 8 + 1024;
};

/// How rows of a matrix come to a stage: as one, with what lies between them, where there is `room`
/// for that many numbers of a row.
struct StagedRows {
  cuda::Rows<const float> matrix;
  int cols, room;

  __device__ bool at_once() const { return matrix.stride <= room; }
  /// Numbers from one row to the next.
  __device__ int pitch() const { return at_once() ? static_cast<int>(matrix.stride) : cols; }
  __device__ int bytes(int lines) const { return ((lines - 1) * pitch() + cols) * 4; }
  __device__ void copy(std::int64_t first, int lines, char* place, std::uint32_t barrier) const {
    const std::uint32_t to = cuda::shared_address(place);
    const float* const from = matrix.data + first * matrix.stride;
    if (at_once()) return cuda::copy_bytes(to, from, bytes(lines), barrier);
#pragma unroll 1
    for (int i = 0; i < lines; ++i) {
      cuda::copy_bytes(to + static_cast<std::uint32_t>(i * cols * 4), from + i * matrix.stride,
                       cols * 4, barrier);
    }
  }
};

/// The tiles of a block, which are a grid apart, from memory into planes; x has `more`
/// columns than 64, 0, 16 or 32.
template <int more>
class WeightTiles {
 public:
  __device__ WeightTiles(const NormedLaunch& launch, char* memory)
      : launch_(launch), memory_(memory) {
    const std::int64_t tiles = (launch.rows + weight_lines - 1) / weight_lines;
    count_ = static_cast<int>((tiles - blockIdx.x + gridDim.x - 1) / gridDim.x);
  }

  __device__ int count() const { return count_; }

  /// What does not change from tile to tile; a barrier follows.
  __device__ void keep_constants() const {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < weight_stages) cuda::init_barrier(arrival(thread), 1);
    cuda::publish_barriers();
    if (thread < 64) keep_gradient_columns(launch_, columns());
  }

  /// Begins to copy the rows of a tile, if there is one, to its stage; for one thread.
  __device__ void copy(int tile) const {
    if (tile >= count_) return;
    const std::int64_t first = first_row(tile);
    const int lines = static_cast<int>(min(launch_.rows - first, std::int64_t{weight_lines}));
    const std::uint32_t barrier = arrival(tile % weight_stages);
    const StagedRows y = rows_of_y(), slopes = rows_of_gradient(), x = rows_of_x();
    cuda::expect_bytes(barrier, y.bytes(lines) + slopes.bytes(lines) + x.bytes(lines));
    y.copy(first, lines, staged_y(tile), barrier);
    slopes.copy(first, lines, staged_gradient(tile), barrier);
    x.copy(first, lines, staged_x(tile), barrier);
  }

  /// Makes planes of a tile when it has come.
  __device__ void convert(int tile) const {
    cuda::wait_for_barrier(arrival(tile % weight_stages), tile / weight_stages % 2);
    const std::int64_t first = first_row(tile);
#pragma unroll
    for (int line = static_cast<int>(threadIdx.x) / 16; line < weight_lines;
         line += weight_threads / 16) {
      keep_gradient(tile, first, line);
      keep_x(tile, first, line, own_four(), memory_ + WeightLayout::x_planes, own_four());
    }
    if constexpr (more > 0) {
      constexpr int fours = more / 4;
      const int line = static_cast<int>(threadIdx.x) / fours;
      const int four = static_cast<int>(threadIdx.x) % fours;
      if (line < weight_lines) {
        keep_x(tile, first, line, 16 + four, memory_ + WeightLayout::rest_planes, four);
      }
    }
    cuda::fence_shared_for_wgmma();
  }

 private:
  /// Four numbers of the gradient of y, by what batch norm left to do to their columns.
  __device__ void keep_gradient(int tile, std::int64_t first, int line) const {
    const int four = own_four();
    const bool exists = first + line < launch_.rows;
    const float4 y = four_of(staged_y(tile), line * rows_of_y().pitch(), four);
    const float4 slopes = four_of(staged_gradient(tile), line * rows_of_gradient().pitch(), four);
    const float of_y[4] = {y.x, y.y, y.z, y.w};
    float gradients[4] = {slopes.x, slopes.y, slopes.z, slopes.w};
    GradientColumn of_columns[4];
    fetch_gradient_columns(columns(), four, of_columns);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float value = of_columns[i].value(of_y[i], gradients[i], launch_.relu);
      // What is not there is 0 in planes, whatever lies in its place.
      gradients[i] = exists && four * 4 < launch_.out ? value : 0.0f;
    }
    keep(memory_ + WeightLayout::gradient_planes, line, four, gradients);
  }

  __device__ static int own_four() { return static_cast<int>(threadIdx.x) % 16; }
  __device__ std::int64_t first_row(int tile) const {
    return (blockIdx.x + std::int64_t{gridDim.x} * tile) * weight_lines;
  }
  __device__ StagedRows rows_of_y() const { return {launch_.y, launch_.out, 64}; }
  __device__ StagedRows rows_of_gradient() const { return {launch_.gradient, launch_.out, 64}; }
  /// Up to the next boundary.
  __device__ StagedRows rows_of_x() const {
    return {launch_.x, (launch_.in + 3) / 4 * 4, widest_normed_weight};
  }

  __device__ char* staged_y(int tile) const {
    return memory_ + WeightLayout::stages + tile % weight_stages * WeightLayout::stage_bytes;
  }
  __device__ char* staged_gradient(int tile) const {
    return staged_y(tile) + WeightLayout::narrow_bytes;
  }
  __device__ char* staged_x(int tile) const {
    return staged_y(tile) + 2 * WeightLayout::narrow_bytes;
  }
  __device__ std::uint32_t arrival(int stage) const {
    return cuda::shared_address(memory_ + WeightLayout::arrivals + stage * 8);
  }
  __device__ float* columns() const {
    return reinterpret_cast<float*>(memory_ + WeightLayout::columns);
  }
  __device__ static float4 four_of(const char* rows, int first, int four) {
    return *reinterpret_cast<const float4*>(rows + (first + four * 4) * 4);
  }
  __device__ static void keep(char* planes, int line, int four, const float (&values)[4]) {
    FourInPlanes(values).keep(planes + place_in_line(line, four), WeightLayout::plane_bytes);
  }
  /// Four numbers of a row of x, to a place in planes.
  __device__ void keep_x(int tile, std::int64_t first, int line, int four, char* planes,
                         int to) const {
    const float4 x = four_of(staged_x(tile), line * rows_of_x().pitch(), four);
    float values[4] = {x.x, x.y, x.z, x.w};
    const bool exists = first + line < launch_.rows;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[i] = exists && four * 4 + i < launch_.in ? values[i] : 0.0f;
    }
    keep(planes, line, to, values);
  }

  const NormedLaunch& launch_;
  char* memory_;
  int count_;
};

/// Calls `visit(row, col, i)` for the sums of a thread that count. With `more` than 64 columns the
/// second group has those, else the groups have the same columns of other lines.
template <int more, class Visit>
__device__ void for_weight_sums(int group, Visit&& visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane / 4;
  const int col = (more > 0 ? group * 64 : 0) + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    if (more > 0 && group == 1 && i >= more / 2) break;
    visit(row + i / 2 % 2 * 8, col + i / 4 * 8 + i % 2, i);
  }
}

template <int more>
__global__ __launch_bounds__(weight_threads,
                             2) void normed_weight(const __grid_constant__ NormedLaunch launch) {
#if defined(TESSERA_HAS_WGMMA)
  extern __shared__ char shared[];
  const auto [address, memory] = cuda::AlignedShared(shared);
  const int thread = static_cast<int>(threadIdx.x);
  const int group = thread / 128;
  WeightTiles<more> tiles(launch, memory);
  cuda::begin_overlapped();
  tiles.keep_constants();
  __syncthreads();
  if (thread == 0) {
    for (int tile = 0; tile < weight_stages; ++tile) tiles.copy(tile);
  }
  float sums[32] = {};
  for (int tile = 0; tile < tiles.count(); ++tile) {
    tiles.convert(tile);
    __syncthreads();
    // All have read the stage of this tile, whose planes are there.
    if (thread == 0) tiles.copy(tile + weight_stages);
    const std::uint32_t gradient = address + WeightLayout::gradient_planes;
    float products[32];
    multiply_in_groups<more, num_planes, weight_lines>(gradient, address + WeightLayout::x_planes,
                                                       address + WeightLayout::rest_planes, group,
                                                       products);
    add_lines<more>(group, products, sums);
    __syncthreads();
  }

  constexpr int width = 64 + more;
  constexpr int sets = more > 0 ? 1 : 2;
  float* const totals = reinterpret_cast<float*>(memory);
  for_weight_sums<more>(group, [&](int row, int col, int i) {
    totals[((more > 0 ? 0 : group) * 64 + row) * width + col] = sums[i];
  });
  __syncthreads();
  constexpr int num_sums = 64 * width / product_threads;
  float own[num_sums];
#pragma unroll
  for (int i = 0; i < num_sums; ++i) {
    const int at = i * product_threads + thread;
    own[i] = totals[at] + (sets > 1 ? totals[64 * width + at] : 0.0f);
  }
  finish_weight<weight_lines>(launch, own,
                              [](int number) { return make_int2(number / width, number % width); });
#endif
}

}  // namespace tessera::ops
