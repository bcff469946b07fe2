// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
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

  /// The number of a name; -1 where it was never added.
  VertexId find(std::string_view name) const noexcept;
  std::int64_t size() const noexcept;
  /// In the order of the numbers.
  Names names() const;

 private:
  struct Entry {
    std::int64_t place;
    std::size_t begin;  ///< in the shard's bytes
    std::uint32_t length;
    VertexId number;
  };
  struct Shard {
    std::mutex mutex;
    std::vector<std::uint32_t> slots;  ///< entry + 1; 0: free
    std::vector<Entry> entries;
    std::string bytes;

    std::string_view text(const Entry& entry) const {
      return std::string_view(bytes).substr(entry.begin, entry.length);
    }
    std::size_t slot_of(std::string_view name, std::size_t hash) const;
    void grow();
  };
  static constexpr std::size_t num_shards = 64;
  static std::size_t shard_of(std::size_t hash) { return hash >> 58; }

  std::array<Shard, num_shards> shards_;
};

}  // namespace tessera::io
