// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/links/split.hpp"
#include "tessera/nn/link_model.hpp"
#include "tessera/ops/loss.hpp"
#include "tessera/train/link_options.hpp"

/// Pairs as a model of links is asked for them.
namespace tessera::train {

/// Who is asked, and where.
struct LinkScorer {
  /// `plans` are those of graphs that stay: the ones of pairs come once or a few times, which is
  /// not worth a long choice of kernels.
  LinkScorer(nn::LinkDecoderKind kind, VertexId vertices, bool asks_both_ways, const Place& where,
             ops::PlanOptions how);

  nn::PairGraphs graphs_of(const links::Pairs& pairs) const;

  nn::LinkDecoderKind decoder;
  VertexId num_vertices;
  bool both_ways;  ///< the score of a pair is the mean of those of both directions
  Place place;
  ops::PlanOptions plans;
};

/// Lists of pairs whose scores are wanted.
class AskedPairs {
 public:
  AskedPairs(const LinkScorer& scorer, const std::vector<links::Pairs>& lists);

  void append_to(std::vector<step::Topology*>& graphs) { graphs_.append_to(graphs); }
  /// Of the model's result: the score of each pair, list after list.
  std::vector<float> scores(const step::Tensor& result, Stream stream) const;
  /// Those of one list.
  std::span<const float> list(std::span<const float> scores, std::size_t number) const {
    return scores.subspan(ends_[number], ends_[number + 1] - ends_[number]);
  }

 private:
  bool both_ways_;
  std::vector<std::size_t> ends_;
  nn::PairGraphs graphs_;
};

/// What a step of training asks for, and what it wants to hear.
class LinkBatch {
 public:
  LinkBatch(const LinkScorer& scorer, const links::Pairs& positives, const links::Pairs& negatives,
            LinkLoss loss, double smoothing);

  void append_to(std::vector<step::Topology*>& graphs);
  const ops::LossTargets& targets() const { return *targets_; }

 private:
  step::Topology comparing(std::int64_t positives, std::int64_t negatives,
                           const LinkScorer& scorer) const;

  nn::PairGraphs graphs_;
  std::optional<step::Topology> comparison_;
  std::optional<ops::LossTargets> targets_;
};

}  // namespace tessera::train
