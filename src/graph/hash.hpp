// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "tessera/core/parallel.hpp"

/// Numbers that tell one array from another: the same on every machine and for any number of
/// threads. They guard against mix-ups, not against those who want two arrays to look alike.
namespace tessera {

constexpr std::uint64_t mixed_hash(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

template <class T>
constexpr std::uint64_t hash_word(T value) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<std::uint32_t>(value);
  if constexpr (std::is_integral_v<T>) return static_cast<std::uint64_t>(value);
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
      hash = mixed_hash(hash, hash_word(values[static_cast<std::size_t>(i)]));
    }
    hashes[static_cast<std::size_t>(begin / block)] = hash;
  });
  std::uint64_t whole = start;
  for (const std::uint64_t hash : hashes) whole = mixed_hash(whole, hash);
  return mixed_hash(whole, static_cast<std::uint64_t>(count));
}

}  // namespace tessera
