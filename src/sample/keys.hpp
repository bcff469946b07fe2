// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tessera/core/types.hpp"

namespace tessera::sample {

/// A vertex by 32 bits, or one of a tree by 64: the tree stands in the upper half.
template <class Key>
constexpr Key key_of(std::size_t tree, VertexId vertex) noexcept {
  if constexpr (sizeof(Key) == 4) {
    return static_cast<Key>(vertex);
  } else {
    return (static_cast<Key>(tree) << 32) | static_cast<Key>(vertex);
  }
}

template <class Key>
constexpr VertexId vertex_of(Key key) noexcept {
  return static_cast<VertexId>(key & 0x7FFFFFFFu);
}

/// 0 where keys are vertices alone.
template <class Key>
constexpr std::size_t tree_of(Key key) noexcept {
  return static_cast<std::size_t>(std::uint64_t{key} >> 32);
}

/// The home of a key in a table of 2^(64 - shift) places.
constexpr std::uint64_t home_of(std::uint64_t key, int shift) noexcept {
  return key * 0x9E3779B97F4A7C15u >> shift;
}

/// What no key is.
template <class Key>
inline constexpr Key no_key = static_cast<Key>(-1);

/// While the keys of a hop are numbered, the number of a new one is `provisional` and the first
/// place where it appears in the hop. All numbers of what is known are smaller.
inline constexpr std::uint32_t provisional_number = 1u << 31;

}  // namespace tessera::sample
