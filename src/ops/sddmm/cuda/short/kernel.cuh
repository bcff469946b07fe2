// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "cuda/launch.cuh"
#include "cuda/mma.cuh"
#include "cuda/occupancy.cuh"
#include "cuda/precision.cuh"
#include "ops/sddmm/cuda/short/steps.cuh"
#include "ops/sddmm/cuda/short/store.cuh"

/// Dot products of both ends of every edge with `mma.sync`, in windows of 16 rows.
///
/// A warp keeps the 16 rows of U in registers and goes through the columns of the window, 16 a
/// step. Four lanes load 16 bytes each of a column's row of V, and likewise of the rows of U: as
/// long as both are taken in the same order, a dot product does not care in which. So rows go from
/// memory to registers and are operands as they come, without a barrier.
///
///     lane      0 .. 3            4 .. 7            ...   28 .. 31
///     columns   0 and 1           2 and 3           ...   14 and 15         of a step
///     bytes     0-15 | 16-31 | 32-47 | 48-63, then the next 64
///
/// As soon as a register is multiplied, the load of what comes there next begins, be it of this
/// step or of the next one, of this window or of another: a warp always waits for as much as its
/// registers hold.
namespace tessera::ops {

template <class T>
inline constexpr bool splits = std::is_same_v<T, float>;

/// Words that a lane loads at once, and the products that are made of them.
template <class T>
class ShortProducts {
 public:
  __device__ void clear() {
#pragma unroll
    for (int block = 0; block < 2; ++block) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums_[block][i] = rests_[block][i] = 0;
    }
  }

  /// Adds the products of two rows of U and two of V, as far as a load brings them. Those of U are
  /// arranged as operands: see `arrange`.
  template <int words>
  __device__ void add(const std::uint32_t (&u)[2][words], const std::uint32_t (&v)[2][words]) {
    constexpr int pairs = words / 2;
#pragma unroll
    for (int i = 0; i < pairs; ++i) {
      std::uint32_t a[4], a_low[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int at = 4 * i + k;
        a[k] = u[at / words][at % words];
        if constexpr (splits<T>) a_low[k] = low(a[k]);
      }
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        const std::uint32_t b[2] = {v[block][2 * i], v[block][2 * i + 1]};
        cuda::multiply_16x8<T>(sums_[block], a, b);
        if constexpr (splits<T>) {
          const std::uint32_t b_low[2] = {low(b[0]), low(b[1])};
          cuda::multiply_16x8<T>(rests_[block], a, b_low);
          cuda::multiply_16x8<T>(rests_[block], a_low, b);
        }
      }
    }
  }

  /// The result of row lane / 4, or of that 8 further on, and column 4 * (lane % 4) + j.
  __device__ float of(int upper, int j) const {
    const float sum = sums_[j % 2][2 * upper + j / 2];
    return splits<T> ? sum + rests_[j % 2][2 * upper + j / 2] : sum;
  }

 private:
  /// What tf32 leaves out of a number.
  __device__ static std::uint32_t low(std::uint32_t word) {
    return __float_as_uint(__uint_as_float(word) - __uint_as_float(word & 0xffffe000u));
  }

  float sums_[2][4];   ///< of both columns that a lane loads
  float rests_[2][4];  ///< what tf32 leaves out of one side, times the other
};

/// Two rows of U as operands: the words that meet the same word of V side by side.
template <int words>
__device__ void arrange(std::uint32_t (&u)[2][words]) {
  std::uint32_t pairs[2 * words];
#pragma unroll
  for (int i = 0; i < words; ++i) {
    pairs[2 * i] = u[0][i];
    pairs[2 * i + 1] = u[1][i];
  }
#pragma unroll
  for (int i = 0; i < 2 * words; ++i) u[i / words][i % words] = pairs[i];
}

/// A lane's part of a row that four lanes hold: `words` words at once, `loads` times.
template <int bytes>
struct ShortRow {
  static constexpr int words = bytes < 64 ? 2 : 4;
  static constexpr int load_bytes = 16 * words;
  static constexpr int loads = bytes / load_bytes;
  using Raw = std::conditional_t<words == 4, uint4, uint2>;

  __device__ static const char* begin(const void* matrix, std::uint32_t row_bytes) {
    return static_cast<const char*>(matrix) + std::uint64_t{blockIdx.y} * row_bytes +
           threadIdx.x % 4 * sizeof(Raw);
  }

