// SPDX-License-Identifier: Apache-2.0
#include "graph/row_filler.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "graph/requirements.hpp"

namespace tessera::detail {
namespace {

using Piece = RowFiller::Piece;
constexpr std::size_t num_parts = RowFiller::num_parts;

std::size_t part_of(VertexId row, int shift) {
  return std::min(static_cast<std::size_t>(row) >> shift, num_parts - 1);
}

/// Runs `visit(entry)` for the edges and their mirror images.
template <class Visit>
void for_each(std::span<const Entry> edges, int mirror, Visit&& visit) {
  for (const Entry& edge : edges) {
    visit(edge);
    if (mirror != 0 && edge.row != edge.col) {
      visit(Entry{edge.col, edge.row, static_cast<float>(mirror) * edge.value});
    }
  }
}

/// Runs `visit(entry)` for all entries of one part, in their order.
template <class Visit>
void for_part(std::span<const Piece> pieces, std::size_t part, Visit&& visit) {
  for (const Piece& piece : pieces) {
    const std::uint32_t end = piece.begins[part + 1];
    for (std::uint32_t k = piece.begins[part]; k < end; ++k) visit(piece.entries[k]);
  }
}

std::int64_t rows_grain(std::int64_t rows) { return even_grain(rows, 256); }

/// Sorts columns with their values; those of one column keep their order.
void sort_weighted(VertexId* cols, float* values, std::int64_t count,
                   std::vector<std::uint64_t>& order, std::vector<float>& scratch) {
  if (std::is_sorted(cols, cols + count)) return;
  order.resize(static_cast<std::size_t>(count));
  scratch.assign(values, values + count);
  for (std::int64_t i = 0; i < count; ++i) {
    order[static_cast<std::size_t>(i)] =
        static_cast<std::uint64_t>(cols[i]) << 32 | static_cast<std::uint64_t>(i);
  }
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t packed = order[static_cast<std::size_t>(i)];
    cols[i] = static_cast<VertexId>(packed >> 32);
    values[i] = scratch[static_cast<std::uint32_t>(packed)];
  }
}

/// The rest stays in memory unless it is more than a quarter.
template <class T>
SharedArray<T> first_of(Buffer<T>&& buffer, std::int64_t count) {
  if (count < buffer.size() - buffer.size() / 4) {
    Buffer<T> copy(count);
    std::copy_n(buffer.data(), count, copy.data());
    return SharedArray<T>(std::move(copy));
  }
  const auto owner = std::make_shared<const Buffer<T>>(std::move(buffer));
  return {owner, owner->data(), count};
}

}  // namespace

void RowFiller::sort_into(std::span<const Entry> edges, Piece& piece) const {
  piece.begins.fill(0);
  piece.given = static_cast<std::int64_t>(edges.size());
  VertexId highest = -1;
  for_each(edges, mirror_, [&](const Entry& entry) {
    ++piece.begins[part_of(entry.row, shift_) + 1];
    highest = std::max({highest, entry.row, entry.col});
  });
  piece.highest = highest;
  std::partial_sum(piece.begins.begin(), piece.begins.end(), piece.begins.begin());
  piece.entries.resize(piece.begins.back());
  std::array<std::uint32_t, num_parts + 1> next = piece.begins;
  for_each(edges, mirror_,
           [&](const Entry& entry) { piece.entries[next[part_of(entry.row, shift_)]++] = entry; });
}

void RowFiller::grow_to(std::int64_t rows) {
  Buffer<EdgeOffset> larger(rows + 1);
  const std::int64_t kept = std::min(rows, rows_);
  if (kept > 0) std::copy_n(offsets_.data(), kept, larger.data());
  std::fill(larger.begin() + kept, larger.end(), 0);
  offsets_ = std::move(larger);
  rows_ = rows;
}

void RowFiller::count(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    entries_ += piece.given;
    highest_ = std::max<std::int64_t>(highest_, piece.highest);
  }
  if (highest_ >= rows_) grow_to(std::max(highest_ + 1, rows_ + rows_ / 4));
  EdgeOffset* const counts = offsets_.data();
  parallel_tasks(num_parts, [&](std::int64_t part) {
    for_part(pieces, static_cast<std::size_t>(part),
             [&](const Entry& entry) { ++counts[entry.row]; });
  });
  while ((rows_ >> shift_) >= static_cast<std::int64_t>(num_parts)) ++shift_;
}

void RowFiller::begin_placing(VertexId num_rows) {
  grow_to(num_rows);
  const EdgeOffset total = exclusive_scan(offsets_.span());
  cols_ = Buffer<VertexId>(total);
  values_ = Buffer<float>(weighted_ ? total : 0);
}

