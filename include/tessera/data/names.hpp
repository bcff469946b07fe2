// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/shared_array.hpp"

namespace tessera {

/// Texts kept side by side: what vertices, classes or features are called where the data came from.
/// Empty: they have no names but their numbers.
class Names {
 public:
  Names() = default;
  explicit Names(const std::vector<std::string>& names);
  /// Name i is `bytes` from `ends[i - 1]` (0 for the first) to `ends[i]`. Throws `bad_data` unless
  /// the ends rise to the number of bytes.
  Names(SharedArray<std::int64_t> ends, SharedArray<std::uint8_t> bytes);

  std::int64_t size() const noexcept { return ends_.size(); }
  bool empty() const noexcept { return ends_.empty(); }
  std::string_view operator[](std::int64_t i) const noexcept {
    const std::int64_t begin = i == 0 ? 0 : ends_[i - 1];
    return {reinterpret_cast<const char*>(bytes_.data()) + begin,
            static_cast<std::size_t>(ends_[i] - begin)};
  }

  const SharedArray<std::int64_t>& ends() const noexcept { return ends_; }
  const SharedArray<std::uint8_t>& bytes() const noexcept { return bytes_; }

  friend bool operator==(const Names&, const Names&) = default;

 private:
  SharedArray<std::int64_t> ends_;
  SharedArray<std::uint8_t> bytes_;
};

}  // namespace tessera