  __device__ static void load(std::uint32_t (&to)[words], const char* row, int i) {
    const Raw raw = load_now<Raw>(row + i * load_bytes);
    memcpy(to, &raw, sizeof(raw));
  }
};

/// Rows of exactly `bytes` bytes.
template <class T, int bytes>
class ShortRows {
 public:
  using Row = ShortRow<bytes>;
  static constexpr int loads = Row::loads;
  static constexpr int depth = loads < 4 ? loads : 4;  ///< loads of a row on their way

  __device__ explicit ShortRows(const ShortDotsLaunch& launch)
      : launch_(launch), u_(Row::begin(launch.u, bytes)), v_(Row::begin(launch.v, bytes)) {}

  /// Asks for the rows of a window.
  __device__ void take_window(VertexId first_row) {
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const char* const row = u_ + window_row(launch_, first_row, upper) * launch_.u_stride;
#pragma unroll
      for (int i = 0; i < loads; ++i) Row::load(held_[i][upper], row, i);
    }
  }

  /// Puts the rows of a window that have come in the order of operands.
  __device__ void arrange_window() {
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      arrange(held_[i]);
#pragma unroll
      for (int k = 0; k < 2 * Row::words; ++k) {
        // A branch to here, not a choice for every register.
        asm volatile("" : "+r"(held_[i][k / Row::words][k % Row::words]));
      }
    }
  }

  /// Asks for the first rows of V.
  __device__ void begin(const DotStep& step) {
    go_to(step);
#pragma unroll
    for (int i = 0; i < depth; ++i) ask(i, i);
  }

  /// Multiplies the rows of the step that were asked for, and asks for those of the next.
  __device__ void multiply(const DotStep& next, ShortProducts<T>& products) {
#pragma unroll
    for (int i = 0; i < loads; ++i) {
      products.add(held_[i], asked_[i % depth]);
      const int ahead = i + depth;
      if (ahead < loads) {
        ask(i % depth, ahead);
      } else {
        if (ahead == loads) go_to(next);
        ask(i % depth, ahead - loads);
      }
    }
  }

 private:
  __device__ void go_to(const DotStep& step) {
    columns_[0] = v_ + std::uint64_t{step.columns.x} * launch_.v_stride;
    columns_[1] = v_ + std::uint64_t{step.columns.y} * launch_.v_stride;
  }

  __device__ void ask(int place, int i) {
#pragma unroll
    for (int block = 0; block < 2; ++block) Row::load(asked_[place][block], columns_[block], i);
  }

  const ShortDotsLaunch& launch_;
  const char* u_;
  const char* v_;
  const char* columns_[2];
  std::uint32_t held_[loads][2][Row::words];
  std::uint32_t asked_[depth][2][Row::words];
};

/// Warps of a block and blocks of a multiprocessor, for as many registers as a lane needs.
struct ShortCrowd {
  int warps = 8;
  int blocks = 2;
};

template <class T, int bytes>
constexpr ShortCrowd short_crowd() {
  if (bytes == 0) return {8, 2};
  if (bytes <= 64) return {8, splits<T> ? 3 : 4};
  if (bytes == 128) return splits<T> ? ShortCrowd{5, 4} : ShortCrowd{8, 3};
  if (bytes == 256) return {8, 2};
  if (bytes == 512) return {6, 2};
  return {4, 2};
}

/// What a block has in shared memory.
template <class Store, int warps>
struct ShortShared {
  std::int32_t taken;
  typename Store::Results results[warps];
};

template <class T, int bytes, class Store>
__global__ __launch_bounds__(
    32 * short_crowd<T, bytes>().warps,
    short_crowd<T, bytes>().blocks) void short_dots(const __grid_constant__ ShortDotsLaunch
                                                        launch) {
  constexpr int warps = short_crowd<T, bytes>().warps;
  __shared__ ShortShared<Store, warps> shared;
  DotWalk walk(launch, &shared.taken, warps);
  Store store(launch, shared.results[threadIdx.x / 32]);
  DotStep now = walk.next();
  if (!now.exists) return;
  ShortRows<T, bytes> rows(launch);
  rows.take_window(now.first_row);
  store.begin_run(now.run);
  DotStep next = walk.next();
  rows.begin(now);
  while (true) {
    const auto mask = step_mask(launch, now.step);
    const DotStep after = walk.next();
    ShortProducts<T> products;
    products.clear();
    if (now.begins_run) rows.arrange_window();
    rows.multiply(next, products);
    if (next.begins_run) rows.take_window(next.first_row);
    store.put(now, mask, products);
    if (next.begins_run || !next.exists) store.flush();
    if (next.begins_run) store.begin_run(next.run);
    if (!next.exists) return;
    now = next;
    next = after;
  }
}

