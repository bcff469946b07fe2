// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/train/problem.hpp"

/// Some of a problem, small enough for a model in double precision.
namespace tessera::bench {

/// How much of it a check looks at, about: whole blocks of neighbouring vertices.
struct PartSize {
  std::int64_t vertices = 1 << 16;
  EdgeOffset edges = 1 << 22;
  std::int64_t block = 4096;
};

/// Blocks of vertices, drawn with the seed, their features and the edges among them: neighbours of
/// several layers are soon the whole graph, so rows alone would save nothing. The problem itself
/// where it is no larger than wanted, where graphs are classified, and where features are sparse.
train::Problem part_of(const train::Problem& problem, std::uint64_t seed,
                       const PartSize& size = {});

}  // namespace tessera::bench
