// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/train/problem.hpp"

/// What is known of the items of a problem: their classes, and which are for what.
namespace tessera::train {

/// Throws `invalid_argument` unless there are labels of two classes at least. Where classes were
/// not asked for, it does so, too, for whole numbers that can hardly be classes.
void take_labels(const Dataset& dataset, Task asked, Problem& problem);

/// The splits of the data, or folds, or a split that is drawn; checked against the labels.
void make_split(const Dataset& dataset, const TrainOptions& options, Problem& problem);

}  // namespace tessera::train
