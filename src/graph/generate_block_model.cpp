// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "tessera/graph/generate.hpp"

#include "graph/draw.hpp"

namespace tessera::generate {
namespace {

constexpr const char* model = "sbm";

/// Contiguous communities whose sizes differ by one at most, the larger ones first, with a number
/// for every pair of vertices inside one of them and for every pair across.
class Blocks {
 public:
  Blocks(VertexId vertices, VertexId communities)
      : small_size_(static_cast<std::uint64_t>(vertices / communities)),
        num_large_(static_cast<std::uint64_t>(vertices % communities)),
        count_(static_cast<std::uint64_t>(communities)),
        across_offsets_(count_ + 1) {
    for (std::uint64_t c = 0; c < count_; ++c) {
      across_offsets_[c + 1] = across_offsets_[c] + start(c) * size(c);
    }
  }

  std::uint64_t community(std::uint64_t vertex) const noexcept {
    const std::uint64_t in_large = num_large_ * (small_size_ + 1);
    return vertex < in_large ? vertex / (small_size_ + 1)
                             : num_large_ + (vertex - in_large) / small_size_;
  }

  std::uint64_t pairs_inside() const noexcept {
    return large_pairs() * num_large_ + small_pairs() * (count_ - num_large_);
  }
  std::uint64_t pairs_across() const noexcept { return across_offsets_.back(); }

  Entry pair_inside(std::uint64_t index) const noexcept {
    const std::uint64_t in_large = large_pairs() * num_large_;
    const bool is_large = index < in_large;
    const std::uint64_t rest = is_large ? index : index - in_large;
    const std::uint64_t pairs = is_large ? large_pairs() : small_pairs();
    const auto first = static_cast<VertexId>(start(rest / pairs + (is_large ? 0 : num_large_)));
    const Entry pair = nth_pair(rest % pairs);
    return {first + pair.row, first + pair.col};
  }

  /// Numbered by the community of the higher vertex, whose partners are all that start before it.
  Entry pair_across(std::uint64_t index) const noexcept {
    const auto next = std::upper_bound(across_offsets_.begin(), across_offsets_.end(), index);
    const auto c = static_cast<std::uint64_t>(next - across_offsets_.begin()) - 1;
    const std::uint64_t rest = index - across_offsets_[c];
    return {static_cast<VertexId>(rest % start(c)),
            static_cast<VertexId>(start(c) + rest / start(c))};
  }

 private:
  std::uint64_t size(std::uint64_t c) const noexcept { return small_size_ + (c < num_large_); }
  std::uint64_t start(std::uint64_t c) const noexcept {
    return c * small_size_ + std::min(c, num_large_);
  }
  std::uint64_t large_pairs() const noexcept { return num_pairs(small_size_ + 1); }
  std::uint64_t small_pairs() const noexcept { return num_pairs(small_size_); }

  std::uint64_t small_size_;
  std::uint64_t num_large_;
  std::uint64_t count_;
  std::vector<std::uint64_t> across_offsets_;
};

void check(const BlockModel& parameters) {
  const auto& [vertices, communities, mean_degree, inside, symmetric, seed] = parameters;
  require(vertices >= 0, model, fmt::format("negative number of vertices {}", vertices));
  require(communities >= 1 && communities <= std::max(vertices, 1), model,
          fmt::format("{} communities of {} vertices", communities, vertices),
          "use at least 1 community and at most one for each vertex");
  require(mean_degree >= 0 && mean_degree <= std::max(vertices - 1, 0), model,
          fmt::format("mean degree {} with {} vertices", mean_degree, vertices),
          fmt::format("use 0 to {}", std::max(vertices - 1, 0)));
  require(inside >= 0 && inside <= 1, model,
          fmt::format("a share {} of the edges inside communities", inside), "use 0 to 1");
}

}  // namespace

Graph build(const BlockModel& parameters, const Progress& progress) {
  check(parameters);
  const auto& [vertices, communities, mean_degree, inside, symmetric, seed] = parameters;
  const Blocks blocks(vertices, communities);
  const double entries = mean_degree * vertices;
  const std::int64_t draws = std::llround(symmetric ? entries / 2 : entries);
  const std::int64_t draws_inside = std::llround(inside * static_cast<double>(draws));
  const auto require_room = [&](std::int64_t wanted, std::uint64_t pairs, const char* where) {
    require(static_cast<std::uint64_t>(wanted) <= (parameters.symmetric ? pairs : 2 * pairs), model,
            fmt::format("{} edges do not fit the {} pairs {} communities", wanted, pairs, where),
            "use a lower mean degree or another share inside");
  };
  require_room(draws_inside, blocks.pairs_inside(), "inside");
  require_room(draws - draws_inside, blocks.pairs_across(), "across");

  const PairSample inside_sample(blocks.pairs_inside(), !symmetric, Random(seed, draw_edges),
                                 [&](std::uint64_t i) { return blocks.pair_inside(i); });
  const PairSample across_sample(blocks.pairs_across(), !symmetric, Random(seed, draw_edges_across),
                                 [&](std::uint64_t i) { return blocks.pair_across(i); });
  const auto boundary = static_cast<std::uint64_t>(draws_inside);
  return graph_of_draws(vertices, vertices, draws, symmetric, progress, [&](std::uint64_t k) {
    return k < boundary ? inside_sample(k) : across_sample(k - boundary);
  });
}

std::vector<std::int32_t> communities(const BlockModel& parameters) {
  check(parameters);
  const Blocks blocks(parameters.vertices, parameters.communities);
  std::vector<std::int32_t> result(static_cast<std::size_t>(parameters.vertices));
  for (std::size_t v = 0; v < result.size(); ++v) {
    result[v] = static_cast<std::int32_t>(blocks.community(v));
  }
  return result;
}

}  // namespace tessera::generate
