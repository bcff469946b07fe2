// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tessera/train/relational.hpp"

namespace tessera::train {

/// Which kinds have features that a model reads.
std::vector<bool> kinds_with_features(const std::vector<KnownKind>& kinds);

nn::RelationalShape shape_of(const std::vector<KnownKind>& kinds, std::size_t relations,
                             std::int64_t outputs);

/// The features of these kinds below one another, normalised as each kind knows, and filled up to
/// as many columns as the widest has; one row and column of 0 where there are none.
std::shared_ptr<const Matrix<float>> stacked_features(const std::vector<KnownKind>& kinds,
                                                      const std::vector<Dataset>& data);

std::string fingerprint_of(const RelationalGraph& graph);

}  // namespace tessera::train
