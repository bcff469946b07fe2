// SPDX-License-Identifier: Apache-2.0
#include "cuda/select_rows.hpp"

#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"

namespace tessera::cuda {
namespace {

constexpr int warp_lanes = 32;

__global__ void number_vertices(const VertexId* vertices, VertexId count, VertexId* new_numbers,
                                SelectionReport* report) {
  const std::int64_t i = thread_number();
  if (i >= count) return;
  const VertexId before = atomicExch(new_numbers + vertices[i], static_cast<VertexId>(i) + 1);
  if (before != 0) report->repeated_vertices = 1;
}

/// The new number of a column; -1 where it goes.
__device__ VertexId new_column(const Selection& selection, VertexId col) {
  return selection.new_numbers == nullptr ? col : selection.new_numbers[col] - 1;
}

/// A warp for each row, so that a hub takes no longer than it must.
__global__ void count_rows(Selection selection) {
  const std::int64_t row = thread_number() / warp_lanes;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  if (row > selection.num_rows) return;
  if (row == selection.num_rows) {
    if (lane == 0) selection.offsets[row] = 0;
    return;
  }
  const VertexId old = selection.selected[row];
  const EdgeOffset begin = offset_at(selection.old_offsets, old);
  const EdgeOffset end = offset_at(selection.old_offsets, std::int64_t{old} + 1);
  EdgeOffset kept = end - begin;
  if (selection.new_numbers != nullptr) {
    kept = 0;
    for (EdgeOffset first = begin; first < end; first += warp_lanes) {
      const EdgeOffset edge = first + lane;
      const bool stays = edge < end && new_column(selection, selection.old_cols[edge]) >= 0;
      kept += __popc(__ballot_sync(~0u, stays));
    }
  }
  if (lane == 0) selection.offsets[row] = kept;
}

__global__ void write_rows(Selection selection, SelectionReport* report) {
  const std::int64_t row = thread_number() / warp_lanes;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  if (row >= selection.num_rows) return;
  const VertexId old = selection.selected[row];
  const EdgeOffset begin = offset_at(selection.old_offsets, old);
  const EdgeOffset end = offset_at(selection.old_offsets, std::int64_t{old} + 1);
  EdgeOffset next = selection.offsets[row];
  VertexId last = -1;  // the column that was written before
  for (EdgeOffset first = begin; first < end; first += warp_lanes) {
    const EdgeOffset edge = first + lane;
    const VertexId col = edge < end ? new_column(selection, selection.old_cols[edge]) : -1;
    const unsigned kept = __ballot_sync(~0u, col >= 0);
    const unsigned before = kept & ((1u << lane) - 1);
    const VertexId beside = __shfl_sync(~0u, col, before == 0 ? 0 : 31 - __clz(before));
    if (col >= 0) {
      const EdgeOffset to = next + __popc(before);
      selection.cols[to] = col;
      if (selection.values != nullptr) selection.values[to] = selection.old_values[edge];
      if (selection.old_edges != nullptr) selection.old_edges[to] = edge;
      if (col < (before == 0 ? last : beside)) report->falling_columns = 1;
    }
    next += __popc(kept);
    const VertexId highest = __shfl_sync(~0u, col, kept == 0 ? 0 : 31 - __clz(kept));
    if (kept != 0) last = highest;
  }
}

__global__ void make_keys(const EdgeOffset* offsets, VertexId num_rows, const VertexId* cols,
                          EdgeOffset count, int col_bits, std::uint64_t* keys,
                          EdgeOffset* positions) {
  const EdgeOffset edge = thread_number();
  if (edge >= count) return;
  const auto row = static_cast<std::uint64_t>(row_of_edge(offsets, num_rows, edge));
  keys[edge] = (row << col_bits) | static_cast<std::uint32_t>(cols[edge]);
  positions[edge] = edge;
}

template <class T, class Index>
__global__ void gather_values(const T* from, const Index* at, std::int64_t count, T* to) {
  const std::int64_t k = thread_number();
  if (k < count) to[k] = from[at[k]];
}

__global__ void note_moves(const EdgeOffset* old_edges, EdgeOffset count, EdgeOffset* moved) {
  const EdgeOffset k = thread_number();
  if (k < count) moved[old_edges[k]] = k + 1;
}

__global__ void move_ids(const EdgeOffset* moved, EdgeOffset* ids, EdgeOffset num_ids) {
  const EdgeOffset k = thread_number();
  if (k < num_ids && ids[k] >= 0) ids[k] = moved[ids[k]] - 1;
}

__global__ void narrow(const EdgeOffset* from, std::int64_t count, std::int32_t* to) {
  const std::int64_t i = thread_number();
  if (i < count) to[i] = static_cast<std::int32_t>(from[i]);
}

}  // namespace

void number_selected(const VertexId* vertices, VertexId count, VertexId* new_numbers,
                     SelectionReport* report, Stream stream) {
  launch_each(number_vertices, count, stream, vertices, count, new_numbers, report);
}

void count_selected(const Selection& selection, Stream stream) {
  launch_each(count_rows, (std::int64_t{selection.num_rows} + 1) * warp_lanes, stream, selection);
}

void write_selected(const Selection& selection, SelectionReport* report, Stream stream) {
  launch_each(write_rows, std::int64_t{selection.num_rows} * warp_lanes, stream, selection, report);
}

void key_edges(const EdgeOffset* offsets, VertexId num_rows, const VertexId* cols, EdgeOffset count,
               int col_bits, std::uint64_t* keys, EdgeOffset* positions, Stream stream) {
  launch_each(make_keys, count, stream, offsets, num_rows, cols, count, col_bits, keys, positions);
}

template <class T, class Index>
void gather(const T* from, const Index* at, std::int64_t count, T* to, Stream stream) {
  launch_each(gather_values<T, Index>, count, stream, from, at, count, to);
}
template void gather(const float*, const VertexId*, std::int64_t, float*, Stream);
template void gather(const float*, const EdgeOffset*, std::int64_t, float*, Stream);
template void gather(const EdgeOffset*, const EdgeOffset*, std::int64_t, EdgeOffset*, Stream);

void renumber_edge_ids(const EdgeOffset* old_edges, EdgeOffset count, EdgeOffset* moved,
                       EdgeOffset* ids, EdgeOffset num_ids, Stream stream) {
  launch_each(note_moves, count, stream, old_edges, count, moved);
  launch_each(move_ids, num_ids, stream, moved, ids, num_ids);
}

void narrow_offsets(const EdgeOffset* from, std::int64_t count, std::int32_t* to, Stream stream) {
  launch_each(narrow, count, stream, from, count, to);
}

}  // namespace tessera::cuda
