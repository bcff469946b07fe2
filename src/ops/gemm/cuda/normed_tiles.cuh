// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "cuda/bulk_copy.cuh"
#include "cuda/named_barrier.cuh"
#include "ops/gemm/cuda/normed_launch.hpp"
#include "ops/gemm/cuda/stream_inner.cuh"

/// What a block of `normed_gradient` has in shared memory: 64 rows of x and of the gradient of y as
/// bf16 planes, twice, so that one tile is converted while another is multiplied; the weight as
/// such; and two stages of rows as they come from memory.
namespace tessera::ops {

/// The first of them bring rows and convert them; the others multiply, one group every second tile.
inline constexpr int normed_threads = 512;
inline constexpr int normed_converters = 256;
inline constexpr int normed_rows = inner_lines;
inline constexpr int most_normed_inner = 4;

static_assert(normed_rows * most_normed_inner == normed_converters);

/// Numbers of barriers: planes of a side are there; the group that multiplies them has read them;
/// those who convert meet.
struct NormedBarriers {
  __device__ static int full(int side) { return 1 + side; }
  __device__ static int empty(int side) { return 3 + side; }
  static constexpr int of_converters = 5, converted = 6;
  /// Those who convert, and one group.
  static constexpr int threads_of_side = normed_converters + 128;
};

struct NormedLayout {
  static constexpr int matrix_bytes = normed_rows * 64 * 4;
  static constexpr int stage_bytes = 3 * matrix_bytes;

  /// Of a tile on one of two sides.
  __device__ static constexpr int x_planes(int side) { return side * 2 * inner_tile_bytes; }
  __device__ static constexpr int gradient_planes(int side) {
    return (side * 2 + 1) * inner_tile_bytes;
  }
  static constexpr int weight_planes = 4 * inner_tile_bytes;
  static constexpr int stages = 5 * inner_tile_bytes;
  /// Numbers of columns lie one kind after the other, so that neighbours are read at once.
  static constexpr int columns = stages + 2 * stage_bytes;
  static constexpr int x_columns = columns + 5 * 64 * 4;
  static constexpr int right = x_columns + 3 * 64 * 4;
  static constexpr int left = right + most_normed_inner * 64 * 4;
  static constexpr int left_bytes = normed_rows * most_normed_inner * 4;
  /// Barriers for what is copied to the two stages.
  static constexpr int arrivals = left + 2 * left_bytes;
  static constexpr int end = arrivals + 2 * 8;
  /// 1024 bytes more, to begin on such a boundary.
  static constexpr int bytes = end + 1024;

  static constexpr int staged_row_bytes = 64 * 4;
};

/// Where four neighbours lie in a plane: as the matrix units read lines of 64 numbers.
__device__ inline int place_in_line(int line, int four) {
  return line * 128 + ((four / 2) ^ (line % 8)) * 16 + four % 2 * 8;
}

/// Numbers of columns of the gradient lie in shared memory one kind after the other, so that
/// neighbours are read at once; for the first 64 threads.
__device__ inline void keep_gradient_columns(const NormedLaunch& launch, float* columns) {
  const int thread = static_cast<int>(threadIdx.x);
  const GradientColumn column = thread < launch.out ? launch.columns[thread] : GradientColumn{};
  const float numbers[] = {column.mean, column.factor, column.shift, column.mean_gradient,
                           column.weighted};
  for (int i = 0; i < 5; ++i) columns[i * 64 + thread] = numbers[i];
}
__device__ inline void take_four(const float* row, int four, float (&values)[4]) {
  const float4 all = *reinterpret_cast<const float4*>(row + four * 4);
  values[0] = all.x, values[1] = all.y, values[2] = all.z, values[3] = all.w;
}
__device__ inline void fetch_gradient_columns(const float* columns, int four,
                                              GradientColumn (&of_columns)[4]) {
  float numbers[5][4];
#pragma unroll
  for (int i = 0; i < 5; ++i) take_four(columns + i * 64, four, numbers[i]);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    of_columns[i] = {numbers[0][i], numbers[1][i], numbers[2][i], numbers[3][i], numbers[4][i], {}};
  }
}

// Number by number, where planes could not hold the factors: rare, so out of the way.

