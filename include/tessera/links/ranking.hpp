// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/core/types.hpp"
#include "tessera/graph/graph.hpp"

/// How well scores rank what is true, as ogb's evaluators and the papers on recommendation define
/// it. Scores are float or double. One that is not a number is a `bad_data` error.
namespace tessera::links {

/// Hits@K of ogbl-ppa, -collab and -ddi: the share of positives with a score above that of the K-th
/// best of all negatives; 1 where there are fewer than K of them.
template <class Score>
double hits_at(std::span<const Score> positives, std::span<const Score> negatives, std::int64_t k);

/// The rank of each positive among negatives of its own (a row each), from 1: the mean of the best
/// and the worst that ties allow, as ogb has it. So a model that scores all alike gains nothing.
template <class Score>
std::vector<double> ranks(std::span<const Score> positives, MatrixView<const Score> negatives);

/// The same among all candidates: row i of `scores` has one for each candidate, `truths[i]` is the
/// one that is true. With `known`, a graph whose row i lists the candidates that are true for it,
/// the others of them do not count (the filtered setting); without, they do (the raw one).
template <class Score>
std::vector<double> ranks_of(MatrixView<const Score> scores, std::span<const VertexId> truths,
                             const Graph* known = nullptr);

/// The mean of 1 / rank, and the share of ranks up to k. No ranks give 0.
double mean_reciprocal_rank(std::span<const double> ranks);
double hits_within(std::span<const double> ranks, std::int64_t k);

/// Recall@K and NDCG@K of lists of recommendations, as LightGCN has them: row i of `lists` names
/// candidates, best first, -1 for none; row i of `truth` lists those that are right. Rows without
/// any are left out; the ideal list has min(K, number of them) hits. K is the width of `lists`.
struct ListQuality {
  double recall = 0;
  double ndcg = 0;
  std::int64_t rows = 0;  ///< that have something to find
};
ListQuality list_quality(MatrixView<const VertexId> lists, const Graph& truth);

}  // namespace tessera::links
