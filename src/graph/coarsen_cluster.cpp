// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "tessera/core/parallel.hpp"

#include "graph/coarsen.hpp"
#include "graph/hash.hpp"
#include "graph/ratings.hpp"

namespace tessera::detail {
namespace {

constexpr VertexId none = -1;

class Clusters {
 public:
  Clusters(const WeightedGraph& graph, std::int64_t heaviest, std::uint64_t seed)
      : graph_(graph),
        heaviest_(heaviest),
        seed_(seed),
        cluster_of_(at(graph.size())),
        weight_of_(at(graph.size())),
        wish_of_(at(graph.size())) {
    std::iota(cluster_of_.begin(), cluster_of_.end(), VertexId{0});
    for (VertexId v = 0; v < graph.size(); ++v) weight_of_[at(v)] = graph.weight(v);
    // Neighbours seldom decide at the same time, so they do not swap places.
    std::vector<std::int32_t> round_of(at(graph.size()));
    for (VertexId v = 0; v < graph.size(); ++v) {
      round_of[at(v)] = static_cast<std::int32_t>(hash(v, 0) % rounds);
    }
    turns_ = grouped_by(round_of, rounds);
  }

  /// Every vertex once looks for the cluster around it to which most of its edges lead.
  VertexId pass() {
    VertexId moved = 0;
    for (std::int32_t round = 0; round < rounds; ++round) {
      const VertexId* const turn = turns_.vertices.data() + turns_.begins[at(round)];
      const VertexId count = turns_.begins[at(round + 1)] - turns_.begins[at(round)];
      for_each_wish(count, [&](VertexId k, Ratings& ratings) {
        wish_of_[at(turn[k])] = favourite(turn[k], ratings, true);
      });
      for (VertexId k = 0; k < count; ++k) moved += fulfil(turn[k]) ? 1 : 0;
    }
    return moved;
  }

  /// Puts vertices together that stayed alone and would have liked the same cluster, also those
  /// that have no neighbour at all.
  void pair_the_lonely(bool only_isolated) {
    std::vector<VertexId> lonely;
    for (VertexId v = 0; v < graph_.size(); ++v) {
      const bool alone = cluster_of_[at(v)] == v && weight_of_[at(v)] == graph_.weight(v);
      if (alone && (!only_isolated || graph_.degree(v) == 0)) lonely.push_back(v);
    }
    for_each_wish(static_cast<VertexId>(lonely.size()), [&](VertexId k, Ratings& ratings) {
      const VertexId v = lonely[at(k)];
      wish_of_[at(v)] = favourite(v, ratings, false);
    });
    std::stable_sort(lonely.begin(), lonely.end(),
                     [&](VertexId a, VertexId b) { return wish_of_[at(a)] < wish_of_[at(b)]; });
    VertexId last = none;
    for (const VertexId v : lonely) {
      const bool fits = last != none && wish_of_[at(v)] == wish_of_[at(last)] &&
                        weight_of_[at(last)] + graph_.weight(v) <= heaviest_;
      if (fits) {
        join(v, last);
      } else {
        last = v;
      }
    }
  }

  /// Clusters numbered without gaps.
  std::vector<VertexId> finish() && {
    std::vector<VertexId> number(cluster_of_.size(), none);
    VertexId next = 0;
    for (VertexId& cluster : cluster_of_) {
      if (number[at(cluster)] == none) number[at(cluster)] = next++;
      cluster = number[at(cluster)];
    }
    return std::move(cluster_of_);
  }

 private:
  static constexpr std::int32_t rounds = 16;

  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  std::uint64_t hash(VertexId vertex, VertexId cluster) const {
    return mixed_hash(mixed_hash(seed_, static_cast<std::uint64_t>(vertex)),
                      static_cast<std::uint64_t>(cluster)) >>
           16;
  }

  template <class Decide>
  void for_each_wish(VertexId count, Decide&& decide) {
    parallel_ranges(count, even_grain(count, 256), [&](std::int64_t begin, std::int64_t end) {
      Ratings ratings;
      for (std::int64_t k = begin; k < end; ++k) decide(static_cast<VertexId>(k), ratings);
    });
  }

  /// The cluster that the vertex is tied to most; of equals any, the seed says which. `none` where
  /// there is none. With `must_fit`, one that can take it, and its own where no other is better.
  VertexId favourite(VertexId vertex, Ratings& ratings, bool must_fit) const {
    ratings.start(graph_.degree(vertex), graph_.size());
    graph_.for_each_edge(vertex, [&](VertexId neighbour, std::int32_t weight) {
      ratings.add(cluster_of_[at(neighbour)], weight);
    });
    const VertexId own = cluster_of_[at(vertex)];
    VertexId best = must_fit ? own : none;
    std::int64_t most = must_fit ? ratings[own] : 0;
    std::uint64_t luck = 0;
    const std::int64_t room = heaviest_ - graph_.weight(vertex);
    ratings.for_each([&](VertexId cluster, std::int64_t sum) {
      if (sum < most || cluster == own || (must_fit && weight_of_[at(cluster)] > room)) return;
      const std::uint64_t drawn = hash(vertex, cluster);
      if (sum == most && drawn <= luck) return;
      best = cluster;
      most = sum;
      luck = drawn;
    });
    return best;
  }

  bool fulfil(VertexId vertex) {
    const VertexId wish = wish_of_[at(vertex)];
    if (wish == cluster_of_[at(vertex)] ||
        weight_of_[at(wish)] + graph_.weight(vertex) > heaviest_) {
      return false;
    }
    join(vertex, wish);
    return true;
  }

  void join(VertexId vertex, VertexId cluster) {
    weight_of_[at(cluster_of_[at(vertex)])] -= graph_.weight(vertex);
    weight_of_[at(cluster)] += graph_.weight(vertex);
    cluster_of_[at(vertex)] = cluster;
  }

  const WeightedGraph& graph_;
  std::int64_t heaviest_;
  std::uint64_t seed_;
  std::vector<VertexId> cluster_of_;  ///< named after a vertex, not always one of its members
  std::vector<std::int64_t> weight_of_;
  std::vector<VertexId> wish_of_;
  Grouped turns_;
};

}  // namespace

std::vector<VertexId> clusters_of(const WeightedGraph& graph, std::int64_t heaviest,
                                  std::uint64_t seed) {
  constexpr int most_passes = 3;
  Clusters clusters(graph, heaviest, seed);
  for (int pass = 0; pass < most_passes; ++pass) {
    if (clusters.pass() < graph.size() / 20) break;
  }
  clusters.pair_the_lonely(false);
  return std::move(clusters).finish();
}

}  // namespace tessera::detail
