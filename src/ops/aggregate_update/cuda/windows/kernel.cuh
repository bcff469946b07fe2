// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/precision.cuh"
#include "ops/aggregate_update/cuda/fused/kernel.cuh"
#include "ops/aggregate_update/cuda/windows/launch.hpp"
#include "ops/spmm/cuda/tall/kernel.cuh"

/// Sums over tall windows (spmm/cuda/tall/kernel.cuh) that are multiplied where they come up. The
/// registers in which the matrix unit leaves the sums of a window are those from which it takes the
/// left factor of the next product; the weights stand in shared memory. So a row of Z is written
/// only where somebody wants it, and while a window is multiplied by the weights the rows of X of
/// the next ones are under way.
namespace tessera::ops {

/// A loader of a kernel that multiplies the sums of a window by weights of up to `cols` columns.
template <class Loader, int cols>
struct WithUpdate : Loader {
  using Loader::Loader;
  static constexpr int update_cols = cols;
};

/// Sums are laid out as the matrix unit leaves them: no line of the weights is exchanged.
struct WindowWeights : UpdateLayout<__nv_bfloat16> {
  __device__ static int line_of(int inner) { return inner; }
};

/// A lane's two rows of a window of which it has, of every 8 features, the two at 2 * (lane % 4).
template <int width, int cols>
class WindowUpdate {
  using T = __nv_bfloat16;
  using Layout = WindowWeights;
  using Sums = float[width / 2];
  using Pair = cuda::Vector<T, 2 * static_cast<int>(sizeof(T))>;
  /// Two rows as the features are stored: they take half of the registers that sums do.
  using Rows = Pair[2][width / 8];

  /// Columns of Y that are multiplied and stored before the next: all of them at once would not
  /// fit the registers beside the rows.
  static constexpr int part_cols = 32;

 public:
  __device__ WindowUpdate(const WindowUpdateLaunch& launch, VertexId first_row, int last_row,
                          std::uint32_t weights)
      : launch_(launch),
        weights_(weights),
        feature_(static_cast<int>(threadIdx.x) % 4 * 2),
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
    const ShortEpilogue<T> epilogue(launch_.update);
#pragma unroll 1
    for (int first_col = 0; first_col < launch_.update.features.cols; first_col += part_cols) {
      UpdateSums<part_cols> products;
      multiply([&](int half, int block) { return aggregated[half][block]; }, 0, first_col,
               products);
      if (launch_.update.weights.root != nullptr) {
        multiply([&](int half, int block) { return own_pair(half, block); },
                 static_cast<int>(Layout::padded(features_)), first_col, products);
      }
      // Rows that are not finite stay so: infinite sums make infinite products.
      bool finite[2] = {true, true};
      if (epilogue.enough) {
        epilogue.store(launch_.update, rows_, first_col, products, finite);
      } else {
        store_with_any_epilogue<part_cols, T>(launch_.update, rows_, first_col, products, finite);
      }
    }
  }

 private:
  __device__ static int place(int half, int block) { return 4 * block + 2 * half; }
  __device__ bool exists(int block) const { return 8 * block + feature_ < features_; }

