// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sample/numbers.hpp"
#include "sample/random_use.hpp"
#include "tessera/sample/neighbours.hpp"

/// Neighbours drawn with no thought of speed: what `NeighbourSampler` has to draw, edge for edge.
namespace tessera::testing {

struct ReferenceSample {
  std::vector<VertexId> vertices, trees;
  std::vector<std::int64_t> vertices_until, edges_until;
  std::vector<std::vector<std::pair<VertexId, EdgeOffset>>> rows;  ///< source and position, sorted
};

class ReferenceSampler {
 public:
  ReferenceSampler(const Graph& graph, const sample::NeighbourOptions& options)
      : graph_(graph), options_(options) {}

  ReferenceSample draw(const std::vector<VertexId>& seeds, std::uint64_t step,
                       const std::vector<std::int64_t>& seed_times) {
    ReferenceSample sample;
    std::map<std::pair<VertexId, VertexId>, VertexId> numbers;
    const auto tree = [&](std::size_t i) {
      return options_.disjoint ? static_cast<VertexId>(i) : 0;
    };
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      numbers.emplace(std::pair{tree(i), seeds[i]}, static_cast<VertexId>(i));
      sample.vertices.push_back(seeds[i]);
      sample.trees.push_back(tree(i));
    }
    sample.vertices_until = {std::ssize(seeds)};
    sample.edges_until = {0};
    std::int64_t edges = 0;
    for (std::size_t hop = 0; hop < options_.fan_outs.size(); ++hop) {
      for (std::size_t v = sample.rows.size(); v < at(sample.vertices_until, hop); ++v) {
        const VertexId own_tree = sample.trees[v];
        std::optional<std::int64_t> time;
        if (!seed_times.empty()) time = seed_times[static_cast<std::size_t>(own_tree)];
        auto& row = sample.rows.emplace_back();
        for (const EdgeOffset edge : drawn(sample.vertices[v], own_tree, hop, step, time)) {
          const VertexId source = graph_.col_indices()[edge];
          const auto [place, is_new] = numbers.emplace(
              std::pair{own_tree, source}, static_cast<VertexId>(sample.vertices.size()));
          if (is_new) {
            sample.vertices.push_back(source);
            sample.trees.push_back(own_tree);
          }
          row.emplace_back(place->second, edge);
          ++edges;
        }
        std::sort(row.begin(), row.end());
      }
      sample.vertices_until.push_back(std::ssize(sample.vertices));
      sample.edges_until.push_back(edges);
    }
    return sample;
  }

 private:
  static std::size_t at(const std::vector<std::int64_t>& values, std::size_t i) {
    return static_cast<std::size_t>(values[i]);
  }
  float weight(EdgeOffset edge) const {
    return options_.edge_weights.empty() ? 1
                                         : options_.edge_weights[static_cast<std::size_t>(edge)];
  }
  std::int64_t time_of(EdgeOffset edge) const {
    if (!options_.edge_times.empty()) return options_.edge_times[static_cast<std::size_t>(edge)];
    const VertexId source = graph_.col_indices()[edge];
    return options_.vertex_times[static_cast<std::size_t>(source)];
  }

  std::vector<EdgeOffset> drawn(VertexId vertex, VertexId tree, std::size_t hop, std::uint64_t step,
                                std::optional<std::int64_t> time) const {
    const std::int64_t fan_out = options_.fan_outs[hop];
    // What may be drawn, by time.
    std::vector<EdgeOffset> all;
    for (EdgeOffset k = graph_.row_offsets()[vertex]; k < graph_.row_offsets()[vertex + 1]; ++k) {
      if (weight(k) > 0) all.push_back(k);
    }
    double before = 0;
    if (time) {
      std::stable_sort(all.begin(), all.end(),
                       [&](EdgeOffset a, EdgeOffset b) { return time_of(a) < time_of(b); });
      while (!all.empty() && time_of(all.back()) > *time) all.pop_back();
      if (options_.time_strategy == sample::TimeStrategy::latest) {
        while (fan_out >= 0 && std::ssize(all) > fan_out) {
          before += weight(all.front());
          all.erase(all.begin());
        }
      }
    }
    sample::Numbers numbers(
        sample::random_of_hop(options_.seed, step, static_cast<std::uint32_t>(hop)),
        (static_cast<std::uint64_t>(tree) << 32) | static_cast<std::uint64_t>(vertex));
    if (fan_out < 0 || all.empty()) return all;
    const auto wanted = static_cast<std::size_t>(fan_out);
    std::vector<EdgeOffset> found;
    if (options_.replace) {
      while (found.size() < wanted) found.push_back(one_of(all, numbers.next(), before));
      return found;
    }
    if (all.size() <= wanted) return all;
    if (options_.edge_weights.empty()) {
      std::set<std::size_t> places;
      for (std::size_t last = all.size() - wanted; last < all.size(); ++last) {
        const std::size_t place = sample::below(numbers.next(), last + 1);
        const std::size_t taken = places.contains(place) ? last : place;
        places.insert(taken);
        found.push_back(all[taken]);
      }
      return found;
    }
    if (all.size() > 8 * wanted) {
      for (std::size_t i = 0; i < 4 * wanted && found.size() < wanted; ++i) {
        const EdgeOffset edge = one_of(all, numbers.next(), before);
        if (std::find(found.begin(), found.end(), edge) == found.end()) found.push_back(edge);
      }
    }
    sample::Numbers of_keys(
        sample::random_of_hop(options_.seed, step, static_cast<std::uint32_t>(hop)),
        (static_cast<std::uint64_t>(tree) << 32) | static_cast<std::uint64_t>(vertex), 1u << 31);
    std::vector<std::pair<double, EdgeOffset>> keys;
    for (const EdgeOffset edge : all) {
      const double key = sample::exponential(of_keys.next()) / weight(edge);
      if (std::find(found.begin(), found.end(), edge) == found.end()) keys.emplace_back(key, edge);
    }
    std::stable_sort(keys.begin(), keys.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; found.size() < wanted; ++i) found.push_back(keys[i].second);
    return found;
  }

  /// In proportion to weights, which sum to `before` ahead of these.
  EdgeOffset one_of(const std::vector<EdgeOffset>& all, std::uint64_t bits, double before) const {
    if (options_.edge_weights.empty()) return all[sample::below(bits, all.size())];
    double sum = before;
    for (const EdgeOffset edge : all) sum += weight(edge);
    const double share = std::fma(sample::uniform(bits), sum - before, before);
    double running = before;
    for (const EdgeOffset edge : all) {
      running += weight(edge);
      if (running > share) return edge;
    }
    return all.back();
  }

  const Graph& graph_;
  const sample::NeighbourOptions& options_;
};

}  // namespace tessera::testing