/// Rows of any number of 16 bytes: those of U are loaded again for every step.
template <class T, class Store>
__global__
__launch_bounds__(32 * short_crowd<T, 0>().warps, short_crowd<T, 0>().blocks) void short_dots_any(
    const __grid_constant__ ShortDotsLaunch launch) {
  constexpr int loads = 4;
  using Row = ShortRow<64 * loads>;
  using Part = cuda::Vector<T, 16>;
  constexpr int warps = short_crowd<T, 0>().warps;
  __shared__ ShortShared<Store, warps> shared;
  DotWalk walk(launch, &shared.taken, warps);
  Store store(launch, shared.results[threadIdx.x / 32]);
  const char* const u = Row::begin(launch.u, launch.row_bytes);
  const char* const v = Row::begin(launch.v, launch.row_bytes);
  for (DotStep now = walk.next(), next; now.exists; now = next) {
    next = walk.next();
    const auto mask = step_mask(launch, now.step);
    if (now.begins_run) store.begin_run(now.run);
    const char* const rows[4] = {u + window_row(launch, now.first_row, 0) * launch.u_stride,
                                 u + window_row(launch, now.first_row, 1) * launch.u_stride,
                                 v + std::uint64_t{now.columns.x} * launch.v_stride,
                                 v + std::uint64_t{now.columns.y} * launch.v_stride};
    ShortProducts<T> products;
    products.clear();
    for (std::uint32_t done = 0; done < launch.row_bytes; done += 64 * loads) {
      std::uint32_t words[loads][4][4];
#pragma unroll
      for (int k = 0; k < 4 * loads; ++k) {
        const std::uint32_t at = done + static_cast<std::uint32_t>(k / 4) * 64;
        const bool inside = at + threadIdx.x % 4 * 16 < launch.row_bytes;
        const Part part = Part::load_if(inside, rows[k % 4] + at);
        memcpy(words[k / 4][k % 4], &part.raw, sizeof(part.raw));
      }
#pragma unroll
      for (int i = 0; i < loads; ++i) {
        std::uint32_t of_u[2][4], of_v[2][4];
        memcpy(of_u, words[i][0], sizeof(of_u));
        memcpy(of_v, words[i][2], sizeof(of_v));
        arrange(of_u);
        products.add(of_u, of_v);
      }
    }
    store.put(now, mask, products);
    if (next.begins_run || !next.exists) store.flush();
  }
}

template <class T, int bytes, class Store>
constexpr auto short_kernel() {
  if constexpr (bytes == 0) {
    return short_dots_any<T, Store>;
  } else {
    return short_dots<T, bytes, Store>;
  }
}

template <class T, int bytes, class Store>
void launch_short_dots(const ShortDotsLaunch& launch, Stream stream) {
  const dim3 grid(static_cast<unsigned>(launch.num_blocks), static_cast<unsigned>(launch.heads));
  cuda::launch(short_kernel<T, bytes, Store>(), grid, 32 * short_crowd<T, bytes>().warps, stream,
               launch);
}

template <class T, int bytes, class Store>
int resident_short_dots() {
  return cuda::resident_blocks(short_kernel<T, bytes, Store>(), 32 * short_crowd<T, bytes>().warps,
                               0);
}

template <class T, class Store>
constexpr auto make_short_dots() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{ShortDotsFunction{launch_short_dots<T, short_dot_bytes[i], Store>,
                                        resident_short_dots<T, short_dot_bytes[i], Store>}...};
  }
  (std::make_index_sequence<short_dot_bytes.size()>{});
}

template <ShortDotsKey key>
std::span<const ShortDotsFunction> ShortDotsKernels<key>::get() {
  using T = cuda::Stored<key.precision>;
  using Store = std::conditional_t<key.direct, DirectStore<T>, DotStore<T>>;
  static constexpr auto functions = make_short_dots<T, Store>();
  return functions;
}

}  // namespace tessera::ops
