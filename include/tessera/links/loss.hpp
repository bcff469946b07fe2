// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

/// Losses on scores of pairs, as means, with their gradients in the same pass: edges should score
/// high, pairs that are none low. Scores are float or double; those of negative `j` of positive `i`
/// stand at `i * per_positive + j`, as `NegativeSampler` draws them, and the sizes say how many
/// there are for each. A gradient is written where there is room for it: a span that is as long as
/// its scores, and not their memory.
///
/// No score is too large, and one that is not a number makes the loss not a number. No pairs give
/// 0. Sums are made in double precision, with the same bits for any number of threads. A number of
/// scores that does not fit the others is an `invalid_argument` error.
namespace tessera::links {

/// The binary cross-entropy of sigmoid(score), over positives and negatives together: the mean of
/// log(1 + exp(-score)) of positives and of log(1 + exp(score)) of negatives. How many there are of
/// either does not matter.
template <class Score>
double bce_loss(std::span<const Score> positives, std::span<const Score> negatives,
                std::span<Score> grad_positives = {}, std::span<Score> grad_negatives = {});

/// Bayesian personalised ranking, over all negatives: the mean of log(1 + exp(negative -
/// positive)).
template <class Score>
double bpr_loss(std::span<const Score> positives, std::span<const Score> negatives,
                std::span<Score> grad_positives = {}, std::span<Score> grad_negatives = {});

/// The mean over all negatives of max(0, margin + negative - positive). Where that is 0 by a hair's
/// breadth the gradient is the one from above, as torch has it. A margin below 0, or one that is
/// not finite, is an `invalid_argument` error.
template <class Score>
double margin_loss(std::span<const Score> positives, std::span<const Score> negatives,
                   double margin = 1, std::span<Score> grad_positives = {},
                   std::span<Score> grad_negatives = {});

}  // namespace tessera::links
