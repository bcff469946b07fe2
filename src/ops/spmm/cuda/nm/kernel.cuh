// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/launch.cuh"
#include "cuda/mma.cuh"
#include "cuda/occupancy.cuh"
#include "cuda/precision.cuh"
#include "cuda/vectors.cuh"
#include "ops/spmm/cuda/epilogue.cuh"
#include "ops/spmm/cuda/nm/launch.hpp"
#include "tessera/tiles/quad_tiles.hpp"

/// Sums over windows of 16 rows with `mma.sp.m16n8k32`: sparse tensor cores, from Ampere on.
///
/// The window's rows are the sparse operand, 32 of its columns at once, in quads of which every row
/// uses at most two; features are the short side of the instruction. Of the 32 columns of a step
/// lane l needs eight: 2 * (l % 4) and the next, and those 8, 16 and 24 further on. It loads 16
/// bytes of their rows of X, the features from 8 * (l / 4) on, straight into registers. The order
/// of features within the instruction is free, so a byte permute of two rows makes a register of
/// the operand: the instruction j of eight takes the features 8 * n + j. A lane's sums are then 16
/// neighbouring features of the window's rows l / 4 and l / 4 + 8. There is no shared memory.
///
/// Warps stay and go through a list of pieces, step by step, be they of one window or another.
/// While rows of X are under way, so are the columns and words of the next step.
namespace tessera::ops {

inline constexpr int nm_warps = 4;
inline constexpr int nm_threads = 32 * nm_warps;

/// What a lane knows of a step: its eight columns, and the words of its tile.
struct NmStep {
  int2 columns[4] = {};
  std::uint32_t indices = 0;
  std::uint32_t bits = 0;

  /// Step and tile count in the whole graph. Of a step that does not exist: column 0, which nobody
  /// uses; its indices do not matter, since its entries are 0, but they have to rise.
  __device__ static NmStep load(const NmLaunch& launch, bool exists, int step, int tile) {
    NmStep loaded;
    loaded.indices = 0xCCCCCCCCu;
    if (!exists) return loaded;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const VertexId* const columns =
        launch.matrix.columns + std::int64_t{step} * tiles::quad_step_columns + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; ++i) loaded.columns[i] = *reinterpret_cast<const int2*>(columns + 8 * i);
    const std::uint32_t* const words =
        launch.matrix.words + std::int64_t{tile} * tiles::quad_strip_words;
    loaded.indices = words[lane];
    loaded.bits = words[32 + lane / 2];
    return loaded;
  }

  /// 1 where there is an edge: tiles/quad_fragment.hpp says which bits they are. `parity` is 0 for
  /// the first step of a tile, 1 for the second.
  template <class T>
  __device__ void expand(int parity, std::uint32_t (&entries)[4]) const {
    constexpr std::uint32_t one = std::is_same_v<T, __nv_bfloat16> ? 0x3f80u : 0x3c00u;
    // The bits of the first entries to the low half, those of the second ones to the high half.
    const std::uint32_t halves = __byte_perm(bits, 0, threadIdx.x % 2 == 0 ? 0x4140 : 0x4342);
#pragma unroll
    for (int i = 0; i < 4; ++i) entries[i] = (halves >> (4 * parity + i) & 0x00010001u) * one;
  }

  /// Where the instruction wants them: the lanes 4 g + 2 and 4 g + 3 have those of second steps.
  __device__ std::uint32_t indices_of(int parity) const {
    const std::uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, indices, 2);
    return parity == 0 ? indices : other;
  }
};

/// A lane's share of `width` features of a window. Rows go through an epilogue if there is one.
template <class T, int width, bool epilogue>
class NmSums {
 public:
  static constexpr int parts = width / 64;
  static_assert(parts >= 1 && parts <= 2);

  __device__ explicit NmSums(const NmLaunch& launch) : launch_(launch) {
    // Lanes without features multiply others, which nobody stores.
    const int features = launch.features.count;
    x_ = static_cast<const T*>(launch.features.x) +
         (first_loaded(0) < features ? first_loaded(0) : 0);
    other_part_ = first_loaded(parts - 1) < features ? (parts - 1) * 64 : 0;
    clear();
  }

