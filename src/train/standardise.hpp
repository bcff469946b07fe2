// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/matrix.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/train/normalisation.hpp"

/// Columns of features brought to mean 0 and deviation 1.
namespace tessera::train {

/// Means and factors of these features. A column of one number gets the factor 1; sparse features
/// get means of 0, so that they stay sparse. The same bits for any number of threads.
Normalisation standard_normalisation(const Features& features);

/// Throws `bad_data` naming the first vertex, or whatever has the features, with one that is not
/// finite afterwards. Sparse features become dense where the means are not 0.
Features standardised(const Features& features, const Normalisation& normalisation,
                      const char* of = "vertex");
/// The same of dense features; the shapes are equal, and `to` may be the memory of `from`.
void standardise(MatrixView<const float> from, const Normalisation& normalisation,
                 MatrixView<float> to, const char* of = "vertex");

}  // namespace tessera::train
