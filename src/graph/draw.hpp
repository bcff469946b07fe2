// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/progress.hpp"
#include "tessera/core/types.hpp"
#include "tessera/graph/build.hpp"

#include "graph/index_shuffle.hpp"
#include "graph/random_use.hpp"

/// What the random graph models share.
namespace tessera::generate {

/// One matrix entry: row = target, column = source.
struct Entry {
  VertexId row;
  VertexId col;
};

/// Throws `invalid_argument` naming the model and the problem unless `holds`.
inline void require(bool holds, const char* model, const std::string& problem,
                    const std::string& fix = {}) {
  if (!holds) throw Error(ErrorCode::invalid_argument, problem, model, fix);
}

/// n (n - 1) / 2: the pairs of n vertices.
constexpr std::uint64_t num_pairs(std::uint64_t vertices) noexcept {
  return vertices == 0 ? 0 : vertices * (vertices - 1) / 2;
}

/// The pairs u < v in the order (0, 1), (0, 2), (1, 2), (0, 3), …: the one numbered `index`.
inline Entry nth_pair(std::uint64_t index) noexcept {
  // v is the largest number with v (v - 1) / 2 <= index; the square root may be off by one.
  auto v = static_cast<std::uint64_t>((1 + std::sqrt(1 + 8 * static_cast<double>(index))) / 2);
  while (num_pairs(v) > index) --v;
  while (num_pairs(v + 1) <= index) ++v;
  return {static_cast<VertexId>(index - num_pairs(v)), static_cast<VertexId>(v)};
}

constexpr Entry turned(Entry entry) noexcept { return {entry.col, entry.row}; }

/// A sample without repeats from a numbered set of pairs u < v: `pair(i)` names the i-th of them.
/// For a directed graph either direction of a pair counts by itself.
template <class Pair>
class PairSample {
 public:
  PairSample(std::uint64_t pairs, bool directed, const Random& random, Pair pair)
      : order_(directed ? 2 * pairs : pairs, random), directed_(directed), pair_(std::move(pair)) {}

  Entry operator()(std::uint64_t k) const noexcept {
    const std::uint64_t index = order_(k);
    if (!directed_) return pair_(index);
    return index % 2 == 0 ? pair_(index / 2) : turned(pair_(index / 2));
  }

 private:
  IndexShuffle order_;
  bool directed_;
  Pair pair_;
};

/// The graph of entries draw(0) … draw(count - 1), which must depend on their number alone, with
/// their mirror images when `mirrored`. Entries that were drawn twice are kept once.
template <class Draw>
Graph graph_of_draws(VertexId num_rows, VertexId num_cols, std::int64_t count, bool mirrored,
                     const Progress& progress, Draw&& draw) {
  constexpr std::int64_t grain = 1 << 14;
  constexpr std::int64_t draws_per_report = std::int64_t{1} << 22;
  require(count <= std::numeric_limits<std::int64_t>::max() / 2, "generate", "too many edges");
  const std::int64_t entries = mirrored ? 2 * count : count;
  Buffer<VertexId> rows(entries);
  Buffer<VertexId> cols(entries);
  for (std::int64_t first = 0; first < count; first += draws_per_report) {
    report(progress, "drawing edges", first, count);
    parallel_for(std::min(draws_per_report, count - first), grain, [&](std::int64_t i) {
      const std::int64_t k = first + i;
      const Entry entry = draw(static_cast<std::uint64_t>(k));
      rows[k] = entry.row;
      cols[k] = entry.col;
      if (mirrored) {
        rows[count + k] = entry.col;
        cols[count + k] = entry.row;
      }
    });
  }
  report(progress, "drawing edges", count, count);
  return from_coo(num_rows, num_cols, rows.span(), cols.span(), {},
                  {.duplicates = Duplicates::first, .progress = progress});
}

}  // namespace tessera::generate