  /// Asks for the rows of X.
  __device__ void gather(const NmStep& step) {
#pragma unroll
    for (int part = 0; part < parts; ++part) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        load_row(step.columns[i].x, part, rows_[part][i][0]);
        load_row(step.columns[i].y, part, rows_[part][i][1]);
      }
    }
  }

  __device__ void multiply(const std::uint32_t (&entries)[4], std::uint32_t indices) {
#pragma unroll
    for (int part = 0; part < parts; ++part) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        std::uint32_t features[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          features[i] = __byte_perm(rows_[part][i][0][j / 2], rows_[part][i][1][j / 2],
                                    j % 2 == 0 ? 0x5410 : 0x7632);
        }
        cuda::multiply_sparse_16x8<T>(sums_[part * 8 + j], entries, features, indices);
      }
    }
  }

  __device__ void clear() {
#pragma unroll
    for (auto& tile : sums_) {
#pragma unroll
      for (float& sum : tile) sum = 0;
    }
  }

  /// Multiplies the rows by their scales and brings them to Y.
  __device__ void store(VertexId first_row) {
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
      const VertexId row = first_row + lane() / 4 + 8 * lower;
      if (row >= launch_.matrix.num_rows) continue;
      if (launch_.epilogue.row_scale != nullptr) {
        const float scale = __ldg(launch_.epilogue.row_scale + row);
#pragma unroll
        for (auto& tile : sums_) {
          tile[2 * lower] *= scale;
          tile[2 * lower + 1] *= scale;
        }
      }
      to_y(lower, row);
    }
  }

  /// Leaves the sums of a piece in its slot.
  __device__ void to_slot(int slot) const {
    float4* const own = place(slot);
#pragma unroll
    for (int i = 0; i < num_tiles; ++i) {
      own[i * 32] = make_float4(sums_[i][0], sums_[i][1], sums_[i][2], sums_[i][3]);
    }
  }

  __device__ void add_slot(int slot) {
    const float4* const piece = place(slot);
#pragma unroll
    for (int i = 0; i < num_tiles; ++i) {
      const float4 part = __ldcg(piece + i * 32);
      sums_[i][0] += part.x;
      sums_[i][1] += part.y;
      sums_[i][2] += part.z;
      sums_[i][3] += part.w;
    }
  }

 private:
  static constexpr int num_tiles = 8 * parts;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  /// The first of the eight features that the lane loads of each row.
  __device__ static int first_loaded(int part) {
    return static_cast<int>(blockIdx.y) * width + part * 64 + lane() / 4 * 8;
  }

  __device__ void load_row(VertexId column, int part, std::uint32_t (&row)[4]) const {
    const std::uint64_t offset =
        std::uint64_t{static_cast<std::uint32_t>(column)} * launch_.features.x_row_bytes;
    const char* const from = reinterpret_cast<const char*>(x_ + (part > 0 ? other_part_ : 0));
    const uint4 raw = *reinterpret_cast<const uint4*>(from + offset);
    memcpy(row, &raw, sizeof(raw));
  }

  __device__ float4* place(int slot) const {
    const std::int64_t first_of_chunk = std::int64_t{blockIdx.y} * launch_.work.num_slots;
    return reinterpret_cast<float4*>(launch_.work.slots) +
           (first_of_chunk + slot) * num_tiles * 32 + lane();
  }

  /// Y is the first that the cache may forget: rows of X are needed again, those of Y not.
  __device__ void to_y(int lower, VertexId row) const {
    [[maybe_unused]] T* const y =
        static_cast<T*>(launch_.features.y) + row * launch_.features.y_stride;
#pragma unroll
    for (int part = 0; part < parts; ++part) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int feature =
            static_cast<int>(blockIdx.y) * width + part * 64 + lane() % 4 * 16 + half * 8;
        if (feature >= launch_.features.count) continue;
        float sums[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[j] = sums_[part * 8 + j][2 * lower + half];
        if constexpr (epilogue) {
          store_with_epilogue<T>(launch_.epilogue, launch_.features.y, launch_.features.y_stride,
                                 {row, feature, launch_.features.count}, sums);
        } else {
          T values[8];
#pragma unroll
          for (int j = 0; j < 8; ++j) values[j] = cuda::narrow<T>(sums[j]);
          uint4 raw;
          memcpy(&raw, values, sizeof(raw));
          __stcs(reinterpret_cast<uint4*>(y + feature), raw);
        }
      }
    }
  }

  const NmLaunch& launch_;
  const T* x_;
  int other_part_;  ///< from the first
  std::uint32_t rows_[parts][4][2][4];
  /// Tile j has the features 8 * n + j of 64, for n of two neighbours and two rows each.
  float sums_[num_tiles][4];
};

