// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <fmt/format.h>

#include "tessera/graph/generate.hpp"
#include "tessera/graph/transform.hpp"

#include "graph/draw.hpp"

namespace tessera::generate {
namespace {

constexpr const char* model = "rmat";

void check(const Rmat& parameters) {
  const auto& [scale, edges, a, b, c, scramble, symmetric, seed] = parameters;
  require(scale >= 0 && scale <= 30, model, fmt::format("scale {}", scale), "use 0 to 30");
  require(edges >= 0, model, fmt::format("negative number of edges {}", edges));
  constexpr double rounding = 1e-9;
  require(a >= 0 && b >= 0 && c >= 0 && a + b + c <= 1 + rounding, model,
          fmt::format("probabilities a={}, b={}, c={}", a, b, c),
          "use values from 0 that sum to at most 1; the rest is d");
}

/// Where a draw of 32 bits falls among the four quadrants.
class Quadrants {
 public:
  Quadrants(double a, double b, double c)
      : after_a_(threshold(a)), after_b_(threshold(a + b)), after_c_(threshold(a + b + c)) {}

  bool is_lower(std::uint32_t bits) const noexcept { return bits >= after_b_; }
  bool is_right(std::uint32_t bits) const noexcept {
    return is_lower(bits) ? bits >= after_c_ : bits >= after_a_;
  }

 private:
  static std::uint64_t threshold(double share) noexcept {
    return static_cast<std::uint64_t>(share * 0x1p32 + 0.5);
  }
  std::uint64_t after_a_, after_b_, after_c_;
};

}  // namespace

Graph build(const Rmat& parameters, const Progress& progress) {
  check(parameters);
  const auto& [scale, edges, a, b, c, scramble, symmetric, seed] = parameters;
  const auto vertices = VertexId{1} << scale;
  const Quadrants quadrants(a, b, c);
  const Random random(seed, draw_edges);
  const IndexShuffle shuffle(static_cast<std::uint64_t>(vertices), Random(seed, scramble_ids));

  const auto draw = [&](std::uint64_t k) {
    std::array<std::uint32_t, 4> bits{};
    std::uint64_t row = 0;
    std::uint64_t col = 0;
    for (std::uint32_t level = 0; level < static_cast<std::uint32_t>(parameters.scale); ++level) {
      if (level % 4 == 0) bits = random.at_step(level / 4).bits(k);
      row = 2 * row + quadrants.is_lower(bits[level % 4]);
      col = 2 * col + quadrants.is_right(bits[level % 4]);
    }
    if (parameters.scramble) {
      row = shuffle(row);
      col = shuffle(col);
    }
    return Entry{static_cast<VertexId>(row), static_cast<VertexId>(col)};
  };
  return without_self_loops(graph_of_draws(vertices, vertices, edges, symmetric, progress, draw));
}

}  // namespace tessera::generate
