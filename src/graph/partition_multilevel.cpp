// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "tessera/core/parallel.hpp"

#include "graph/bisect.hpp"
#include "graph/block_refiner.hpp"
#include "graph/coarsen.hpp"
#include "graph/hash.hpp"
#include "graph/partition_methods.hpp"

namespace tessera::detail {
namespace {

/// Vertices that a block has where it is split in two.
constexpr VertexId crowd = 160;
/// With fewer edges there is time for other seeds.
constexpr EdgeOffset few_edges = 1 << 18;
/// From so many edges on, time counts more than the last per cent.
constexpr EdgeOffset many_edges = 1 << 22;
/// Coarse vertices are lumps: while there are such, blocks may be this much too heavy.
constexpr double coarse_imbalance = 0.03;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// A graph, and the clusters of its vertices that the next coarser one is made of.
struct Level {
  WeightedGraph graph;
  std::vector<VertexId> cluster_of;  ///< empty: this is the coarsest
};

/// A multilevel partition (deep: Gottesbüren et al. 2021): the graph is coarsened until two blocks
/// are enough, and blocks are split again on the way back, as the vertices get more.
class Multilevel {
 public:
  struct Aim {
    std::int32_t parts;
    std::int32_t blocks;   ///< to end with: as many as parts, or fewer that stand for several
    double mean;           ///< weight of a part
    std::int64_t largest;  ///< what a part may weigh in the end
    double imbalance;
  };

  Multilevel(const WeightedGraph& graph, const Aim& aim, std::uint64_t seed,
             const Progress& progress)
      : aim_(aim), seed_(seed), progress_(progress) {
    coarsen(graph);
  }

  struct Result {
    Assignment block_of;
    Flaws flaws;
  };

  Result run() {
    Flaws flaws;
    const std::int64_t all = num_edges_of_levels();
    std::vector<std::int32_t> shares{aim_.parts};
    Assignment block_of(at(levels_.back().graph.size()), 0);
    for (std::int64_t done = 0; !levels_.empty(); levels_.pop_back()) {
      const Level& level = levels_.back();
      const bool finest = levels_.size() == 1;
      const bool coarsest = level.cluster_of.empty();
      if (!coarsest) block_of = projected(level, block_of);
      const auto num_blocks = [&] { return static_cast<std::int32_t>(shares.size()); };
      const std::int32_t wanted =
          finest ? aim_.blocks : std::min(std::max(level.graph.size() / crowd, 2), aim_.blocks);
      int rounds = 0;
      const auto on_round = [&] {
        const double of_level = 1 - std::pow(0.9, rounds++);
        report(progress_, "refining parts",
               done + static_cast<std::int64_t>(of_level *
                                                static_cast<double>(level.graph.num_edges())),
               all);
      };
      do {
        if (num_blocks() < wanted) split(level.graph, coarsest, shares, block_of);
        std::vector<std::int64_t> limits;
        for (const std::int32_t share : shares) {
          limits.push_back(limit(share, finest && aim_.blocks == aim_.parts));
        }
        flaws = refine(level.graph, limits, block_of,
                       {.patience = patience(level.graph),
                        .worthwhile = worthwhile(level.graph),
                        .boldness = finest ? 0.25 : 0.75,
                        .on_round = on_round});
      } while (num_blocks() < wanted);
      done += level.graph.num_edges();
    }
    return {std::move(block_of), flaws};
  }

 private:
  void coarsen(WeightedGraph graph) {
    const VertexId start = graph.size();
    while (true) {
      report(progress_, "coarsening", start - graph.size(), start);
      levels_.push_back({graph, {}});
      if (graph.size() <= 2 * crowd) return;
      const std::int32_t blocks = std::clamp(graph.size() / crowd, 2, std::max(aim_.blocks, 2));
      const auto heaviest = static_cast<std::int64_t>(coarse_imbalance *
                                                      static_cast<double>(graph.weight()) / blocks);
      // Small steps keep more of the shape.
      const double step = graph.num_edges() < many_edges ? 8 : 64;
      const auto gentle =
          static_cast<std::int64_t>(step * static_cast<double>(graph.weight()) / graph.size());
      std::vector<VertexId> clusters =
          clusters_of(graph, std::max<std::int64_t>(std::min(heaviest, gentle), 1),
                      mixed_hash(seed_, levels_.size()));
      WeightedGraph coarse = contracted(graph, clusters);
      if (coarse.size() > graph.size() / 20 * 19) return;
      levels_.back().cluster_of = std::move(clusters);
      graph = std::move(coarse);
    }
  }

  std::int64_t num_edges_of_levels() const {
    std::int64_t all = 0;
    for (const Level& level : levels_) all += level.graph.num_edges();
    return all;
  }

  /// Rounds in vain are cheap in small graphs only.
  static int patience(const WeightedGraph& graph) {
    return static_cast<int>(
        std::clamp<EdgeOffset>(8 * many_edges / (graph.num_edges() + 1), 1, 10));
  }

  /// The last rounds gain little, and take as long as the first.
  static double worthwhile(const WeightedGraph& graph) {
    return graph.num_edges() < many_edges ? 0.001 : 0.005;
  }

  static Assignment projected(const Level& level, const Assignment& coarse) {
    Assignment fine(level.cluster_of.size());
    parallel_for(level.graph.size(), even_grain(level.graph.size()),
                 [&](std::int64_t v) { fine[at(v)] = coarse[at(level.cluster_of[at(v)])]; });
    return fine;
  }

