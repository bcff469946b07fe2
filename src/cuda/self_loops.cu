// SPDX-License-Identifier: Apache-2.0
#include "cuda/self_loops.hpp"

#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"

namespace tessera::cuda {
namespace {

/// Where the row's loop is, or would be, among its old edges.
__device__ EdgeOffset place_of_loop(const LoopedRows& rows, VertexId row) {
  return lower_bound(rows.old_cols, offset_at(rows.old_offsets, row),
                     offset_at(rows.old_offsets, std::int64_t{row} + 1), row);
}

__device__ bool misses_loop(const LoopedRows& rows, VertexId row) {
  const EdgeOffset place = place_of_loop(rows, row);
  return place == offset_at(rows.old_offsets, std::int64_t{row} + 1) || rows.old_cols[place] != row;
}

__global__ void count_rows(LoopedRows rows, EdgeOffset* counts) {
  const std::int64_t row = thread_number();
  if (row > rows.num_rows) return;
  if (row == rows.num_rows) {
    counts[row] = 0;
    return;
  }
  const EdgeOffset degree = offset_at(rows.old_offsets, row + 1) - offset_at(rows.old_offsets, row);
  counts[row] = degree + (misses_loop(rows, static_cast<VertexId>(row)) ? 1 : 0);
}

/// Where an old edge goes: behind the loops added to earlier rows, and to its own row before it.
__device__ EdgeOffset moved(const LoopedRows& rows, VertexId row, EdgeOffset edge) {
  const EdgeOffset old_begin = offset_at(rows.old_offsets, row);
  const EdgeOffset old_end = offset_at(rows.old_offsets, std::int64_t{row} + 1);
  const EdgeOffset first = rows.offsets[row] + (edge - old_begin);
  const EdgeOffset added = (rows.offsets[row + 1] - rows.offsets[row]) - (old_end - old_begin);
  return first + (added > 0 && rows.old_cols[edge] > row ? 1 : 0);
}

__global__ void move_edges(LoopedRows rows) {
  const EdgeOffset edge = thread_number();
  if (edge >= rows.num_edges) return;
  const EdgeOffset to = moved(rows, row_of(rows.old_offsets, rows.num_rows, edge), edge);
  rows.cols[to] = rows.old_cols[edge];
  if (rows.values != nullptr) rows.values[to] = rows.old_values[edge];
}

__global__ void add_loops(LoopedRows rows) {
  const std::int64_t number = thread_number();
  if (number >= rows.num_rows) return;
  const auto row = static_cast<VertexId>(number);
  if (!misses_loop(rows, row)) return;
  const EdgeOffset to =
      rows.offsets[row] + (place_of_loop(rows, row) - offset_at(rows.old_offsets, row));
  rows.cols[to] = row;
  if (rows.values != nullptr) rows.values[to] = rows.loop_value;
}

__global__ void move_ids(LoopedRows rows, EdgeOffset* ids, EdgeOffset count) {
  const EdgeOffset k = thread_number();
  if (k >= count || ids[k] < 0) return;
  ids[k] = moved(rows, row_of(rows.old_offsets, rows.num_rows, ids[k]), ids[k]);
}

}  // namespace

void count_with_loops(const LoopedRows& rows, EdgeOffset* counts, Stream stream) {
  launch_each(count_rows, std::int64_t{rows.num_rows} + 1, stream, rows, counts);
}

void write_with_loops(const LoopedRows& rows, Stream stream) {
  launch_each(move_edges, rows.num_edges, stream, rows);
  launch_each(add_loops, rows.num_rows, stream, rows);
}

void move_edge_ids(const LoopedRows& rows, EdgeOffset* ids, EdgeOffset count, Stream stream) {
  launch_each(move_ids, count, stream, rows, ids, count);
}

}  // namespace tessera::cuda
