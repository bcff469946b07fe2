// SPDX-License-Identifier: Apache-2.0
#include "train/link_scores.hpp"

#include <numeric>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/build.hpp"

#include "train/host.hpp"

namespace tessera::train {
namespace {

using links::Pairs;

void append(const Pairs& from, Pairs& to) {
  to.sources.insert(to.sources.end(), from.sources.begin(), from.sources.end());
  to.targets.insert(to.targets.end(), from.targets.begin(), from.targets.end());
}

/// With the same pairs the other way behind them where both are asked for.
Pairs asked_ways(Pairs pairs, bool both) {
  if (both) append({pairs.targets, pairs.sources}, pairs);
  return pairs;
}

Pairs joined(const std::vector<Pairs>& lists) {
  Pairs all;
  for (const Pairs& list : lists) append(list, all);
  return all;
}

std::vector<std::size_t> ends_of(const std::vector<Pairs>& lists) {
  std::vector<std::size_t> ends{0};
  for (const Pairs& list : lists) ends.push_back(ends.back() + list.sources.size());
  return ends;
}

}  // namespace

LinkScorer::LinkScorer(nn::LinkDecoderKind kind, VertexId vertices, bool asks_both_ways,
                       const Place& where, ops::PlanOptions how)
    : decoder(kind), num_vertices(vertices), both_ways(asks_both_ways), place(where), plans(how) {
  plans.epochs = 1;
  plans.tune = ops::Tune::predicted;
  plans.store = nullptr;
  plans.stored_only = false;
}

nn::PairGraphs LinkScorer::graphs_of(const Pairs& pairs) const {
  return {decoder, pairs, num_vertices, place, plans};
}

AskedPairs::AskedPairs(const LinkScorer& scorer, const std::vector<Pairs>& lists)
    : both_ways_(scorer.both_ways),
      ends_(ends_of(lists)),
      graphs_(scorer.graphs_of(asked_ways(joined(lists), scorer.both_ways))) {}

std::vector<float> AskedPairs::scores(const step::Tensor& result, Stream stream) const {
  const Matrix<float> rows = to_host(result, stream);
  const auto count = static_cast<std::int64_t>(ends_.back());
  std::vector<float> scores(ends_.back());
  parallel_for(count, even_grain(count), [&](std::int64_t k) {
    float score = rows(graphs_.row_of(k), 0);
    if (both_ways_) score = (score + rows(graphs_.row_of(k + count), 0)) / 2;
    scores[static_cast<std::size_t>(k)] = score;
  });
  return scores;
}

LinkBatch::LinkBatch(const LinkScorer& scorer, const Pairs& positives, const Pairs& negatives,
                     LinkLoss loss, double smoothing)
    : graphs_(scorer.graphs_of(joined(
          {asked_ways(positives, scorer.both_ways), asked_ways(negatives, scorer.both_ways)}))) {
  const std::int64_t ways = scorer.both_ways ? 2 : 1;
  const std::int64_t edges = ways * positives.size(), others = ways * negatives.size();
  const bool compares = loss == LinkLoss::bpr;
  Matrix<float> wanted(compares ? others : edges + others, 1, compares ? 1.0f : 0.0f);
  if (compares) {
    comparison_.emplace(comparing(edges, others, scorer));
  } else {
    for (std::int64_t k = 0; k < edges; ++k) wanted(graphs_.row_of(k), 0) = 1;
  }
  std::vector<std::int64_t> rows(static_cast<std::size_t>(wanted.rows()));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  targets_ = ops::LossTargets::binary(wanted, rows, scorer.place, {.smoothing = smoothing});
}

/// Row j: the score of the pair that negative j belongs to, less its own.
step::Topology LinkBatch::comparing(std::int64_t positives, std::int64_t negatives,
                                    const LinkScorer& scorer) const {
  const std::int64_t each = negatives / positives;
  std::vector<VertexId> rows, cols;
  std::vector<float> signs;
  for (std::int64_t j = 0; j < negatives; ++j) {
    rows.insert(rows.end(), 2, static_cast<VertexId>(j));
    cols.push_back(static_cast<VertexId>(graphs_.row_of(j / each)));
    cols.push_back(static_cast<VertexId>(graphs_.row_of(positives + j)));
    signs.insert(signs.end(), {1.0f, -1.0f});
  }
  BuildOptions options;
  options.device = scorer.place.device;
  options.memory = scorer.place.memory;
  options.stream = scorer.place.stream;
  return step::Topology(from_coo(static_cast<VertexId>(negatives),
                                 static_cast<VertexId>(graphs_.size()), rows, cols, signs, options),
                        scorer.place, scorer.plans);
}

void LinkBatch::append_to(std::vector<step::Topology*>& graphs) {
  graphs_.append_to(graphs);
  if (comparison_) graphs.push_back(&*comparison_);
}

}  // namespace tessera::train
