// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/types.hpp"
#include "tessera/data/names.hpp"

namespace tessera::io {

/// Numbers texts in the order of their first places, whoever adds them when.
class NameIndex {
 public:
  /// Any number of threads may add at once. Of several places the lowest counts. Returns false
  /// where the name was there already.
  bool add(std::string_view name, std::int64_t place);
  /// After the last `add`, before the first `find`. Throws `bad_data` for more than vertices can
  /// have numbers.
  void number_all();

  /// Fetches from memory what `add` and `find` will read for names of these hashes, all at once:
  /// one after the other they would wait for each. Any thread may call it, also while others add.
  void fetch(std::span<const std::size_t> hashes) const noexcept;
  static std::size_t hash_of(std::string_view name) noexcept;

  /// The number of a name; -1 where it was never added.
  VertexId find(std::string_view name) const noexcept;
  std::int64_t size() const noexcept;
  /// In the order of the numbers.
  Names names() const;

 private:
  /// Half a line of the cache, with the name where it is short: looking one up among millions is
  /// waiting for memory.
  struct alignas(32) Entry {
    static constexpr std::uint32_t short_length = 16;

    std::int64_t place;
    std::uint32_t length;
    VertexId number;
    union {
      char short_text[short_length];
      std::size_t begin;  ///< of a longer name, in the shard's bytes
    };
  };
  struct Slot {
    std::uint32_t entry = 0;  ///< + 1; 0: free
    std::uint32_t hash = 0;   ///< a part of it, so that few other names are compared
  };
  struct Shard {
    mutable std::mutex mutex;
    std::vector<Slot> slots;
    std::vector<Entry> entries;
    std::string bytes;

    std::string_view text(const Entry& entry) const {
      return entry.length <= Entry::short_length
                 ? std::string_view(entry.short_text, entry.length)
                 : std::string_view(bytes).substr(entry.begin, entry.length);
    }
    std::size_t slot_of(std::string_view name, std::size_t hash) const;
    void append(std::string_view name, std::int64_t place);
    void grow();
  };
  static constexpr std::size_t num_shards = 64;
  static std::size_t shard_of(std::size_t hash) { return hash >> 58; }

  template <class Visit>
  void visit_shards(std::span<const std::size_t> hashes, Visit&& visit) const;

  std::array<Shard, num_shards> shards_;
  bool is_numbered_ = false;  ///< nothing is added any more
};

}  // namespace tessera::io
