// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/graph/generate.hpp"
#include "tessera/graph/transform.hpp"

#include "graph/draw.hpp"

namespace tessera::generate {
namespace {

constexpr const char* model = "chung_lu";

void check(const ChungLu& parameters) {
  const auto& [vertices, edges, exponent, max_degree, scramble, symmetric, seed] = parameters;
  require(vertices >= 0, model, fmt::format("negative number of vertices {}", vertices));
  require(edges >= 0, model, fmt::format("negative number of edges {}", edges));
  const std::uint64_t room = 2 * num_pairs(static_cast<std::uint64_t>(vertices));
  require(static_cast<std::uint64_t>(edges) <= room, model,
          fmt::format("{} edges do not fit {} vertices", edges, vertices),
          fmt::format("use at most {}", room));
  require(exponent > 2 && exponent <= 100, model, fmt::format("exponent {}", exponent),
          "use more than 2 and at most 100");
  require(max_degree >= 0, model, fmt::format("negative max_degree {}", max_degree));
  const double mean = static_cast<double>(edges) / std::max(vertices, 1);
  require(max_degree == 0 || static_cast<double>(max_degree) > mean, model,
          fmt::format("max_degree {} is not above the mean degree {}", max_degree, mean),
          "use a larger one, or 0 for the square root of the number of edges");
}

/// Ranks x in [0, vertices) with density proportional to (x + r0)^-decay, drawn by inverting the
/// integral: no table, so millions of vertices cost no cache misses.
class PowerLawRanks {
 public:
  /// Chooses r0 so that the first of `vertices` ranks expects `max_degree` of `edges` entries.
  PowerLawRanks(double vertices, double edges, double max_degree, double exponent)
      : vertices_(vertices), power_((exponent - 2) / (exponent - 1)) {
    double low = 1e-9;
    double high = 1e6 * vertices;
    constexpr int halvings = 200;
    for (int i = 0; i < halvings && high / low > 1 + 1e-12; ++i) {
      r0_ = std::sqrt(low * high);
      // Entries over max_degree as r0 gives it: rises from 0 to the number of vertices.
      const double ratio = r0_ / power_ * (std::pow(1 + vertices / r0_, power_) - 1);
      (ratio < edges / max_degree ? low : high) = r0_;
    }
    begin_ = std::pow(r0_, power_);
    length_ = std::pow(r0_ + vertices, power_) - begin_;
  }

  /// The rank for a uniform number in [0, 1).
  std::uint64_t operator()(double uniform) const noexcept {
    const double rank = std::pow(begin_ + uniform * length_, 1 / power_) - r0_;
    return static_cast<std::uint64_t>(std::clamp(rank, 0.0, vertices_ - 1));
  }

 private:
  double vertices_;
  double power_;
  double r0_ = 1;
  double begin_ = 0;
  double length_ = 0;
};

}  // namespace

Graph build(const ChungLu& parameters, const Progress& progress) {
  check(parameters);
  const auto& [vertices, edges, exponent, max_degree, scramble, symmetric, seed] = parameters;
  const auto entries = static_cast<double>(edges);
  const PowerLawRanks ranks(std::max(vertices, 1), entries,
                            max_degree > 0 ? static_cast<double>(max_degree) : std::sqrt(entries),
                            exponent);
  const Random random(seed, draw_edges);
  const IndexShuffle shuffle(static_cast<std::uint64_t>(vertices), Random(seed, scramble_ids));

  const auto draw_vertex = [&](std::uint64_t element) {
    const std::uint64_t rank = ranks(random.uniform(element));
    return static_cast<VertexId>(parameters.scramble ? shuffle(rank) : rank);
  };
  const auto draw = [&](std::uint64_t k) {
    return Entry{draw_vertex(2 * k), draw_vertex(2 * k + 1)};
  };
  const std::int64_t draws = symmetric ? edges / 2 : edges;
  return without_self_loops(graph_of_draws(vertices, vertices, draws, symmetric, progress, draw));
}

}  // namespace tessera::generate
