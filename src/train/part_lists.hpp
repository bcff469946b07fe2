// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tessera/train/metrics.hpp"
#include "tessera/train/problem.hpp"

#include "train/link_lists.hpp"

namespace tessera::train {

/// How well lists find the links of each part of a split. Those of validation and test leave out
/// what carries their messages; those of training leave out nothing. They are made when they are
/// asked for first.
class PartLists {
 public:
  /// Problem and split must outlive it.
  PartLists(const Problem& problem, const links::LinkSplit& split, bool is_symmetric,
            std::int64_t top, const Place& place);

  links::ListQuality train(const Matrix<float>& embeddings, const nn::LinkDecoder& decoder);
  links::ListQuality validation(const Matrix<float>& embeddings, const nn::LinkDecoder& decoder);
  links::ListQuality test(const Matrix<float>& embeddings, const nn::LinkDecoder& decoder);

 private:
  links::ListQuality judged(std::optional<ListJudge>& judge, const links::Pairs& wanted,
                            const Graph* known, const Matrix<float>& embeddings,
                            const nn::LinkDecoder& decoder);

  const links::LinkSplit& split_;
  Candidates candidates_;
  bool both_ways_;
  std::int64_t top_;
  Place place_;
  std::optional<ListJudge> train_, validation_, test_;
};

/// Recall or NDCG, as the metric says.
double value_of(Metric metric, const links::ListQuality& quality);

}  // namespace tessera::train
