// SPDX-License-Identifier: Apache-2.0
#include "sample/hops.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "sample/choose.hpp"
#include "sample/keys.hpp"
#include "sample/numbering.hpp"
#include "sample/random_use.hpp"

namespace tessera::sample {
namespace {

constexpr const char* where = "neighbours";
constexpr std::int64_t targets_per_task = 256;
constexpr std::size_t looks_ahead = 16;

[[noreturn]] void refuse(const std::string& problem, const char* fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

/// Draws with vertices alone as keys, or, where trees are disjoint, with tree and vertex.
template <class Key>
class Drawing {
 public:
  Drawing(const Candidates& candidates, const HopOptions& options, std::span<const VertexId> seeds,
          std::span<const std::int64_t> seed_times)
      : lists_(candidates.lists()),
        candidates_(candidates),
        options_(options),
        seed_times_(seed_times),
        numbering_(std::ssize(seeds)) {
    keys_.reserve(seeds.size());
    for (std::size_t i = 0; i < seeds.size(); ++i) keys_.push_back(key_of<Key>(i, seeds[i]));
    numbering_.start(keys_);
    hops_.vertices_until = {std::ssize(keys_)};
    hops_.edges_until = {0};
    hops_.offsets = {0};
  }

  /// One hop: what the vertices draw that the hop before has found.
  void draw(HopRules rules) {
    const std::int64_t first = std::ssize(hops_.offsets) - 1;
    const std::int64_t targets = std::ssize(keys_) - first;
    const EdgeOffset edges_before = hops_.offsets.back();
    hops_.offsets.resize(keys_.size() + 1);
    const auto counts = std::span(hops_.offsets).subspan(static_cast<std::size_t>(first));
    std::vector<Choice> choices(static_cast<std::size_t>(targets));
    parallel_for(targets, targets_per_task, [&](std::int64_t i) {
      const auto k = static_cast<std::size_t>(first + i);
      if (k + looks_ahead < keys_.size()) {
        __builtin_prefetch(lists_.offsets + vertex_of(keys_[k + looks_ahead]));
      }
      Choice& choice = choices[static_cast<std::size_t>(i)];
      choice = choice_of(lists_, rules, vertex_of(keys_[k]), time_of(keys_[k]));
      counts[static_cast<std::size_t>(i)] = count_of(rules, choice);
    });
    counts.back() = 0;
    const EdgeOffset edges = exclusive_scan(counts);
    for (EdgeOffset& offset : counts) offset += edges_before;

    hops_.candidates.resize(static_cast<std::size_t>(edges_before + edges));
    std::vector<Key> sources(static_cast<std::size_t>(edges));
    const auto drawn = std::span(hops_.candidates).subspan(static_cast<std::size_t>(edges_before));
    parallel_ranges(targets, targets_per_task, [&](std::int64_t begin, std::int64_t end) {
      Chooser chooser(candidates_, rules);
      for (std::int64_t i = begin; i < end; ++i) {
        const auto row = span_of(drawn, counts, i, edges_before);
        chooser.choose(choices[static_cast<std::size_t>(i)],
                       std::uint64_t{keys_[static_cast<std::size_t>(first + i)]}, row);
        for (const EdgeOffset edge : row) __builtin_prefetch(lists_.sources + edge);
      }
      for (std::int64_t i = begin; i < end; ++i) {
        const std::size_t tree = tree_of(keys_[static_cast<std::size_t>(first + i)]);
        const auto row = span_of(drawn, counts, i, edges_before);
        Key* source = sources.data() + (row.data() - drawn.data());
        for (const EdgeOffset edge : row) *source++ = key_of<Key>(tree, lists_.sources[edge]);
      }
    });
    hops_.sources.resize(hops_.candidates.size());
    numbering_.number(
        sources, std::span(hops_.sources).subspan(static_cast<std::size_t>(edges_before)), keys_);
    hops_.vertices_until.push_back(std::ssize(keys_));
    hops_.edges_until.push_back(edges_before + edges);
  }

  /// Puts all edges between the vertices in the place of those drawn.
  void induce() {
    const std::int64_t targets = std::ssize(keys_);
    const HopRules all{-1, false, false, Random(0)};
    const auto for_each_inside = [&](std::int64_t target, auto&& visit) {
      const Key key = keys_[static_cast<std::size_t>(target)];
      const Choice choice = choice_of(lists_, all, vertex_of(key), time_of(key));
      for (EdgeOffset edge = choice.begin; edge < choice.end; ++edge) {
        const VertexId source = numbering_.find(key_of<Key>(tree_of(key), lists_.sources[edge]));
        if (source >= 0) visit(edge, source);
      }
    };
    hops_.offsets.assign(keys_.size() + 1, 0);
    parallel_for(targets, targets_per_task, [&](std::int64_t i) {
      EdgeOffset& count = hops_.offsets[static_cast<std::size_t>(i)];
      for_each_inside(i, [&](EdgeOffset, VertexId) { ++count; });
    });
    const EdgeOffset edges = exclusive_scan(std::span(hops_.offsets));
    hops_.candidates.resize(static_cast<std::size_t>(edges));
    hops_.sources.resize(static_cast<std::size_t>(edges));
    parallel_for(targets, targets_per_task, [&](std::int64_t i) {
      auto place = static_cast<std::size_t>(hops_.offsets[static_cast<std::size_t>(i)]);
      for_each_inside(i, [&](EdgeOffset edge, VertexId source) {
        hops_.candidates[place] = edge;
        hops_.sources[place++] = source;
      });
    });
    hops_.edges_until = {0, edges};
  }

  Hops finish() && {
    hops_.vertices.resize(keys_.size());
    std::transform(keys_.begin(), keys_.end(), hops_.vertices.begin(), vertex_of<Key>);
    if (options_.disjoint) {
      hops_.trees.resize(keys_.size());
      std::transform(keys_.begin(), keys_.end(), hops_.trees.begin(),
                     [](Key key) { return static_cast<VertexId>(tree_of(key)); });
    }
    return std::move(hops_);
  }

 private:
  static std::span<EdgeOffset> span_of(std::span<EdgeOffset> drawn, std::span<EdgeOffset> offsets,
                                       std::int64_t target, EdgeOffset edges_before) {
    const auto k = static_cast<std::size_t>(target);
    return drawn.subspan(static_cast<std::size_t>(offsets[k] - edges_before),
                         static_cast<std::size_t>(offsets[k + 1] - offsets[k]));
  }
  const std::int64_t* time_of(Key key) const {
    return seed_times_.empty() ? nullptr : &seed_times_[tree_of(key)];
  }

  CandidateLists lists_;
  const Candidates& candidates_;
  const HopOptions& options_;
  std::span<const std::int64_t> seed_times_;
  Numbering<Key> numbering_;
  std::vector<Key> keys_;  ///< of all vertices, by number
  Hops hops_;
};

template <class Key>
Hops drawn_hops(const Candidates& candidates, const HopOptions& options,
                std::span<const VertexId> seeds, std::uint64_t step,
                std::span<const std::int64_t> seed_times) {
  Drawing<Key> drawing(candidates, options, seeds, seed_times);
  for (std::size_t hop = 0; hop < options.fan_outs.size(); ++hop) {
    drawing.draw(rules_of(options, step, hop));
  }
  if (options.induced) drawing.induce();
  return std::move(drawing).finish();
}

}  // namespace

HopRules rules_of(const HopOptions& options, std::uint64_t step, std::size_t hop) {
  return {options.fan_outs[hop], options.replace, options.latest,
          random_of_hop(options.seed, step, static_cast<std::uint32_t>(hop))};
}

void check_hops(const HopOptions& options, const Candidates& candidates) {
  if (options.fan_outs.empty()) refuse("no fan-outs", "give one for each layer of the model");
  for (const std::int64_t fan_out : options.fan_outs) {
    if (fan_out < -1 || fan_out > std::numeric_limits<VertexId>::max()) {
      refuse(fmt::format("a fan-out of {}", fan_out), "give a number from 0 on, or -1 for all");
    }
  }
  if (candidates.sources.empty()) return;  // nothing has a time
  if (candidates.times.empty() && options.latest) {
    refuse("the latest edges of a graph without times", "give times of edges or vertices");
  }
  if (!candidates.times.empty() && !options.disjoint) {
    refuse("times, and trees that are not disjoint", "set disjoint: each seed has its own time");
  }
}

std::span<const std::int64_t> checked_times(const Candidates& candidates,
                                            std::span<const VertexId> seeds,
                                            std::span<const std::int64_t> seed_times) {
  for (const VertexId seed : seeds) {
    if (seed < 0 || seed >= candidates.num_vertices()) {
      refuse(fmt::format("seed {} of a graph with {} vertices", seed, candidates.num_vertices()),
             "number seeds as the graph does");
    }
  }
  if (candidates.sources.empty()) seed_times = {};  // nothing is early or late
  if (candidates.times.empty() && !seed_times.empty()) {
    refuse("times of seeds for a graph without times", "give times of edges or vertices");
  }
  if (!candidates.times.empty() && seed_times.size() != seeds.size()) {
    refuse(fmt::format("{} times for {} seeds", seed_times.size(), seeds.size()),
           "give a time for each seed");
  }
  return seed_times;
}

Hops draw_hops(const Candidates& candidates, const HopOptions& options,
               std::span<const VertexId> seeds, std::uint64_t step,
               std::span<const std::int64_t> seed_times) {
  seed_times = checked_times(candidates, seeds, seed_times);
  return options.disjoint ? drawn_hops<std::uint64_t>(candidates, options, seeds, step, seed_times)
                          : drawn_hops<std::uint32_t>(candidates, options, seeds, step, seed_times);
}

}  // namespace tessera::sample