  /// What a block may weigh that is to become `share` parts. The more often it is still to be
  /// split, the less of the allowance is used up.
  std::int64_t limit(std::int32_t share, bool final) const {
    if (final && share == 1) return aim_.largest;
    const double slack = final ? aim_.imbalance : std::max(aim_.imbalance, coarse_imbalance);
    const auto splits = static_cast<double>(std::bit_width(static_cast<std::uint32_t>(share - 1)));
    const double mean = aim_.mean * share;
    return static_cast<std::int64_t>(
        std::max(std::ceil(mean), std::floor(mean * (1 + slack / (1 + splits)))));
  }

  /// Splits every block that is to become several parts in two.
  void split(const WeightedGraph& graph, bool coarsest, std::vector<std::int32_t>& shares,
             Assignment& block_of) {
    const auto blocks = static_cast<std::int32_t>(shares.size());
    const Grouped members = grouped_by(block_of, blocks);
    std::vector<VertexId> place(block_of.size());  // within the block
    std::vector<std::int32_t> first_half(shares.size());
    std::vector<std::int32_t> halves;
    for (std::int32_t block = 0; block < blocks; ++block) {
      first_half[at(block)] = static_cast<std::int32_t>(halves.size());
      halves.push_back((shares[at(block)] + 1) / 2);
      if (shares[at(block)] > 1) halves.push_back(shares[at(block)] / 2);
      for (VertexId k = members.begins[at(block)]; k < members.begins[at(block) + 1]; ++k) {
        place[at(members.vertices[at(k)])] = k - members.begins[at(block)];
      }
    }
    Assignment half_of(block_of.size());
    parallel_tasks(blocks, [&](std::int64_t block) {
      const std::span<const VertexId> inside(
          members.vertices.data() + members.begins[at(block)],
          members.vertices.data() + members.begins[at(block) + 1]);
      Assignment side_of(inside.size(), 0);
      if (shares[at(block)] > 1 && !inside.empty()) {
        const WeightedGraph part = block_graph(graph, inside, block_of, place);
        const std::uint64_t seed =
            mixed_hash(seed_, static_cast<std::uint64_t>(first_half[at(block)]));
        side_of =
            coarsest
                ? in_two(part, shares[at(block)], seed)
                : Multilevel(part, {shares[at(block)], 2, aim_.mean, aim_.largest, aim_.imbalance},
                             seed, {})
                      .run()
                      .block_of;
      }
      for (std::size_t k = 0; k < inside.size(); ++k) {
        half_of[at(inside[k])] = first_half[at(block)] + side_of[k];
      }
    });
    shares = std::move(halves);
    block_of = std::move(half_of);
  }

  static WeightedGraph block_graph(const WeightedGraph& graph, std::span<const VertexId> inside,
                                   const Assignment& block_of, const std::vector<VertexId>& place) {
    std::vector<EdgeOffset> offsets{0};
    std::vector<VertexId> neighbours;
    std::vector<std::int32_t> edge_weights, vertex_weights;
    std::int64_t weight = 0;
    for (const VertexId v : inside) {
      graph.for_each_edge(v, [&](VertexId neighbour, std::int32_t edge_weight) {
        if (block_of[at(neighbour)] != block_of[at(v)]) return;
        neighbours.push_back(place[at(neighbour)]);
        edge_weights.push_back(edge_weight);
      });
      offsets.push_back(static_cast<EdgeOffset>(neighbours.size()));
      vertex_weights.push_back(graph.weight(v));
      weight += graph.weight(v);
    }
    return {std::move(offsets), std::move(neighbours), std::move(edge_weights),
            std::move(vertex_weights), weight};
  }

  Assignment in_two(const WeightedGraph& graph, std::int32_t share, std::uint64_t seed) const {
    const std::int32_t first = (share + 1) / 2;
    const auto wanted = static_cast<std::int64_t>(
        static_cast<double>(graph.weight()) * (share - first) / share + 0.5);
    const std::int64_t rest = graph.weight() - wanted;
    return bisected(graph,
                    {{rest, wanted}, {half_limit(rest, first), half_limit(wanted, share - first)}},
                    seed);
  }

  /// A block that is light has no halves that are all and nothing.
  std::int64_t half_limit(std::int64_t wanted, std::int32_t share) const {
    return std::max(wanted, std::min(limit(share, false), wanted + wanted / 4));
  }

  Aim aim_;
  std::uint64_t seed_;
  Progress progress_;
  std::vector<Level> levels_;  ///< the finest first
};

}  // namespace

Assignment partition_multilevel(const PartitionTask& task) {
  const Multilevel::Aim aim{task.parts, task.parts,
                            static_cast<double>(task.graph.num_rows()) / task.parts, task.largest,
                            task.imbalance};
  // Where there is little to choose from, what comes out depends much on the seed; more seeds cost
  // little there.
  const auto attempts = static_cast<std::uint64_t>(
      std::clamp<EdgeOffset>(few_edges / (task.graph.num_edges() + 1), 1, 4));
  Multilevel::Result best;
  for (std::uint64_t attempt = 0; attempt < attempts; ++attempt) {
    auto result =
        Multilevel(WeightedGraph(task.graph), aim, mixed_hash(task.seed, attempt), task.progress)
            .run();
    if (attempt == 0 || result.flaws < best.flaws) best = std::move(result);
  }
  repair(task, best.block_of);
  return std::move(best.block_of);
}

}  // namespace tessera::detail
