// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/data/dataset.hpp"
#include "tessera/graph/generate.hpp"

/// What generated graphs carry beside their edges.
namespace tessera::data {

/// Class mean + noise: each mean is a random vector of expected length `signal`, the noise is
/// standard normal in every feature.
DenseFeatures planted_features(const std::vector<std::int32_t>& classes, std::int64_t num_classes,
                               std::int64_t num_features, double signal, std::uint64_t seed);

/// A random tenth of the vertices to train, a fifth to validate, the rest to test.
void plant_split(Dataset& dataset, std::uint64_t seed);

/// For each molecule 1 if it has more than two rings (edges - vertices + 1), else 0.
SharedArray<std::int64_t> many_ring_labels(const generate::MoleculeUnion& molecules,
                                           std::int64_t num_graphs);

}  // namespace tessera::data
