// SPDX-License-Identifier: Apache-2.0
#include "graph/block_refiner.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "tessera/core/parallel.hpp"

#include "graph/hash.hpp"
#include "graph/ratings.hpp"

namespace tessera::detail {
namespace {

constexpr std::int32_t none = -1;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

class Refiner {
 public:
  Refiner(const WeightedGraph& graph, std::span<const std::int64_t> limits,
          std::vector<std::int32_t>& block_of)
      : graph_(graph),
        limits_(limits),
        blocks_(static_cast<std::int32_t>(limits.size())),
        block_of_(block_of),
        weights_(limits.size()),
        choices_(block_of.size()),
        rests_(block_of.size()),
        moves_(block_of.size()) {
    for (VertexId v = 0; v < graph.size(); ++v) weights_[at(block_of[at(v)])] += graph.weight(v);
  }

  std::int64_t overweight() const {
    std::int64_t sum = 0;
    for (std::int32_t b = 0; b < blocks_; ++b) sum += excess(b);
    return sum;
  }

  /// Every vertex that did not move in the last round picks the other block to which most of its
  /// edges lead, if it does not lose more than boldness allows. Returns what is cut now.
  std::int64_t choose(double boldness, std::uint64_t round) {
    return parallel_reduce(
        graph_.size(), grain(), std::int64_t{0},
        [&](std::int64_t begin, std::int64_t end) {
          Ratings ratings;
          std::int64_t cut = 0;
          for (std::int64_t v = begin; v < end; ++v) {
            cut += choose_for(static_cast<VertexId>(v), boldness, round, ratings);
          }
          return cut;
        },
        std::plus<>());
  }

  /// Moves those whose choice is no loss when all who gain more have moved before.
  bool move() {
    parallel_for(graph_.size(), grain(), [&](std::int64_t v) {
      moves_[static_cast<std::size_t>(v)] = is_worth_it(static_cast<VertexId>(v)) ? 1 : 0;
    });
    bool any = false;
    for (VertexId v = 0; v < graph_.size(); ++v) {
      rests_[at(v)] = moves_[at(v)];
      if (moves_[at(v)] == 0) continue;
      put(v, choices_[at(v)].target);
      any = true;
    }
    return any;
  }

  /// Moves vertices out of blocks that are too heavy, those first that cost least by weight.
  void balance() {
    for (const Leaver& leaver : leavers()) {
      const VertexId v = leaver.vertex;
      const std::int32_t own = block_of_[at(v)];
      if (excess(own) == 0) continue;
      const std::int32_t target = block_with_room(v);
      if (target == none) continue;
      put(v, target);
      rests_[at(v)] = 1;
    }
  }

 private:
  /// What a vertex would do, beside where it is: neighbours read all of it together.
  struct Choice {
    std::int64_t gain = 0;  ///< by how much the cut falls
    std::int32_t block = none;
    std::int32_t target = none;  ///< none: it stays
  };

  struct Leaver {
    std::int32_t block;
    double loss;
    VertexId vertex;
    friend bool operator<(const Leaver& a, const Leaver& b) {
      return std::tie(a.block, a.loss, a.vertex) < std::tie(b.block, b.loss, b.vertex);
    }
  };

  std::int64_t grain() const { return even_grain(graph_.size(), 256); }

  std::int64_t excess(std::int32_t block) const {
    return std::max<std::int64_t>(weights_[at(block)] - limits_[at(block)], 0);
  }

  bool has_room(std::int32_t block, VertexId vertex) const {
    return weights_[at(block)] + graph_.weight(vertex) <= limits_[at(block)];
  }

  void put(VertexId vertex, std::int32_t block) {
    weights_[at(block_of_[at(vertex)])] -= graph_.weight(vertex);
    weights_[at(block)] += graph_.weight(vertex);
    block_of_[at(vertex)] = block;
  }

  void rate(VertexId vertex, Ratings& ratings) const {
    ratings.start(graph_.degree(vertex), blocks_);
    graph_.for_each_edge(vertex, [&](VertexId neighbour, std::int32_t weight) {
      ratings.add(block_of_[at(neighbour)], weight);
    });
  }

  std::int64_t choose_for(VertexId vertex, double boldness, std::uint64_t round, Ratings& ratings) {
    rate(vertex, ratings);
    const std::int32_t own = block_of_[at(vertex)];
    std::int32_t best = none;
    std::int64_t most = 0, others = 0, inside = 0;
    std::uint64_t luck = 0;
    ratings.for_each([&](std::int32_t block, std::int64_t sum) {
      if (block == own) {
        inside = sum;
        return;
      }
      others += sum;
      if (sum < most) return;
      const std::uint64_t drawn = mixed_hash(mixed_hash(round, static_cast<std::uint64_t>(vertex)),
                                             static_cast<std::uint64_t>(block)) >>
                                  16;
      if (sum == most && drawn <= luck) return;
      best = block;
      most = sum;
      luck = drawn;
    });
    const std::int64_t gain = most - inside;
    const bool dares =
        gain >= 0 || static_cast<double>(-gain) < boldness * static_cast<double>(inside);
    choices_[at(vertex)] = {gain, own, rests_[at(vertex)] == 0 && dares ? best : none};
    return others;
  }

