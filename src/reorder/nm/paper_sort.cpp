// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include "reorder/nm/paper.hpp"

namespace tessera::reorder::detail {
namespace {

struct Code {
  VertexId segment;
  std::int64_t rank;  // negative where the segment vector violates
};

/// Where these bits stand in the order in which neighbours differ in one bit.
std::int64_t gray_rank(std::uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits >> shift;
  return static_cast<std::int64_t>(bits);
}

/// Compares rows as if all segment vectors were there: absent ones are 0.
bool is_before(std::span<const Code> a, std::span<const Code> b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i].segment < b[i].segment) return a[i].rank < 0;
    if (a[i].segment > b[i].segment) return b[i].rank > 0;
    if (a[i].rank != b[i].rank) return a[i].rank < b[i].rank;
  }
  if (a.size() == b.size()) return false;
  return a.size() > b.size() ? a[b.size()].rank < 0 : b[a.size()].rank > 0;
}

}  // namespace

Placement sorted_by_codes(const Adjacency& adjacency, const Placement& placement,
                          const NmPattern& pattern) {
  std::vector<Code> codes;
  std::vector<std::size_t> first_code(at(adjacency.size) + 1);
  std::vector<VertexId> columns;
  for (VertexId row = 0; row < adjacency.size; ++row) {
    columns.clear();
    for (const VertexId column : adjacency.neighbours(placement.vertex_at[at(row)])) {
      columns.push_back(placement.position_of[at(column)]);
    }
    std::sort(columns.begin(), columns.end());
    for (std::size_t i = 0; i < columns.size();) {
      const VertexId segment = columns[i] / pattern.m;
      std::uint64_t bits = 0;
      for (; i < columns.size() && columns[i] / pattern.m == segment; ++i) {
        bits |= std::uint64_t{1} << (pattern.m - 1 - columns[i] % pattern.m);
      }
      const bool violates = std::popcount(bits) > pattern.n;
      codes.push_back({segment, violates ? -gray_rank(bits) : gray_rank(bits)});
    }
    first_code[at(row) + 1] = codes.size();
  }
  const auto row_codes = [&](VertexId row) {
    return std::span<const Code>(codes).subspan(first_code[at(row)],
                                                first_code[at(row) + 1] - first_code[at(row)]);
  };
  std::vector<VertexId> rows(at(adjacency.size));
  std::iota(rows.begin(), rows.end(), VertexId{0});
  std::stable_sort(rows.begin(), rows.end(),
                   [&](VertexId a, VertexId b) { return is_before(row_codes(a), row_codes(b)); });
  for (VertexId& row : rows) row = placement.vertex_at[at(row)];
  return Placement(std::move(rows));
}

}  // namespace tessera::reorder::detail
