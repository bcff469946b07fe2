// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

/// How well scores tell edges from pairs that are none, over all thresholds: as scikit-learn
/// defines it, and with the same numbers. Scores are float or double, equal ones pass a threshold
/// together. Without a positive or without a negative there is nothing to tell apart: an
/// `invalid_argument` error. A score that is not a number is a `bad_data` error.
namespace tessera::links {

/// The chance that a positive has a higher score than a negative; ties count half.
template <class Score>
double roc_auc(std::span<const Score> positives, std::span<const Score> negatives);

/// The mean over the positives of the precision where each is found: the share of positives among
/// the pairs whose score is as high or higher.
template <class Score>
double average_precision(std::span<const Score> positives, std::span<const Score> negatives);

}  // namespace tessera::links
