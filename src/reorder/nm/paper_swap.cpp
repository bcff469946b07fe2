// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <utility>

#include "reorder/nm/paper.hpp"

namespace tessera::reorder::detail {
namespace {

/// Which columns of one segment each row has: a word per row, cleared again after use.
class SegmentBits {
 public:
  explicit SegmentBits(VertexId rows) : bits_(at(rows), 0) {}

  void load(const Adjacency& adjacency, std::span<const VertexId> vertices) {
    for (const VertexId row : rows_) bits_[at(row)] = 0;
    rows_.clear();
    for (std::size_t column = 0; column < vertices.size(); ++column) {
      for (const VertexId row : adjacency.neighbours(vertices[column])) {
        if (bits_[at(row)] == 0) rows_.push_back(row);
        bits_[at(row)] |= std::uint32_t{1} << column;
      }
    }
  }
  std::uint32_t of(VertexId row) const { return bits_[at(row)]; }
  int count(VertexId row) const { return std::popcount(bits_[at(row)]); }
  const std::vector<VertexId>& rows() const { return rows_; }

 private:
  std::vector<std::uint32_t> bits_;
  std::vector<VertexId> rows_;
};

struct Pair {
  int of_primary = -1;
  int of_target = -1;
  std::int64_t primary_gain = 0;
  std::int64_t target_gain = 0;
};

/// One pass of stage 2.
class SegmentSwaps {
 public:
  SegmentSwaps(const Adjacency& adjacency, Placement& placement, const NmPattern& pattern)
      : adjacency_(adjacency),
        placement_(placement),
        pattern_(pattern),
        primary_(adjacency.size),
        target_(adjacency.size),
        used_(at(adjacency.size), false) {}

  bool run(Budget& budget) {
    rank_segments();
    if (queue_.size() == 1) {
      swap_with(queue_[0], sparsest_segment(queue_[0]));
    }
    for (std::size_t first = 0; first + 1 < queue_.size(); ++first) {
      if (!budget.take(1) || !treat(first, budget)) break;
    }
    for (const auto& [a, b] : swaps_) {
      std::swap(placement_.position_of[at(a)], placement_.position_of[at(b)]);
      placement_.vertex_at[at(placement_.position_of[at(a)])] = a;
      placement_.vertex_at[at(placement_.position_of[at(b)])] = b;
    }
    return !swaps_.empty();
  }

 private:
  std::span<const VertexId> vertices_of(VertexId segment) const {
    const std::size_t begin = at(std::int64_t{segment} * pattern_.m);
    const std::size_t end = std::min(begin + at(pattern_.m), placement_.vertex_at.size());
    return std::span<const VertexId>(placement_.vertex_at).subspan(begin, end - begin);
  }

  VertexId num_segments() const {
    return static_cast<VertexId>((std::int64_t{adjacency_.size} + pattern_.m - 1) / pattern_.m);
  }

  void rank_segments() {
    score_.assign(at(num_segments()), 0);
    for (VertexId segment = 0; segment < num_segments(); ++segment) {
      primary_.load(adjacency_, vertices_of(segment));
      for (const VertexId row : primary_.rows()) {
        score_[at(segment)] += primary_.count(row) > pattern_.n ? 1 : 0;
      }
      if (score_[at(segment)] > 0) queue_.push_back(segment);
    }
    std::stable_sort(queue_.begin(), queue_.end(),
                     [&](VertexId a, VertexId b) { return score_[at(a)] > score_[at(b)]; });
  }

  VertexId sparsest_segment(VertexId except) const {
    VertexId sparsest = -1;
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    for (VertexId segment = 0; segment < num_segments(); ++segment) {
      std::int64_t entries = 0;
      for (const VertexId vertex : vertices_of(segment)) entries += adjacency_.degree(vertex);
      if (segment != except && entries < fewest) {
        fewest = entries;
        sparsest = segment;
      }
    }
    return sparsest;
  }

