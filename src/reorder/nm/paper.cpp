// SPDX-License-Identifier: Apache-2.0
#include "reorder/nm/paper.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tessera::reorder::detail {
namespace {

/// The paper's limit for each of its loops.
constexpr int most_passes = 10;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Positions of all entries in rows [begin, end), sorted; row by row before that.
struct BlockScan {
  std::vector<VertexId> all;
  std::vector<VertexId> one_row;
};

}  // namespace

Placement::Placement(std::vector<VertexId> vertices)
    : vertex_at(std::move(vertices)), position_of(vertex_at.size()) {
  for (std::size_t i = 0; i < vertex_at.size(); ++i) {
    position_of[at(vertex_at[i])] = static_cast<VertexId>(i);
  }
}

NmViolations count_violations(const Adjacency& adjacency, const Placement& placement,
                              const NmPattern& pattern) {
  NmViolations found;
  BlockScan scan;
  std::vector<VertexId> bad;
  for (std::int64_t first = 0; first < adjacency.size; first += pattern.v) {
    scan.all.clear();
    bad.clear();
    const std::int64_t end = std::min<std::int64_t>(adjacency.size, first + pattern.v);
    for (std::int64_t row = first; row < end; ++row) {
      scan.one_row.clear();
      for (const VertexId column : adjacency.neighbours(placement.vertex_at[at(row)])) {
        scan.one_row.push_back(placement.position_of[at(column)]);
      }
      scan.all.insert(scan.all.end(), scan.one_row.begin(), scan.one_row.end());
      for (VertexId& column : scan.one_row) column /= pattern.m;
      std::sort(scan.one_row.begin(), scan.one_row.end());
      for (std::size_t i = at(pattern.n); i < scan.one_row.size(); ++i) {
        const VertexId group = scan.one_row[i];
        const bool is_last = i + 1 == scan.one_row.size() || scan.one_row[i + 1] != group;
        if (group == scan.one_row[i - at(pattern.n)] && is_last) {
          ++found.vectors;
          bad.push_back(group);
        }
      }
    }
    std::sort(scan.all.begin(), scan.all.end());
    scan.all.erase(std::unique(scan.all.begin(), scan.all.end()), scan.all.end());
    for (std::size_t i = NmPattern::most_live_columns; i < scan.all.size(); ++i) {
      const VertexId group = scan.all[i] / pattern.m;
      if (group == scan.all[i - NmPattern::most_live_columns] / pattern.m) bad.push_back(group);
    }
    std::sort(bad.begin(), bad.end());
    found.meta_blocks += std::unique(bad.begin(), bad.end()) - bad.begin();
  }
  return found;
}

PaperResult order_as_paper(const Adjacency& adjacency, const NmPattern& pattern, Budget& budget) {
  std::vector<VertexId> vertices(at(adjacency.size));
  std::iota(vertices.begin(), vertices.end(), VertexId{0});
  Placement placement(std::move(vertices));
  PaperResult best{placement.vertex_at, 0};
  NmViolations fewest = count_violations(adjacency, placement, pattern);
  std::int64_t passes = 0;
  const auto assess = [&] {
    ++passes;
    const NmViolations now = count_violations(adjacency, placement, pattern);
    const auto rank = [](const NmViolations& v) { return std::pair{v.meta_blocks, v.vectors}; };
    if (rank(now) < rank(fewest)) {
      fewest = now;
      best.order = placement.vertex_at;
    }
    return now;
  };
  const auto may_go_on = [&] { return budget.take(adjacency.num_edges() + adjacency.size); };
  for (int round = 0; round < most_passes && !fewest.conforms() && may_go_on(); ++round) {
    const NmViolations before = fewest;
    NmViolations now = count_violations(adjacency, placement, pattern);
    for (int pass = 0; pass < most_passes && !now.conforms() && may_go_on(); ++pass) {
      Placement sorted = sorted_by_codes(adjacency, placement, pattern);
      if (sorted.vertex_at == placement.vertex_at) break;
      placement = std::move(sorted);
      now = assess();
    }
    for (int pass = 0; pass < most_passes && now.vectors > 0 && may_go_on(); ++pass) {
      if (!swap_between_segments(adjacency, placement, pattern, budget)) break;
      now = assess();
    }
    if (fewest == before) break;
  }
  best.passes = passes;
  return best;
}

}  // namespace tessera::reorder::detail
