// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tessera/step/topology.hpp"

namespace tessera::step {

/// A derivation that leaves out one scale of what another one makes: so the two can share a
/// structure and all that plans keep of it.
struct OneSide {
  Derivation both;
  Graph (*keep)(const Graph& graph);
};

/// Absent where the derivation is none.
std::optional<OneSide> one_side(Derivation derivation);

}  // namespace tessera::step
