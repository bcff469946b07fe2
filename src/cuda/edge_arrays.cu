// SPDX-License-Identifier: Apache-2.0
#include "cuda/edge_arrays.hpp"

#include <algorithm>
#include <bit>

#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"
#include "cuda/search.cuh"

namespace tessera::cuda {
namespace {

/// The least position that a kernel finds.
class FirstPosition {
 public:
  explicit FirstPosition(const Place& place) : place_(place), memory_(1, place) {
    copy_bytes(memory_.data(), &position_, sizeof(position_), place.device, place.stream);
  }
  long long* data() { return memory_.data(); }
  EdgeOffset read() {
    copy_bytes(&position_, memory_.data(), sizeof(position_), place_.device, place_.stream);
    synchronise(place_.device, place_.stream);
    return position_;
  }

 private:
  Place place_;
  long long position_ = no_edge;
  Buffer<long long> memory_;
};

__global__ void pack(GivenEdges edges, int col_bits, EdgeKey* keys, EdgeOffset* positions,
                     EdgeReport* report) {
  const EdgeOffset k = thread_number();
  if (k >= edges.count_with_loops()) return;
  if (positions != nullptr) positions[k] = k;
  if (k >= edges.count) {
    const auto loop = static_cast<EdgeKey>(k - edges.count);
    keys[k] = (loop << col_bits) | loop;
    return;
  }
  const auto row = static_cast<std::uint32_t>(edges.rows[k]);
  const auto col = static_cast<std::uint32_t>(edges.cols[k]);
  if (row >= static_cast<std::uint32_t>(edges.num_rows) ||
      col >= static_cast<std::uint32_t>(edges.num_cols)) {
    atomicMin(&report->out_of_range, static_cast<long long>(k));
  }
  if (edges.values != nullptr && !isfinite(edges.values[k])) {
    atomicMin(&report->nonfinite, static_cast<long long>(k));
  }
  keys[k] = (EdgeKey{row} << col_bits) | col;
}

__global__ void narrow(const std::int64_t* from, EdgeOffset count, std::int64_t bound, VertexId* to,
                       long long* first_bad) {
  const EdgeOffset k = thread_number();
  if (k >= count) return;
  const std::int64_t index = from[k];
  if (index < 0 || index >= bound) atomicMin(first_bad, static_cast<long long>(k));
  to[k] = static_cast<VertexId>(index);
}

__global__ void find_out_of_range(GivenEdges edges, long long* first_bad) {
  const EdgeOffset k = thread_number();
  if (k >= edges.count) return;
  if (static_cast<std::uint32_t>(edges.rows[k]) >= static_cast<std::uint32_t>(edges.num_rows) ||
      static_cast<std::uint32_t>(edges.cols[k]) >= static_cast<std::uint32_t>(edges.num_cols)) {
    atomicMin(first_bad, static_cast<long long>(k));
  }
}

/// Columns fall where a row begins, which is looked up only there.
__global__ void find_unsorted(const Offsets row_offsets, VertexId num_rows, const VertexId* cols,
                              EdgeOffset count, VertexId num_cols, long long* first_bad) {
  const EdgeOffset k = thread_number();
  if (k >= count) return;
  bool is_bad = cols[k] < 0 || cols[k] >= num_cols;
  if (!is_bad && k > 0 && cols[k] <= cols[k - 1]) {
    is_bad = offset_at(row_offsets, row_of(row_offsets, num_rows, k)) != k;
  }
  if (is_bad) atomicMin(first_bad, static_cast<long long>(k));
}

__global__ void mark_repeated(const EdgeKey* keys, EdgeOffset count, int col_bits, EdgeOffset* kept,
                              EdgeReport* report) {
  const EdgeOffset k = thread_number();
  if (kept != nullptr && k == count) kept[k] = 0;
  if (k >= count) return;
  const EdgeKey key = keys[k];
  const bool repeats = k > 0 && keys[k - 1] == key;
  bool goes = false;
  if (kept != nullptr) {
    const bool is_loop = key >> col_bits == (key & ((EdgeKey{1} << col_bits) - 1));
    goes = repeats && is_loop && (k + 1 == count || keys[k + 1] != key);
    kept[k] = goes ? 0 : 1;
  }
  if (repeats && !goes) atomicMin(&report->repeated, static_cast<long long>(k));
}

/// A thread has a row, of which it looks for the first edge, and an edge.
__global__ void write(WrittenEdges edges) {
  const std::int64_t k = thread_number();
  if (k <= edges.num_rows) {
    const EdgeOffset at =
        k == edges.num_rows
            ? edges.count
            : lower_bound(edges.keys, 0, edges.count, static_cast<EdgeKey>(k) << edges.col_bits);
    edges.row_offsets[k] = edges.places != nullptr ? edges.places[at] : at;
  }
  if (k >= edges.count) return;
  const EdgeOffset to = edges.places != nullptr ? edges.places[k] : k;
  if (edges.places != nullptr && edges.places[k + 1] == to) return;
  edges.cols[to] = static_cast<VertexId>(edges.keys[k] & ((EdgeKey{1} << edges.col_bits) - 1));
  if (edges.positions == nullptr) return;
  const EdgeOffset position = edges.positions[k];
  const bool is_given = position < edges.num_given;
  if (edges.values != nullptr)
    edges.values[to] = is_given ? edges.given_values[position] : edges.loop_value;
  if (edges.edge_ids != nullptr && is_given) edges.edge_ids[position] = to;
}

__global__ void mark_heads(const EdgeKey* keys, EdgeOffset count, EdgeOffset* heads) {
  const EdgeOffset k = thread_number();
  if (k < count) heads[k] = k == 0 || keys[k] != keys[k - 1] ? 1 : 0;
}

__global__ void merge(const EdgeKey* keys, const EdgeOffset* positions, const EdgeOffset* groups,
                      EdgeOffset count, const float* values, bool sum, GroupOutputs outputs) {
  const EdgeOffset head = thread_number();
  if (head >= count || (head > 0 && keys[head] == keys[head - 1])) return;
  const EdgeOffset group = groups[head] - 1;
  outputs.keys[group] = keys[head];
  double total = 0;
  EdgeOffset k = head;
  for (; k < count && keys[k] == keys[head]; ++k) {
    if (values != nullptr && (sum || k == head)) total += values[positions[k]];
    if (outputs.edge_ids != nullptr) outputs.edge_ids[positions[k]] = k == head || sum ? group : -1;
  }
  if (outputs.values == nullptr) return;
  const auto value = static_cast<float>(values != nullptr ? total : double(k - head));
  outputs.values[group] = value;
  if (outputs.nonfinite != nullptr && !isfinite(value)) {
    atomicMin(reinterpret_cast<long long*>(outputs.nonfinite), static_cast<long long>(group));
  }
}

__global__ void circulant(VertexId num_vertices, VertexId degree, VertexId stride, VertexId* rows,
                          VertexId* cols) {
  const EdgeOffset edge = thread_number();
  if (edge >= EdgeOffset{num_vertices} * degree) return;
  const EdgeOffset row = edge / degree;
  rows[edge] = static_cast<VertexId>(row);
  cols[edge] = static_cast<VertexId>((row + edge % degree * stride) % num_vertices);
}

__global__ void number(const VertexId* cols, EdgeOffset count, std::uint32_t* sortable,
                       EdgeOffset* positions) {
  const EdgeOffset k = thread_number();
  if (k >= count) return;
  sortable[k] = static_cast<std::uint32_t>(cols[k]);
  positions[k] = k;
}

/// A thread has a column, of which it looks for the first edge, and an edge, of which it looks for
/// the row.
template <class Offset>
__global__ void place_columns(const SortedColumns sorted, const Offsets row_offsets,
                              VertexId num_rows, VertexId num_cols, Offset* col_offsets,
                              VertexId* rows) {
  const std::int64_t k = thread_number();
  if (k <= num_cols) {
    col_offsets[k] = static_cast<Offset>(
        lower_bound(sorted.columns, 0, sorted.count, static_cast<std::uint32_t>(k)));
  }
  if (k < sorted.count) rows[k] = row_of(row_offsets, num_rows, sorted.positions[k]);
}

/// Sums in double and in order, as on the CPU.
__global__ void inverse_roots(const Offsets offsets, const float* values, VertexId num_rows,
                              float* scale) {
  const std::int64_t row = thread_number();
  if (row >= num_rows) return;
  const EdgeOffset begin = offset_at(offsets, row), end = offset_at(offsets, row + 1);
  auto degree = static_cast<double>(end - begin);
  if (values != nullptr) {
    degree = 0;
    for (EdgeOffset k = begin; k < end; ++k) degree += values[k];
  }
  scale[row] = static_cast<float>(degree <= 0 ? 0.0 : 1 / sqrt(degree));
}

}  // namespace

KeyBits::KeyBits(VertexId num_rows, VertexId num_cols)
    : col(std::bit_width(static_cast<std::uint32_t>(num_cols > 0 ? num_cols - 1 : 0))),
      all(col + std::bit_width(static_cast<std::uint32_t>(num_rows > 0 ? num_rows - 1 : 0))) {}

void pack_edges(const GivenEdges& edges, EdgeKey* keys, EdgeOffset* positions, EdgeReport* report,
                Stream stream) {
  launch_each(pack, edges.count_with_loops(), stream, edges,
              KeyBits(edges.num_rows, edges.num_cols).col, keys, positions, report);
}

void find_repeated(const EdgeKey* keys, EdgeOffset count, int col_bits, EdgeOffset* kept,
                   EdgeReport* report, Stream stream) {
  launch_each(mark_repeated, count + 1, stream, keys, count, col_bits, kept, report);
}

void write_edges(const WrittenEdges& edges, Stream stream) {
  launch_each(write, std::max(edges.count, std::int64_t{edges.num_rows} + 1), stream, edges);
}

EdgeOffset narrow_indices(const std::int64_t* from, EdgeOffset count, std::int64_t bound,
                          VertexId* to, const Place& place) {
  FirstPosition first_bad(place);
  launch_each(narrow, count, place.stream, from, count, bound, to, first_bad.data());
  return first_bad.read();
}

EdgeOffset first_out_of_range(const GivenEdges& edges, const Place& place) {
  FirstPosition first_bad(place);
  launch_each(find_out_of_range, edges.count, place.stream, edges, first_bad.data());
  return first_bad.read();
}

EdgeOffset first_unsorted(const Offsets& row_offsets, VertexId num_rows, const VertexId* cols,
                          EdgeOffset count, VertexId num_cols, const Place& place) {
  FirstPosition first_bad(place);
  launch_each(find_unsorted, count, place.stream, row_offsets, num_rows, cols, count, num_cols,
              first_bad.data());
  return first_bad.read();
}

void number_groups(const EdgeKey* keys, EdgeOffset count, EdgeOffset* groups, const Place& place) {
  launch_each(mark_heads, count, place.stream, keys, count, groups);
  inclusive_scan(groups, count, place);
}

void merge_groups(const EdgeKey* keys, const EdgeOffset* positions, const EdgeOffset* groups,
                  EdgeOffset count, const float* values, bool sum, const GroupOutputs& outputs,
                  Stream stream) {
  launch_each(merge, count, stream, keys, positions, groups, count, values, sum, outputs);
}

void fill_circulant(VertexId num_vertices, VertexId degree, VertexId stride, VertexId* rows,
                    VertexId* cols, Stream stream) {
  launch_each(circulant, EdgeOffset{num_vertices} * degree, stream, num_vertices, degree, stride,
              rows, cols);
}

void number_columns(const VertexId* cols, EdgeOffset count, std::uint32_t* sortable,
                    EdgeOffset* positions, Stream stream) {
  launch_each(number, count, stream, cols, count, sortable, positions);
}

template <class Offset>
void transpose_offsets(const SortedColumns& sorted, const Offsets& row_offsets, VertexId num_rows,
                       VertexId num_cols, Offset* col_offsets, VertexId* rows, Stream stream) {
  launch_each(place_columns<Offset>, std::max(sorted.count, std::int64_t{num_cols} + 1), stream,
              sorted, row_offsets, num_rows, num_cols, col_offsets, rows);
}
template void transpose_offsets(const SortedColumns&, const Offsets&, VertexId, VertexId,
                                std::int32_t*, VertexId*, Stream);
template void transpose_offsets(const SortedColumns&, const Offsets&, VertexId, VertexId,
                                EdgeOffset*, VertexId*, Stream);

void inverse_roots_of_degrees(const Offsets& offsets, const float* values, VertexId num_rows,
                              float* scale, Stream stream) {
  launch_each(inverse_roots, num_rows, stream, offsets, values, num_rows, scale);
}

}  // namespace tessera::cuda