/// The gradient of y at one place, straight from memory.
__device__ inline float plain_gradient(const NormedLaunch& launch, std::int64_t row,
                                       std::int64_t col) {
  float gradient = 0;
  if (launch.gradient.data != nullptr) {
    gradient = launch.gradient.data[row * launch.gradient.stride + col];
  } else {
    for (int k = 0; k < launch.inner; ++k) {
      gradient = fmaf(launch.left.data[row * launch.left.stride + k],
                      launch.right.data[k * launch.right.stride + col], gradient);
    }
  }
  return launch.columns[col].value(launch.y.data[row * launch.y.stride + col], gradient,
                                   launch.relu);
}

/// What a lane has of a tile's grad_x that is not finite.
static __device__ __noinline__ void find_plain_x(const NormedLaunch& launch, std::int64_t first,
                                                 float* products) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row = first + thread / 32 % 4 * 16 + thread % 32 / 4;
  for (int i = 0; i < 32; ++i) {
    const std::int64_t at_row = row + i / 2 % 2 * 8;
    const int col = i / 4 * 8 + thread % 4 * 2 + i % 2;
    if (isfinite(products[i]) || at_row >= launch.rows || col >= launch.in) continue;
    float sum = 0;
    for (std::int64_t k = 0; k < launch.out; ++k) {
      sum = fmaf(plain_gradient(launch, at_row, k),
                 launch.weight.data[k * launch.weight.stride + col], sum);
    }
    products[i] = sum;
  }
}

/// One number of a block's share of grad_weight.
template <int tile_rows>
__device__ __noinline__ float plain_of_weight(const NormedLaunch& launch, std::int64_t row,
                                              std::int64_t col) {
  float sum = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * tile_rows;
  for (std::int64_t first = std::int64_t{blockIdx.x} * tile_rows; first < launch.rows;
       first += step) {
    const std::int64_t end = min(launch.rows, first + tile_rows);
    for (std::int64_t i = first; i < end; ++i) {
      float x = launch.x.data[i * launch.x.stride + col];
      if (launch.x_columns.numbers != nullptr) {
        x = launch.x_columns.value(x, launch.x_columns.numbers[col]);
      }
      sum = fmaf(plain_gradient(launch, i, row), x, sum);
    }
  }
  return sum;
}

/// A thread's sums of a block's share of grad_weight: `place_of(number)` says which row and column
/// the block's sum of that number has. Finds plainly what planes could not hold, adds up what all
/// blocks have and stores it; whether this block did.
template <int tile_rows, int num_sums, class PlaceOf>
__device__ bool finish_weight(const NormedLaunch& launch, float (&own)[num_sums],
                              PlaceOf&& place_of) {
  const int thread = static_cast<int>(threadIdx.x);
  const auto each = [&](auto&& visit) {
    if (thread >= product_threads) return;
#pragma unroll
    for (int i = 0; i < num_sums; ++i) {
      const int2 place = place_of(i * product_threads + thread);
      if (place.x < launch.out && place.y < launch.in) visit(place.x, place.y, own[i]);
    }
  };
  each([&](int row, int col, float& sum) {
    if (!isfinite(sum)) sum = plain_of_weight<tile_rows>(launch, row, col);
  });
  if (!add_across_splits(launch.split, {0, 0, 0, static_cast<int>(blockIdx.x)}, own)) return false;
  each([&](int row, int col, float sum) {
    launch.grad_weight.data[row * launch.grad_weight.stride + col] = sum;
  });
  return true;
}

/// Brings the rows of tiles from memory into planes, by the first threads of a block: one of
/// them asks for copies, all convert. The kernel is made for each answer to two questions, whether
/// something is done to columns of x (`reads_columns`) and whether the gradient is a product
/// (`factors`): none is asked for each number.
template <bool reads_columns, bool factors>
class NormedTiles {
 public:
  /// They are for a batch norm before the layer.
  static constexpr bool may_have_sums = reads_columns;

  __device__ NormedTiles(const NormedLaunch& launch, char* memory)
      : launch_(launch), memory_(memory) {}

