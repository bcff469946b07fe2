// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/fingerprint.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/parallel.hpp"

namespace tessera {
namespace {

constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

/// Blocks of fixed length are hashed by all threads, and their hashes in order.
template <class T>
std::uint64_t hash_of(std::span<const T> values, std::uint64_t start) {
  constexpr std::int64_t block = 1 << 16;
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>((count + block - 1) / block));
  parallel_ranges(count, block, [&](std::int64_t begin, std::int64_t end) {
    std::uint64_t hash = start;
    for (std::int64_t i = begin; i < end; ++i) {
      hash = mixed(hash, static_cast<std::uint64_t>(values[static_cast<std::size_t>(i)]));
    }
    hashes[static_cast<std::size_t>(begin / block)] = hash;
  });
  std::uint64_t whole = start;
  for (const std::uint64_t hash : hashes) whole = mixed(whole, hash);
  return mixed(whole, static_cast<std::uint64_t>(count));
}

std::uint64_t computed(const Graph& graph) {
  std::uint64_t hash = mixed(static_cast<std::uint64_t>(graph.num_rows()) + 1,
                             static_cast<std::uint64_t>(graph.num_cols()));
  hash = hash_of(graph.row_offsets().span(), hash);
  return hash_of(graph.col_indices().span(), hash);
}

}  // namespace

std::uint64_t fingerprint(const Graph& graph) {
  const auto make = [&]() -> std::shared_ptr<const void> {
    return std::make_shared<const std::uint64_t>(computed(graph));
  };
  return *std::static_pointer_cast<const std::uint64_t>(graph.derived("fingerprint", make));
}

std::string fingerprint_text(const Graph& graph) {
  return fmt::format("{:016x}", fingerprint(graph));
}

}  // namespace tessera
