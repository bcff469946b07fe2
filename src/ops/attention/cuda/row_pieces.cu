// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <cub/block/block_scan.cuh>
#include <cuda/std/functional>

#include "cuda/array.hpp"
#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"
#include "graph/cut.hpp"
#include "ops/attention/cuda/row_side.hpp"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;
constexpr int thread_rows = piece_window_rows / block_threads;
static_assert(thread_rows * block_threads == piece_window_rows);

/// So many windows need no array on the GPU to say where their pieces begin.
constexpr std::size_t few_windows = 128;

struct PiecesLaunch {
  VertexId num_rows = 0;
  cuda::Offsets offsets;
  AttentionCut cut;
  RowPiece* pieces = nullptr;
  std::int32_t num_slots = 0;
  const PieceStart* starts = nullptr;  ///< null: they are in the launch
  PieceStart few_starts[few_windows];
};

/// How many rows and pieces of each kind stand before something in its window.
struct PiecesBefore {
  int whole_rows = 0;
  int slots = 0;
  int cut_rows = 0;

  __device__ PiecesBefore operator+(const PiecesBefore& other) const {
    return {whole_rows + other.whole_rows, slots + other.slots, cut_rows + other.cut_rows};
  }
};

/// What a row of `length` edges adds.
__device__ PiecesBefore pieces_of(EdgeOffset length, const AttentionCut& cut) {
  if (length <= cut.short_row) return {};
  if (length <= cut.longest_piece) return {1, 0, 0};
  const auto parts = static_cast<int>(EqualParts::of_at_most(length, cut.longest_piece).count());
  return {0, parts, 1};
}

__device__ void write_cut_row(const PiecesLaunch& launch, std::int64_t row, EdgeOffset begin,
                              EdgeOffset length, int first_slot, int cut_row) {
  const EqualParts parts = EqualParts::of_at_most(length, launch.cut.longest_piece);
  RowPiece piece;
  piece.row = static_cast<VertexId>(row);
  piece.first_slot = first_slot;
  piece.num_slots = static_cast<std::int32_t>(parts.count());
  piece.cut_row = cut_row;
  for (int i = 0; i < piece.num_slots; ++i) {
    piece.begin = begin + parts.begin(i);
    piece.count = static_cast<std::int32_t>(parts.end(i) - parts.begin(i));
    piece.slot = first_slot + i;
    launch.pieces[piece.slot] = piece;
  }
}

/// A block takes a window of rows, a thread some neighbours of it.
__global__ __launch_bounds__(block_threads) void write_pieces(const PiecesLaunch launch) {
  using Scan = cub::BlockScan<PiecesBefore, block_threads>;
  __shared__ typename Scan::TempStorage memory;
  const PieceStart start =
      launch.starts != nullptr ? launch.starts[blockIdx.x] : launch.few_starts[blockIdx.x];
  const std::int64_t first_row =
      std::int64_t{blockIdx.x} * piece_window_rows + threadIdx.x * thread_rows;
  EdgeOffset begins[thread_rows + 1];
  PiecesBefore mine;
#pragma unroll
  for (int i = 0; i <= thread_rows; ++i) {
    const std::int64_t row = first_row + i;
    begins[i] = cuda::offset_at(launch.offsets, row < launch.num_rows ? row : launch.num_rows);
    if (i > 0) mine = mine + pieces_of(begins[i] - begins[i - 1], launch.cut);
  }
  PiecesBefore before;
  Scan(memory).ExclusiveScan(mine, before, PiecesBefore{}, ::cuda::std::plus<>{});
#pragma unroll
  for (int i = 0; i < thread_rows; ++i) {
    const EdgeOffset length = begins[i + 1] - begins[i];
    const PiecesBefore own = pieces_of(length, launch.cut);
    if (own.whole_rows > 0) {
      RowPiece piece;
      piece.begin = begins[i];
      piece.row = static_cast<VertexId>(first_row + i);
      piece.count = static_cast<std::int32_t>(length);
      launch.pieces[std::int64_t{launch.num_slots} + start.whole_row + before.whole_rows] = piece;
    } else if (own.slots > 0) {
      write_cut_row(launch, first_row + i, begins[i], length, start.slot + before.slots,
                    start.cut_row + before.cut_rows);
    }
    before = before + own;
  }
}

}  // namespace

Buffer<RowPiece> list_pieces(const cuda::DeviceRows& rows, const PieceCounts& counts,
                             const AttentionCut& cut, const Place& place) {
  Buffer<RowPiece> pieces(counts.num_pieces(), place);
  if (pieces.empty()) return pieces;
  PiecesLaunch launch;
  launch.num_rows = rows.num_rows;
  launch.offsets = rows.offsets();
  launch.cut = cut;
  launch.pieces = pieces.data();
  launch.num_slots = static_cast<std::int32_t>(counts.num_slots);
  const bool few = counts.starts.size() <= few_windows;
  if (few) std::copy(counts.starts.begin(), counts.starts.end(), launch.few_starts);
  const auto there =
      cuda::to_device(few ? std::span<const PieceStart>() : std::span(counts.starts), place);
  launch.starts = there.data();
  cuda::launch(write_pieces, dim3(static_cast<unsigned>(counts.starts.size())), block_threads,
               place.stream, launch);
  return pieces;
}

}  // namespace tessera::ops