template <class T, int width, bool epilogue>
__global__ __launch_bounds__(nm_threads,
                             width == 128 ? 3 : 4) void sum_nm_windows(const NmLaunch launch) {
  cuda::let_next_begin();
  const int worker = static_cast<int>(blockIdx.x) * nm_warps + static_cast<int>(threadIdx.x) / 32;
  if (worker >= launch.work.num_workers) return;
  int at = launch.work.worker_offsets[worker];
  const int end = launch.work.worker_offsets[worker + 1];
  // One that does not exist has no steps.
  const auto load_piece = [&](int i) {
    tiles::Piece loaded;
    if (i < end) loaded = launch.work.pieces[i];
    return loaded;
  };
  tiles::Piece piece = load_piece(at);
  tiles::Piece next_piece = load_piece(at + 1);
  NmStep step = NmStep::load(launch, piece.num_steps > 0, piece.first_step, piece.first_tile);
  NmSums<T, width, epilogue> sums(launch);
  cuda::wait_for_previous();
  for (int i = 0; at < end;) {
    const bool ends = i + 1 >= piece.num_steps;
    sums.gather(step);
    const NmStep next_step =
        NmStep::load(launch, !ends || next_piece.num_steps > 0,
                     ends ? next_piece.first_step : piece.first_step + i + 1,
                     ends ? next_piece.first_tile : piece.first_tile + (i + 1) / 2);
    // Asked for no earlier than needed, to spare registers.
    const int slot = ends ? launch.work.pieces[at].slot : -1;
    // Keeps all loads of a step together: the compiler would put some behind the first products.
    __syncwarp();
    std::uint32_t entries[4];
    step.expand<T>(i % 2, entries);
    sums.multiply(entries, step.indices_of(i % 2));
    step = next_step;
    ++i;
    if (ends) {
      const tiles::Piece finished = piece;
      piece = next_piece;
      ++at;
      next_piece = load_piece(at + 1);
      // Column 0, multiplied by 0, may not have been finite.
      if (finished.num_steps == 0) sums.clear();
      if (slot < 0) {
        sums.store(finished.first_row);
      } else {
        sums.to_slot(slot);
      }
      sums.clear();
      i = 0;
    }
  }
}

/// A warp for each window of several pieces adds up their sums, in order.
template <class T, int width, bool epilogue>
__global__ __launch_bounds__(nm_threads) void add_nm_pieces(const NmLaunch launch) {
  cuda::begin_overlapped();
  const int i = static_cast<int>(blockIdx.x) * nm_warps + static_cast<int>(threadIdx.x) / 32;
  if (i >= launch.work.num_cut_windows) return;
  const tiles::CutWindow window = launch.work.cut_windows[i];
  NmSums<T, width, epilogue> sums(launch);
#pragma unroll 2
  for (int k = 0; k < window.num_slots; ++k) sums.add_slot(window.first_slot + k);
  sums.store(window.first_row);
}

template <class T, int width, bool epilogue>
void launch_nm(const NmLaunch& launch, Stream stream) {
  const unsigned chunks = cuda::num_blocks(launch.features.count, width);
  const dim3 workers(cuda::num_blocks(launch.work.num_workers, nm_warps), chunks);
  cuda::launch_overlapped(sum_nm_windows<T, width, epilogue>, workers, nm_threads, stream, launch);
  const dim3 cut_windows(cuda::num_blocks(launch.work.num_cut_windows, nm_warps), chunks);
  cuda::launch_overlapped(add_nm_pieces<T, width, epilogue>, cut_windows, nm_threads, stream,
                          launch);
}

/// Warps that the current GPU holds at once.
template <class T, int width, bool epilogue>
int resident_nm_warps() {
  return cuda::resident_blocks(sum_nm_windows<T, width, epilogue>, nm_threads, 0) * nm_warps;
}

template <class T, int width, bool epilogue>
constexpr NmFunction nm_function = {width, launch_nm<T, width, epilogue>,
                                    resident_nm_warps<T, width, epilogue>};

template <NmKey key>
std::span<const NmFunction> NmKernels<key>::all() {
  using T = cuda::Stored<key.precision>;
  static constexpr std::array<NmFunction, nm_widths.size()> functions = {
      nm_function<T, 64, key.epilogue>, nm_function<T, 128, key.epilogue>};
  return functions;
}

}  // namespace tessera::ops
