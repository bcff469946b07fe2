// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/data/dataset.hpp"

/// Features as models take them.
namespace tessera::train {

/// Throws `bad_data` naming the first vertex with a feature that is not finite.
void require_finite(const Features& features);
void require_finite(MatrixView<const float> features);

bool any_negative(const Features& features);

/// Every row divided by the sum of its absolute values; rows of zeros stay.
Features row_normalised(const Features& features);
/// The same of dense features; the shapes are equal.
void row_normalise(MatrixView<const float> from, MatrixView<float> to);

/// Every number as a code of so many bits would give it back: one range for all, 0 a part of it.
/// `reach` is how far that goes above and below 0; where it is empty, it is found.
Features rounded(const Features& features, int bits, std::vector<float>& reach);
/// The same of dense features; the shapes are equal.
void round_features(MatrixView<const float> from, int bits, std::vector<float>& reach,
                    MatrixView<float> to);

/// Row i is 1 in column `columns[i]`, or empty where that is negative.
Features one_hot(std::span<const std::int64_t> columns, std::int64_t width);

/// Rows `vertices[0], vertices[1], …`.
Features take_rows(const Features& features, std::span<const VertexId> vertices);

}  // namespace tessera::train