  /// Sums of whole steps of the matrix unit without scales and divisors: nothing is left to do.
  __device__ bool plain() const {
    return launch_.epilogue.row_scale == nullptr && launch_.epilogue.row_divisor == nullptr &&
           launch_.epilogue.unit == 1 && features_ % 16 == 0;
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
      const float divisor = __ldg(launch_.epilogue.row_divisor + row);
      change(sums, half, [&](float sum, int) { return sum / divisor; });
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
  __device__ Pair own_pair(int half, int block) const {
    return Pair::load_if(rows_[half].row >= 0 && exists(block),
                         own_row(half) + 8 * block + feature_);
  }

  /// All features of one of the rows themselves, asked for at once: a lane loads 16 bytes, and four
  /// trade them for their pairs.
  __device__ void load_own(int half, Pair (&pairs)[width / 8]) const {
    using Eight = cuda::Vector<T, 16>;
    Eight eights[width / 32];
#pragma unroll
    for (int four = 0; four < width / 32; ++four) {
      const int first = four * 32 + feature_ * 4;
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
      T* const to =
          static_cast<T*>(features.aggregated) + std::int64_t{row} * features.aggregated_stride;
#pragma unroll
      for (int block = 0; block < width / 8; block += 4) {
        std::uint32_t words[4];
        memcpy(words, &aggregated[half][block], sizeof(words));
        transpose_quad(words);
        const int first = (block + feature_ / 2) * 8;
        if (row < 0 || first >= features_) continue;
        __stcs(reinterpret_cast<uint4*>(to + first),
               make_uint4(words[0], words[1], words[2], words[3]));
      }
    }
  }

  /// Products of two rows, of which `pair_at` gives the pairs, with the lines of the weights from
  /// `first_line` on and their columns from `first_col` on, by each warp for its own 16 rows.
  template <class PairAt>
  __device__ void multiply(PairAt&& pair_at, int first_line, int first_col,
                           UpdateSums<part_cols>& products) const {
    const bool root = launch_.update.weights.root != nullptr;
    const auto block_bytes = static_cast<std::uint32_t>(Layout::block_bytes(features_, root));
    const auto lane = static_cast<std::uint32_t>(threadIdx.x) % 32;
    // Of 16 lines and columns, as the matrix unit's right factor (cuda/mma_rows.cuh).
    const std::uint32_t line = static_cast<std::uint32_t>(first_line) + lane % 16;
    const std::uint32_t from = weights_ + line * 128;
    __syncwarp();
#pragma unroll
    for (int step = 0; step < width / 16; ++step) {
      if (step * 16 >= features_) break;
      std::uint32_t left[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = pair_at(i % 2, 2 * step + i / 2).raw;
#pragma unroll
      for (std::uint32_t i = 0; i < part_cols / 16; ++i) {
        const std::uint32_t sixteen = static_cast<std::uint32_t>(first_col) / 16 + i;
        const std::uint32_t unit = 2 * sixteen + lane / 16;
        std::uint32_t right[4];
        cuda::load_blocks_transposed(right, from + static_cast<std::uint32_t>(step) * 16 * 128 +
                                                sixteen / 4 * block_bytes +
                                                ((unit % 8) ^ (line % 8)) * 16);
#pragma unroll
        for (std::uint32_t half = 0; half < 2; ++half) {
          float(&all)[part_cols / 2] = products.first;
          const std::uint32_t at = 8 * i + 4 * half;
          const std::uint32_t b[2] = {right[2 * half], right[2 * half + 1]};
          float part[4] = {all[at], all[at + 1], all[at + 2], all[at + 3]};
          cuda::multiply_16x8<T>(part, left, b);
#pragma unroll
          for (std::uint32_t j = 0; j < 4; ++j) all[at + j] = part[j];
        }
      }
    }
  }

  const WindowUpdateLaunch& launch_;
  std::uint32_t weights_;
  int feature_;
  int features_;
  UpdateRow rows_[2];
};

/// The sums of a piece are complete. `sum_stages` finds this in place of the store.
template <class Loader>
requires(Loader::update_cols > 0) __device__
    void finish(const TallLaunch& launch, const tiles::Stage& stage, char*,
                float (&sums)[Loader::width / 2]) {
  VertexId first_row = stage.target;
  if (stage.end == tiles::StageEnd::slot) {
    const tiles::CutWindow window = launch.work.slot_windows[stage.target];
    if (!merge_pieces<Loader::width, Loader::threads>(launch, window, stage.target, sums)) return;
    first_row = window.first_row;
  }
  extern __shared__ __align__(stage_alignment) char shared[];
  using Update = WindowUpdate<Loader::width, Loader::update_cols>;
  const Update update(static_cast<const WindowUpdateLaunch&>(launch), first_row, stage.last_row,
                      cuda::shared_address(shared));
  update(sums);
}

template <class Loader>
__global__ __launch_bounds__(Loader::threads, Loader::min_blocks) void update_windows(
    const __grid_constant__ WindowUpdateLaunch launch) {
  cuda::begin_leader(false);
#ifdef TESSERA_HAS_WGMMA
  extern __shared__ __align__(stage_alignment) char shared[];
  cuda::wait_for_previous();
  keep_weights<Loader::update_cols, __nv_bfloat16, WindowWeights>(launch.update, shared);
  sum_stages<Loader>(launch, shared + launch.weight_bytes);
#else
  __trap();
#endif
}

template <class Loader>
void launch_window_update(const WindowUpdateLaunch& launch, Stream stream) {
  const dim3 grid(static_cast<unsigned>(launch.work.num_workers));
  const auto bytes = static_cast<std::size_t>(launch.weight_bytes + tall_shared_bytes<Loader>(0));
  cuda::launch_overlapped(update_windows<Loader>, grid, Loader::threads, bytes, stream, launch);
}

template <class Loader>
int resident_window_updates(std::int32_t weight_bytes) {
  // As much as any launch needs: another plan's weights may be larger.
  return cuda::resident_blocks(update_windows<Loader>, Loader::threads,
                               weight_bytes + tall_shared_bytes<Loader>(0),
                               static_cast<int>(most_update_shared_bytes));
}

template <WindowUpdateKey key>
WindowUpdateFunction WindowUpdateKernels<key>::function() {
  constexpr int groups = window_update_policy.height / 64;
  using Loader = WithUpdate<CopyLoader<__nv_bfloat16, key.width, key.scaled, groups>, key.cols>;
  return {Loader::rows / 16, launch_window_update<Loader>, resident_window_updates<Loader>};
}

}  // namespace tessera::ops