void RowFiller::place(std::span<const Piece> pieces) {
  placed_ += parallel_reduce(
      num_parts, 1, std::int64_t{0},
      [&](std::int64_t part, std::int64_t) {
        std::int64_t placed = 0;
        for_part(pieces, static_cast<std::size_t>(part), [&](const Entry& entry) {
          if (entry.row >= rows_) return;
          const EdgeOffset slot = offsets_[entry.row]++;
          if (slot >= cols_.size()) return;
          cols_[slot] = entry.col;
          if (weighted_) values_[slot] = entry.value;
          ++placed;
        });
        return placed;
      },
      std::plus<>());
}

void RowFiller::sort_rows() {
  parallel_ranges(rows_, rows_grain(rows_), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint64_t> order;
    std::vector<float> scratch;
    for (std::int64_t row = begin; row < end; ++row) {
      VertexId* const cols = cols_.data() + offsets_[row];
      const EdgeOffset count = offsets_[row + 1] - offsets_[row];
      if (weighted_) {
        sort_weighted(cols, values_.data() + offsets_[row], count, order, scratch);
      } else if (!std::is_sorted(cols, cols + count)) {
        std::sort(cols, cols + count);
      }
    }
  });
}

bool RowFiller::has_duplicates() const {
  return parallel_reduce(
      rows_, rows_grain(rows_), false,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const VertexId* const last = cols_.data() + offsets_[row + 1];
          if (std::adjacent_find(cols_.data() + offsets_[row], last) != last) return true;
        }
        return false;
      },
      std::logical_or<>());
}

/// Edges are merged where they are, a range of rows at a time, and the ranges moved up: no second
/// copy of them.
Graph RowFiller::merged(VertexId num_cols, bool summed) && {
  if (summed && !weighted_) values_ = Buffer<float>(cols_.size());
  const bool has_values = weighted_ || summed;
  Buffer<EdgeOffset> offsets(rows_ + 1);
  const std::int64_t grain = rows_grain(rows_);
  parallel_ranges(rows_, grain, [&](std::int64_t first, std::int64_t last) {
    EdgeOffset edge = offsets_[first];
    for (std::int64_t row = first; row < last; ++row) {
      const EdgeOffset row_begin = edge;
      for (EdgeOffset begin = offsets_[row], k = begin; begin < offsets_[row + 1]; begin = k) {
        const VertexId col = cols_[begin];
        const float value = weighted_ ? values_[begin] : 1.0f;
        double sum = 0;
        for (; k < offsets_[row + 1] && cols_[k] == col; ++k) sum += weighted_ ? values_[k] : 1.0;
        cols_[edge] = col;
        if (has_values) values_[edge] = summed ? static_cast<float>(sum) : value;
        ++edge;
      }
      offsets[row] = edge - row_begin;
    }
  });
  offsets[rows_] = 0;
  const EdgeOffset count = exclusive_scan(offsets.span());
  for (std::int64_t first = 0; first < rows_; first += grain) {
    const EdgeOffset to = offsets[first];
    const EdgeOffset from = offsets_[first];
    const EdgeOffset end = from + offsets[std::min(first + grain, rows_)] - to;
    std::copy(cols_.data() + from, cols_.data() + end, cols_.data() + to);
    if (has_values) std::copy(values_.data() + from, values_.data() + end, values_.data() + to);
  }
  return {static_cast<VertexId>(rows_), num_cols, std::move(offsets),
          first_of(std::move(cols_), count),
          has_values ? first_of(std::move(values_), count) : SharedArray<float>()};
}

Graph RowFiller::finish(VertexId num_cols, Duplicates duplicates,
                        FunctionRef<void(VertexId row, VertexId col)> report_duplicate) && {
  // Each counter stands where its row ends, which is where the next one begins.
  std::copy_backward(offsets_.begin(), offsets_.end() - 1, offsets_.end());
  offsets_[0] = 0;
  sort_rows();
  const auto num_rows = static_cast<VertexId>(rows_);
  const bool repeated = has_duplicates();
  if (!repeated || duplicates == Duplicates::keep) {
    const Graph graph(num_rows, num_cols, std::move(offsets_), std::move(cols_),
                      std::move(values_));
    return repeated ? graph.with_repeated_edges() : graph;
  }
  for (VertexId row = 0; duplicates == Duplicates::reject; ++row) {
    for (EdgeOffset k = offsets_[row] + 1; k < offsets_[row + 1]; ++k) {
      if (cols_[k] != cols_[k - 1]) continue;
      report_duplicate(row, cols_[k]);
    }
  }
  return std::move(*this).merged(num_cols, duplicates == Duplicates::sum);
}

}  // namespace tessera::detail