  bool is_worth_it(VertexId vertex) const {
    const Choice& own = choices_[at(vertex)];
    if (own.target == none) return false;
    std::int64_t gain = 0;
    graph_.for_each_edge(vertex, [&](VertexId neighbour, std::int32_t weight) {
      const Choice& other = choices_[at(neighbour)];
      const bool goes_first =
          other.target != none &&
          (other.gain > own.gain || (other.gain == own.gain && neighbour < vertex));
      const std::int32_t block = goes_first ? other.target : other.block;
      gain += block == own.target ? weight : block == own.block ? -weight : 0;
    });
    return gain >= 0;
  }

  std::vector<Leaver> leavers() const {
    const std::int64_t piece = grain();
    std::vector<std::vector<Leaver>> pieces(
        static_cast<std::size_t>((graph_.size() + piece - 1) / piece));
    parallel_ranges(graph_.size(), piece, [&](std::int64_t begin, std::int64_t end) {
      Ratings ratings;
      for (auto v = static_cast<VertexId>(begin); v < end; ++v) {
        const std::int32_t own = block_of_[at(v)];
        if (excess(own) == 0) continue;
        rate(v, ratings);
        std::int64_t most = 0, inside = 0;
        ratings.for_each([&](std::int32_t block, std::int64_t sum) {
          if (block == own) {
            inside = sum;
          } else if (sum > most && has_room(block, v)) {
            most = sum;
          }
        });
        const double loss = static_cast<double>(inside - most);
        const double weight = graph_.weight(v);
        pieces[static_cast<std::size_t>(begin / piece)].push_back(
            {own, loss > 0 ? loss / weight : loss * weight, v});
      }
    });
    std::vector<Leaver> all;
    for (const auto& some : pieces) all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end());
    return all;
  }

  /// The neighbouring block to which most edges lead, or else any other.
  std::int32_t block_with_room(VertexId vertex) {
    rate(vertex, ratings_);
    const std::int32_t own = block_of_[at(vertex)];
    std::int32_t best = none;
    std::int64_t most = 0;
    ratings_.for_each([&](std::int32_t block, std::int64_t sum) {
      if (block == own || sum < most || !has_room(block, vertex)) return;
      if (sum == most && block > best) return;
      best = block;
      most = sum;
    });
    for (std::int32_t tried = 0; best == none && tried < blocks_; ++tried) {
      if (next_ != own && has_room(next_, vertex)) return next_;
      next_ = (next_ + 1) % blocks_;
    }
    return best;
  }

  const WeightedGraph& graph_;
  std::span<const std::int64_t> limits_;
  std::int32_t blocks_;
  std::vector<std::int32_t>& block_of_;
  std::vector<std::int64_t> weights_;
  std::vector<Choice> choices_;
  std::vector<std::uint8_t> rests_;  ///< moved just now
  std::vector<std::uint8_t> moves_;
  Ratings ratings_;
  std::int32_t next_ = 0;  ///< block to try where no neighbour has room
};

}  // namespace

Flaws refine(const WeightedGraph& graph, std::span<const std::int64_t> limits,
             std::vector<std::int32_t>& block_of, const RefineOptions& options) {
  constexpr int most_rounds = 100;
  Refiner refiner(graph, limits, block_of);
  std::vector<std::int32_t> best;
  Flaws least;
  int in_vain = 0;
  for (int round = 0; round < most_rounds && in_vain < options.patience; ++round) {
    if (options.on_round) options.on_round();
    if (refiner.overweight() > 0) refiner.balance();
    const std::int64_t cut = refiner.choose(options.boldness, static_cast<std::uint64_t>(round));
    const Flaws now{refiner.overweight(), cut};
    const bool better = round == 0 || now < least;
    // A little better is worth keeping, but not worth going on for.
    const bool much_better =
        round == 0 || now.overweight < least.overweight ||
        static_cast<double>(now.cut) < (1 - options.worthwhile) * static_cast<double>(least.cut);
    in_vain = better && much_better ? 0 : in_vain + 1;
    if (better) {
      best = block_of;
      least = now;
    }
    if (cut == 0 || !refiner.move()) break;
  }
  block_of = std::move(best);
  return least;
}

}  // namespace tessera::detail
