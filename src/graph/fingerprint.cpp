// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/fingerprint.hpp"

#include <memory>

#include <fmt/format.h>

#include "graph/hash.hpp"

#include "graph/access.hpp"

namespace tessera {
namespace {

std::uint64_t computed(const Graph& graph) {
  std::uint64_t hash = mixed_hash(static_cast<std::uint64_t>(graph.num_rows()) + 1,
                                  static_cast<std::uint64_t>(graph.num_cols()));
  hash = hash_of(graph.row_offsets().span(), hash);
  return hash_of(graph.col_indices().span(), hash);
}

}  // namespace

std::uint64_t fingerprint(const Graph& graph) {
  return *detail::GraphAccess::kept(graph, "fingerprint", [&] { return computed(graph); });
}

std::string fingerprint_text(const Graph& graph) {
  return fmt::format("{:016x}", fingerprint(graph));
}

}  // namespace tessera
