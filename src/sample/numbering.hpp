// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/core/types.hpp"

#include "sample/keys.hpp"

namespace tessera::sample {

/// Throws `unsupported` where so many vertices or edges cannot be numbered.
void require_room(std::int64_t keys);

/// Numbers keys from 0 on in the order in which they appear first, in a table as large as twice
/// what it numbers. A key has 32 bits, a vertex, or 64, a tree and a vertex; not all of them 1.
template <class Key>
class Numbering {
 public:
  explicit Numbering(std::int64_t expected) { resize(expected); }

  VertexId count() const noexcept { return count_; }

  /// Numbers the seeds: each its place, a key that comes again is known by the first of them.
  void start(std::span<const Key> seeds);

  /// The number of a key, or -1 where it has none.
  VertexId find(Key key) const noexcept {
    const Slot& slot = slots_[place_of(key)];
    return slot.key == key ? static_cast<VertexId>(slot.number) : -1;
  }

  /// Writes the number of each key; keys without one get the next ones, and are appended to
  /// `appeared`. The same for any number of threads.
  void number(std::span<const Key> keys, std::span<VertexId> numbers, std::vector<Key>& appeared);

 private:
  struct Slot {
    Key key;
    std::uint32_t number;
  };
  static constexpr std::uint32_t no_number = static_cast<std::uint32_t>(-1);

  void number_in_order(std::span<const Key> keys, std::span<VertexId> numbers,
                       std::vector<Key>& appeared);
  void number_together(std::span<const Key> keys, std::span<VertexId> numbers,
                       std::vector<Key>& appeared);
  void resize(std::int64_t expected);
  std::size_t home_of(Key key) const noexcept {
    return static_cast<std::size_t>(sample::home_of(key, shift_));
  }
  /// Where a key is, or would be.
  std::size_t place_of(Key key) const noexcept {
    std::size_t place = home_of(key);
    while (slots_[place].key != key && slots_[place].key != no_key<Key>) {
      place = (place + 1) & (slots_.size() - 1);
    }
    return place;
  }
  /// Enters a key with other threads at it, with the smallest of their numbers. Says where.
  std::uint32_t claim(Key key, std::uint32_t number) noexcept;

  std::vector<Slot> slots_;
  int shift_ = 0;
  VertexId count_ = 0;
};

extern template class Numbering<std::uint32_t>;
extern template class Numbering<std::uint64_t>;

}  // namespace tessera::sample
