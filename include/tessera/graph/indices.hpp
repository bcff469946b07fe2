// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <span>

namespace tessera {

/// Indices that somebody else holds, of 32 or of 64 bits (PyTorch's `edge_index`): made from a
/// vector, a span or a buffer of either without a cast. Never owns.
class Indices {
 public:
  Indices() = default;
  template <class Range>
  requires std::convertible_to<Range&&, std::span<const std::int32_t>> Indices(Range&& range)
      : narrow_(static_cast<std::span<const std::int32_t>>(range)) {}
  template <class Range>
  requires std::convertible_to<Range&&, std::span<const std::int64_t>> Indices(Range&& range)
      : wide_(static_cast<std::span<const std::int64_t>>(range)), is_wide_(true) {}

  bool is_wide() const noexcept { return is_wide_; }
  std::int64_t size() const noexcept {
    return static_cast<std::int64_t>(is_wide_ ? wide_.size() : narrow_.size());
  }
  /// Empty unless they have 32 bits.
  std::span<const std::int32_t> narrow() const noexcept { return narrow_; }
  /// Empty unless they have 64 bits.
  std::span<const std::int64_t> wide() const noexcept { return wide_; }

 private:
  std::span<const std::int32_t> narrow_;
  std::span<const std::int64_t> wide_;
  bool is_wide_ = false;
};

}  // namespace tessera
