// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/divide.cuh"
#include "cuda/precision.cuh"
#include "ops/aggregate_update/cuda/fused/kernel.cuh"
#include "ops/aggregate_update/cuda/windows/launch.hpp"
#include "ops/aggregate_update/cuda/windows/long_stages.cuh"
#include "ops/windows/kernel.cuh"

/// Sums over tall windows (ops/windows/kernel.cuh) that are multiplied where they come up. The
/// registers in which the matrix unit leaves the sums of a window are those from which it takes the
/// left factor of the next product; the weights stand in shared memory. So a row of Z is written
/// only where somebody wants it, and while a window is multiplied by the weights the rows of X of
/// the next ones are under way.
namespace tessera::ops {

/// A loader of a kernel that multiplies the sums of a window by so many columns of weights at once.
template <class Loader, int cols>
struct WithUpdate : Loader {
  using Loader::Loader;
  static constexpr int update_cols = cols;
};

/// Sums are laid out as the matrix unit leaves them: no line of the weights is exchanged. Of every
/// 32 columns of Y a lane has 8 neighbours, which it stores at once.
struct WindowWeights : UpdateLayout<__nv_bfloat16> {
  __device__ static int line_of(int inner) { return inner; }
  __device__ static int place_of_column(int col) {
    const int lane = col % 32 / 8;
    const int pair = col % 8 / 2;
    return col / 32 * 32 + pair * 8 + lane * 2 + col % 2;
  }
};

/// A lane's two rows of a window of which it has, of every 8 features, the two at 2 * (lane % 4).
/// So many columns of Y are multiplied and stored before the next.
template <int width, int part_cols>
class WindowUpdate {
  using T = __nv_bfloat16;
  using Layout = WindowWeights;
  using Sums = float[width / 2];
  using Pair = cuda::Vector<T, 2 * static_cast<int>(sizeof(T))>;
  using Four = cuda::Vector<T, 4 * static_cast<int>(sizeof(T))>;
  /// Two rows as the features are stored: they take half of the registers that sums do.
  using Rows = Pair[2][width / 8];

 public:
  __device__ WindowUpdate(const WindowUpdateLaunch& launch, VertexId first_row, int last_row,
                          std::uint32_t weights)
      : launch_(launch),
        weights_(weights),
        quarter_(static_cast<int>(threadIdx.x) % 4),
        features_(static_cast<int>(launch.update.features.inner)) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = static_cast<int>(threadIdx.x) / 32 * 16 + half * 8 +
                      static_cast<int>(threadIdx.x) % 32 / 4;
      if (row <= last_row) rows_[half].row = first_row + row;
    }
  }

  __device__ void operator()(Sums& sums) const {
    if (!plain()) reduce(sums);
    if (launch_.update.features.self) add_own(self_factor<T>(launch_.update), sums);
    Rows aggregated;
    narrow(sums, aggregated);
    if (launch_.update.features.aggregated != nullptr) keep(aggregated);
    int first_col = 0;
#pragma unroll 1
    do {
      UpdateSums<part_cols> products;
      multiply(aggregated, 0, first_col, products);
      if (launch_.update.weights.root != nullptr) {
        Rows own;
        load_own(0, own[0]);
        load_own(1, own[1]);
        multiply(own, launch_.padded_features, first_col, products);
      }
      store(first_col, products);
      first_col += part_cols;
    } while (first_col < launch_.update.features.cols);
  }

 private:
  __device__ static int place(int half, int block) { return 4 * block + 2 * half; }
  __device__ bool exists(int block) const { return 8 * block < features_; }

  /// Sums of whole units without scales and divisors: nothing is left to do.
  __device__ bool plain() const {
    return launch_.epilogue.row_scale == nullptr && launch_.epilogue.row_divisor == nullptr &&
           launch_.epilogue.unit == 1 && features_ % Layout::unit_cols == 0;
  }

  /// Scales of rows and the divisors of a mean. Beyond the last feature there is nothing: no number
  /// that happens to be there may meet the weights.
  __device__ void reduce(Sums& sums) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const VertexId row = rows_[half].row;
      float scale = launch_.epilogue.unit;
      if (row >= 0 && launch_.epilogue.row_scale != nullptr) {
        scale *= __ldg(launch_.epilogue.row_scale + row);
      }
      change(sums, half, [&](float sum, int block) { return exists(block) ? sum * scale : 0; });
      if (row < 0 || launch_.epilogue.row_divisor == nullptr) continue;
      const cuda::DivideBy divided(__ldg(launch_.epilogue.row_divisor + row));
      change(sums, half, [&](float sum, int) { return divided(sum); });
    }
  }

  template <class To>
  __device__ static void change(Sums& sums, int half, To&& to) {
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& sum = sums[place(half, block) + i];
        sum = to(sum, block);
      }
    }
  }

  /// Where the features of one of the rows themselves begin.
  __device__ const T* own_row(int half) const {
    return static_cast<const T*>(launch_.features.x) +
           std::int64_t{max(rows_[half].row, VertexId{0})} * launch_.features.x_stride;
  }

  /// All features of one of the rows themselves, asked for at once: a lane loads 16 bytes, and four
  /// trade them for their pairs.
  __device__ void load_own(int half, Pair (&pairs)[width / 8]) const {
    using Eight = cuda::Vector<T, 16>;
    Eight eights[width / 32];
#pragma unroll
    for (int four = 0; four < width / 32; ++four) {
      const int first = four * 32 + quarter_ * 8;
      eights[four] =
          Eight::load_if(rows_[half].row >= 0 && first < features_, own_row(half) + first);
    }
#pragma unroll
    for (int four = 0; four < width / 32; ++four) {
      std::uint32_t words[4];
      memcpy(words, &eights[four], sizeof(words));
      transpose_quad(words);
      memcpy(&pairs[4 * four], words, sizeof(words));
    }
  }

  __device__ void add_own(float factor, Sums& sums) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Pair pairs[width / 8];
      load_own(half, pairs);