  /// What does not change from tile to tile; a barrier follows.
  __device__ void keep_constants() const {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < 2) cuda::init_barrier(arrival(thread), 1);
    cuda::publish_barriers();
#pragma unroll 1
    for (int place = thread; place < 64 * 16; place += normed_threads) {
      const int line = place / 16, four = place % 16;
      float values[4] = {};
      if (line < launch_.out && four * 4 < launch_.in) {
        load_neighbours(launch_.weight.data + line * launch_.weight.stride + four * 4, 4, 1,
                        values);
      }
      keep_in_planes(NormedLayout::weight_planes, line, four, values);
    }
    if (thread < 64) {
      keep_gradient_columns(launch_, columns());
      const bool reads = reads_columns && thread < launch_.in;
      const cuda::ColumnNumbers of_x =
          reads ? launch_.x_columns.numbers[thread] : cuda::ColumnNumbers{0, 0, 0, 0};
      const float numbers[] = {of_x.a, of_x.b, of_x.c};
      for (int i = 0; i < 3; ++i) x_columns()[i * 64 + thread] = numbers[i];
    }
    if (factors && thread < 64) {
      for (int k = 0; k < most_normed_inner; ++k) {
        right()[k * 64 + thread] = k < launch_.inner && thread < launch_.out
                                       ? launch_.right.data[k * launch_.right.stride + thread]
                                       : 0.0f;
      }
    }
  }

  /// Begins to copy the rows from `first` on to a side, for one thread. What lies there beyond the
  /// last row and beyond the columns is not touched.
  __device__ void copy(std::int64_t first, int side) const {
    const int count = static_cast<int>(min(launch_.rows - first, std::int64_t{normed_rows}));
    const int cols = launch_.in + launch_.out * (factors ? 1 : 2);
    cuda::expect_bytes(arrival(side), count * cols * 4);
    const auto copy_of = [&](const cuda::Rows<const float>& matrix, int columns, int which) {
      std::uint32_t to = cuda::shared_address(staged(side, which));
      const float* from = matrix.data + first * matrix.stride;
      // Rows without a gap between them are one.
      const bool at_once = columns == 64 && matrix.stride == 64;
      const int pieces = at_once ? 1 : count;
      const int bytes = columns * 4 * (at_once ? count : 1);
#pragma unroll 1
      for (int i = 0; i < pieces; ++i) {
        cuda::copy_bytes(to, from, bytes, arrival(side));
        to += NormedLayout::staged_row_bytes;
        from += matrix.stride;
      }
    };
    copy_of(launch_.x, launch_.in, 0);
    copy_of(launch_.y, launch_.out, 1);
    if constexpr (!factors) copy_of(launch_.gradient, launch_.out, 2);
  }

  /// Returns when a side's rows are there; `turn` counts its tiles.
  __device__ void wait_for_rows(int side, int turn) const {
    cuda::wait_for_barrier(arrival(side), turn % 2);
  }

  /// The left factor of a gradient that is a product has few numbers; each converter brings one.
  __device__ void fetch_left(std::int64_t first) {
    const int thread = static_cast<int>(threadIdx.x);
    const std::int64_t row = first + thread / most_normed_inner;
    const int k = thread % most_normed_inner;
    const bool exists = factors && row < launch_.rows && k < launch_.inner;
    left_ = exists ? launch_.left.data[row * launch_.left.stride + k] : 0.0f;
  }
  /// A barrier of the converters follows before `convert` reads it.
  __device__ void keep_left(int side) const {
    if (factors) left(side)[threadIdx.x] = left_;
  }

  /// Makes planes of a tile that has arrived.
  __device__ void convert(std::int64_t first, int side) const {
    // A thread has the same columns in every line.
    const int own = static_cast<int>(threadIdx.x) % 16;
    const bool has_x = own * 4 < launch_.in, has_y = own * 4 < launch_.out;
    GradientColumn of_columns[4];
    cuda::ColumnNumbers of_x[4];
    float of_right[most_normed_inner][4];
    fetch_columns(own, of_columns, of_x, of_right);
    each_four([&](int line, int four) {
      const bool exists = first + line < launch_.rows;
      const float4 x = four_of(side, 0, line, four);
      float values[4] = {x.x, x.y, x.z, x.w};
      if constexpr (reads_columns) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          values[i] = launch_.x_columns.value(values[i], of_x[i]);
        }
      }
      const float4 y = four_of(side, 1, line, four);
      const float of_y[4] = {y.x, y.y, y.z, y.w};
      float gradients[4];
      find_gradients(side, line, four, of_right, gradients);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        gradients[i] = of_columns[i].value(of_y[i], gradients[i], launch_.relu);
        // What is not there is 0 in planes, whatever lies in its place.
        values[i] = exists && has_x ? values[i] : 0.0f;
        gradients[i] = exists && has_y ? gradients[i] : 0.0f;
      }
      keep_in_planes(NormedLayout::x_planes(side), line, four, values);
      keep_in_planes(NormedLayout::gradient_planes(side), line, four, gradients);
    });
  }

  /// One of the three numbers of two neighbouring columns of x.
  __device__ float2 x_numbers(int which, int col) const {
    return *reinterpret_cast<const float2*>(x_columns() + which * 64 + col);
  }

 private:
  __device__ void keep_in_planes(int planes, int line, int four, const float (&values)[4]) const {
    FourInPlanes(values).keep(memory_ + planes + place_in_line(line, four), inner_plane_bytes);
  }

  /// The same lines and columns in every call, two lines at once.
  template <class Work>
  __device__ static void each_four(Work&& work) {
    constexpr int lines = normed_converters / 16;
    const int line = static_cast<int>(threadIdx.x) / 16, four = static_cast<int>(threadIdx.x) % 16;
#pragma unroll 2
    for (int i = 0; i < normed_rows / lines; ++i) work(i * lines + line, four);
  }

  __device__ char* staged(int side, int which) const {
    return memory_ + NormedLayout::stages + side * NormedLayout::stage_bytes +
           which * NormedLayout::matrix_bytes;
  }
  __device__ float4 four_of(int side, int which, int line, int four) const {
    return *reinterpret_cast<const float4*>(staged(side, which) +
                                            line * NormedLayout::staged_row_bytes + four * 16);
  }
  __device__ std::uint32_t arrival(int side) const {
    return cuda::shared_address(memory_ + NormedLayout::arrivals + side * 8);
  }
  __device__ float* columns() const {
    return reinterpret_cast<float*>(memory_ + NormedLayout::columns);
  }
  __device__ float* x_columns() const {
    return reinterpret_cast<float*>(memory_ + NormedLayout::x_columns);
  }
  __device__ float* right() const {
    return reinterpret_cast<float*>(memory_ + NormedLayout::right);
  }
  __device__ float* left(int side) const {
    return reinterpret_cast<float*>(memory_ + NormedLayout::left + side * NormedLayout::left_bytes);
  }

  __device__ void fetch_columns(int four, GradientColumn (&of_columns)[4],
                                cuda::ColumnNumbers (&of_x)[4],
                                float (&of_right)[most_normed_inner][4]) const {
    fetch_gradient_columns(columns(), four, of_columns);
    float numbers[3][4];
#pragma unroll
    for (int i = 0; i < 3; ++i) take_four(x_columns() + i * 64, four, numbers[i]);
#pragma unroll
    for (int i = 0; i < 4; ++i) of_x[i] = {numbers[0][i], numbers[1][i], numbers[2][i], 0};
    if constexpr (factors) {
#pragma unroll
      for (int k = 0; k < most_normed_inner; ++k) take_four(right() + k * 64, four, of_right[k]);
    }
  }

  /// Of what batch norm put out.
  __device__ void find_gradients(int side, int line, int four,
                                 const float (&of_right)[most_normed_inner][4],
                                 float (&gradients)[4]) const {
    if constexpr (factors) {
#pragma unroll
      for (int i = 0; i < 4; ++i) gradients[i] = 0;
      float of_left[4];
      take_four(left(side), line, of_left);
      // Those that are not there are 0 on both sides.
#pragma unroll
      for (int k = 0; k < most_normed_inner; ++k) {
#pragma unroll
        for (int i = 0; i < 4; ++i) gradients[i] = fmaf(of_left[k], of_right[k][i], gradients[i]);
      }
    } else {
      const float4 found = four_of(side, 2, line, four);
      gradients[0] = found.x, gradients[1] = found.y;
      gradients[2] = found.z, gradients[3] = found.w;
    }
  }

  const NormedLaunch& launch_;
  char* memory_;
  float left_ = 0;
};

}  // namespace tessera::ops
