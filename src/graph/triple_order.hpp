// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/graph/relational.hpp"

namespace tessera {

/// Throws `bad_data` that names the first triple with an end or a relation that there is not, and
/// `invalid_argument` where the three columns differ in length.
void require_triples(const Triples& triples, VertexId num_vertices, std::int32_t num_relations);

/// The places of all keys, those of lower keys first, and equal ones in the order of `before`; none
/// is given: as they lie. Keys are from 0 on, below `bound`.
std::vector<EdgeOffset> ordered_by(std::span<const std::int32_t> keys, std::int32_t bound,
                                   std::span<const EdgeOffset> before = {});

}  // namespace tessera