#pragma unroll
      for (int block = 0; block < width / 8; ++block) {
        float values[2];
        pairs[block].widen_to(values);
        const int at = place(half, block);
        sums[at] = fmaf(factor, values[0], sums[at]);
        sums[at + 1] = fmaf(factor, values[1], sums[at + 1]);
      }
    }
  }

  __device__ static void narrow(const Sums& sums, Rows& rows) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int block = 0; block < width / 8; ++block) {
        const float pair[2] = {sums[place(half, block)], sums[place(half, block) + 1]};
        rows[half][block] = Pair::narrowed(pair);
      }
    }
  }

  /// Stores Z: four lanes trade their pairs, so that each stores 16 bytes.
  __device__ void keep(const Rows& aggregated) const {
    const UpdateLaunch::Features& features = launch_.update.features;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const VertexId row = rows_[half].row;
      T* const to = static_cast<T*>(features.aggregated) +
                    std::int64_t{row} * features.aggregated_stride + quarter_ * 8;
      const int left = row < 0 ? 0 : features_ - quarter_ * 8;
#pragma unroll
      for (int block = 0; block < width / 8; block += 4) {
        if (!exists(block)) break;
        std::uint32_t words[4];
        memcpy(words, &aggregated[half][block], sizeof(words));
        transpose_quad(words);
        if (8 * block < left) put(to + 8 * block, words);
      }
    }
  }

  /// Rows of X are needed again, those that are written here not.
  __device__ static void put(T* to, const std::uint32_t (&words)[4]) {
    __stcs(reinterpret_cast<uint4*>(to), make_uint4(words[0], words[1], words[2], words[3]));
  }

  /// Adds products of two rows with the lines of the weights from `first_line` on and their columns
  /// from `first_col` on, by each warp for its own 16 rows. Rows end with whole units, of which a
  /// kernel for so many features has all or all but one.
  __device__ void multiply(const Rows& rows, int first_line, int first_col,
                           UpdateSums<part_cols>& products) const {
    // Of 16 lines and columns, as the matrix unit's right factor (cuda/mma_rows.cuh).
    const auto lane = static_cast<std::uint32_t>(threadIdx.x) % 32;
    const std::uint32_t from = weights_ + (first_line + lane % 16) * 128 +
                               static_cast<std::uint32_t>(first_col / 64 * launch_.block_bytes);
    const std::uint32_t unit = lane / 16 ^ lane % 8;
    __syncwarp();
    constexpr int most_steps = width / 16, sure_steps = most_steps - Layout::unit_steps;
    const auto add_step = [&](int step) {
      std::uint32_t left[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = rows[i % 2][2 * step + i / 2].raw;
#pragma unroll
      for (int col = 0; col < part_cols; col += 16) {
        std::uint32_t right[4];
        cuda::load_blocks_transposed(
            right, from + (unit ^ static_cast<std::uint32_t>((first_col + col) % 64 / 8)) * 16 +
                       static_cast<std::uint32_t>(step * 16 * 128));
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float(&all)[part_cols / 2] = products.first;
          const int at = col / 2 + 4 * half;
          const std::uint32_t b[2] = {right[2 * half], right[2 * half + 1]};
          float part[4] = {all[at], all[at + 1], all[at + 2], all[at + 3]};
          cuda::multiply_16x8<T>(part, left, b);
#pragma unroll
          for (int i = 0; i < 4; ++i) all[at + i] = part[i];
        }
      }
    };
#pragma unroll
    for (int step = 0; step < sure_steps; ++step) add_step(step);
    if (features_ <= sure_steps * 16) return;
#pragma unroll
    for (int step = sure_steps; step < most_steps; ++step) add_step(step);
  }

  __device__ void store(int first_col, UpdateSums<part_cols>& products) const {
    if (!launch_.store.usual) return store_with_any_epilogue(first_col, products);
    const UpdateLaunch::Features& features = launch_.update.features;
    const int first = first_col + quarter_ * 8;
    const int left = static_cast<int>(features.cols) - first;
    const auto least = __bfloat162bfloat162(__ushort_as_bfloat16(launch_.store.least));
    if (launch_.update.epilogue.bias != nullptr) {
      add_bias(static_cast<const T*>(launch_.update.epilogue.bias) + first, left, products);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const VertexId row = rows_[half].row;
      T* const to = static_cast<T*>(features.y) + std::int64_t{row} * features.y_stride + first;
#pragma unroll
      for (int col = 0; col < part_cols; col += 32) {
        std::uint32_t words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int at = col / 2 + place(half, i);
          const __nv_bfloat162 pair =
              __hmax2_nan(__floats2bfloat162_rn(products.first[at], products.first[at + 1]), least);
          memcpy(&words[i], &pair, sizeof(pair));
        }
        if (row < 0 || col >= left) continue;
        if (launch_.store.whole_units) {
          put(to + col, words);
        } else {
          Four{make_uint2(words[0], words[1])}.store(to + col);
          if (col + 4 < left) Four{make_uint2(words[2], words[3])}.store(to + col + 4);
        }
      }
    }
  }

  /// `left` columns from `bias` on.
  __device__ static void add_bias(const T* bias, int left, UpdateSums<part_cols>& products) {
#pragma unroll
    for (int col = 0; col < part_cols; col += 4) {
      if (col % 32 >= 8) continue;
      float added[4];
      Four::load_if(col < left, bias + col).widen_to(added);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          products.first[col / 32 * 16 + place(half, col % 32 / 2 + i / 2) + i % 2] += added[i];
        }
      }
    }
  }

  /// The products are used up.
  __device__ void store_with_any_epilogue(int first_col, UpdateSums<part_cols>& products) const {
#pragma unroll 1
    for (int col = first_col; col < first_col + part_cols; col += 32) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int first = 0; first < 8; first += 4) {
          float values[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) values[i] = products.front(half, first + i);
          store_columns<T>(launch_.update, rows_[half], col + quarter_ * 8 + first, values);
        }
      }
      products.shift();
      products.shift();
    }
  }

  const WindowUpdateLaunch& launch_;
  std::uint32_t weights_;
  int quarter_;  ///< which of the four lanes that have the same rows
  int features_;
  UpdateRow rows_[2];
};

