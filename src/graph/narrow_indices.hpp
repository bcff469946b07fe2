// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/core/memory.hpp"
#include "tessera/core/shared_array.hpp"
#include "tessera/core/types.hpp"
#include "tessera/graph/indices.hpp"

namespace tessera::detail {

/// `word` says which index it is: "source", "column" …
[[noreturn]] void report_out_of_range(const char* word, std::int64_t value, std::int64_t bound,
                                      std::int64_t position);

/// The indices with 32 bits: 64-bit ones are copied, and must be in [0, bound); 32-bit ones are the
/// caller's own and are not looked at. On a GPU, 64-bit ones may lie in this process or there, and
/// the copy lies there.
SharedArray<VertexId> narrowed(const Indices& indices, std::int64_t bound, const char* word,
                               const Place& place);

}  // namespace tessera::detail