  /// Swaps of the primary segment at `first` with the segments after it. False when out of budget.
  bool treat(std::size_t first, Budget& budget) {
    const VertexId primary = queue_[first];
    if (score_[at(primary)] <= 0) return true;
    primary_.load(adjacency_, vertices_of(primary));
    for (std::size_t next = first + 1; next < queue_.size(); ++next) {
      const VertexId target = queue_[next];
      if (score_[at(target)] <= 0) continue;
      target_.load(adjacency_, vertices_of(target));
      if (!budget.take(static_cast<std::int64_t>(target_.rows().size()) + pattern_.m)) return false;
      const Pair pair = best_fresh_pair(primary, target);
      if (pair.of_primary < 0) {
        if (all_used(primary)) break;
        continue;
      }
      record(primary, target, pair);
      if (score_[at(primary)] <= 0) break;
    }
    return true;
  }

  void swap_with(VertexId primary, VertexId target) {
    if (target < 0) return;
    primary_.load(adjacency_, vertices_of(primary));
    target_.load(adjacency_, vertices_of(target));
    while (score_[at(primary)] > 0) {
      const Pair pair = best_fresh_pair(primary, target);
      if (pair.of_primary < 0 || pair.primary_gain + pair.target_gain <= 0) break;
      record(primary, target, pair);
    }
  }

  void record(VertexId primary, VertexId target, const Pair& pair) {
    const VertexId a = vertices_of(primary)[at(pair.of_primary)];
    const VertexId b = vertices_of(target)[at(pair.of_target)];
    used_[at(a)] = true;
    used_[at(b)] = true;
    swaps_.emplace_back(a, b);
    score_[at(primary)] -= pair.primary_gain;
    score_[at(target)] -= pair.target_gain;
  }

  bool all_used(VertexId segment) const {
    const auto vertices = vertices_of(segment);
    return std::all_of(vertices.begin(), vertices.end(),
                       [&](VertexId vertex) { return used_[at(vertex)]; });
  }

  /// How the violations of a segment change when a row gains or loses one entry.
  int gain_of_losing(int count) const { return count == pattern_.n + 1 ? 1 : 0; }
  int gain_of_winning(int count) const { return count == pattern_.n ? -1 : 0; }

  /// The pair with the largest gain of both segments among vertices that are not in a swap yet.
  /// Rows that have both columns of a pair do not change.
  Pair best_fresh_pair(VertexId primary, VertexId target) const {
    const auto from = vertices_of(primary);
    const auto to = vertices_of(target);
    Pair best;
    std::int64_t best_gain = std::numeric_limits<std::int64_t>::min();
    for (std::size_t u = 0; u < from.size(); ++u) {
      if (used_[at(from[u])]) continue;
      for (std::size_t v = 0; v < to.size(); ++v) {
        if (used_[at(to[v])]) continue;
        Pair pair{static_cast<int>(u), static_cast<int>(v), 0, 0};
        for (const VertexId row : adjacency_.neighbours(from[u])) {
          if ((target_.of(row) >> v & 1) != 0) continue;
          pair.primary_gain += gain_of_losing(primary_.count(row));
          pair.target_gain += gain_of_winning(target_.count(row));
        }
        for (const VertexId row : adjacency_.neighbours(to[v])) {
          if ((primary_.of(row) >> u & 1) != 0) continue;
          pair.primary_gain += gain_of_winning(primary_.count(row));
          pair.target_gain += gain_of_losing(target_.count(row));
        }
        if (pair.primary_gain + pair.target_gain > best_gain) {
          best_gain = pair.primary_gain + pair.target_gain;
          best = pair;
        }
      }
    }
    return best;
  }

  const Adjacency& adjacency_;
  Placement& placement_;
  const NmPattern pattern_;
  SegmentBits primary_;
  SegmentBits target_;
  std::vector<bool> used_;
  std::vector<std::int64_t> score_;
  std::vector<VertexId> queue_;
  std::vector<std::pair<VertexId, VertexId>> swaps_;
};

}  // namespace

bool swap_between_segments(const Adjacency& adjacency, Placement& placement,
                           const NmPattern& pattern, Budget& budget) {
  return SegmentSwaps(adjacency, placement, pattern).run(budget);
}

}  // namespace tessera::reorder::detail