/// In place of the store of `sum_stages`.
template <class Loader>
requires(Loader::update_cols > 0) __device__
    void end_window(const TallLaunch& launch, VertexId first_row, int last_row, char*,
                    float (&sums)[Loader::width / 2]) {
  extern __shared__ __align__(stage_alignment) char shared[];
  using Update = WindowUpdate<Loader::width, Loader::update_cols>;
  const Update update(static_cast<const WindowUpdateLaunch&>(launch), first_row, last_row,
                      cuda::shared_address(shared));
  update(sums);
}

template <class Loader>
__global__ __launch_bounds__(Loader::threads, Loader::min_blocks) void update_windows(
    const __grid_constant__ WindowUpdateLaunch launch) {
  cuda::begin_leader(false);
#ifdef TESSERA_HAS_WGMMA
  constexpr bool exists = true;
#else
  constexpr bool exists = Loader::by_warps;
#endif
  if constexpr (exists) {
    extern __shared__ __align__(stage_alignment) char shared[];
    cuda::wait_for_previous();
    keep_weights<__nv_bfloat16, WindowWeights>(launch.update, launch.padded_cols, shared);
    sum_stages<Loader>(launch, shared + launch.weight_bytes);
  } else {
    __trap();
  }
}

template <class Loader>
void launch_window_update(const WindowUpdateLaunch& launch, Stream stream) {
  const dim3 grid(static_cast<unsigned>(launch.work.num_workers));
  const auto bytes = static_cast<std::size_t>(launch.weight_bytes + tall_shared_bytes<Loader>(0));
  cuda::launch_overlapped(update_windows<Loader>, grid, Loader::threads, bytes, stream, launch);
}

template <class Loader>
int resident_window_updates(std::int32_t weight_bytes, std::int32_t most_bytes) {
  return cuda::resident_blocks(update_windows<Loader>, Loader::threads,
                               weight_bytes + tall_shared_bytes<Loader>(0), most_bytes);
}

template <WindowUpdateKey key>
WindowUpdateFunction WindowUpdateKernels<key>::get() {
  constexpr int groups = window_update_height / 64;
  using Rows = std::conditional_t<key.long_stages, LongCopyLoader,
                                  CopyLoader<__nv_bfloat16, key.width, key.scaled, groups>>;
  using Multiplied = std::conditional_t<key.warps, OnWarps<Rows>, Rows>;
  using Loader = WithUpdate<Multiplied, key.part_cols>;
  return {Loader::rows / 16, tall_shared_bytes<Loader>(0), launch_window_update<Loader>,
          resident_window_updates<Loader>};
}

}  // namespace tessera::ops
