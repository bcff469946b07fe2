// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/types.hpp"

/// What is too long for one worker is cut: the edges of a row, the steps of a window. Each part's
/// result goes to a slot of a workspace; the slots of one row or window follow each other, and are
/// put together in that order. What is not cut needs no slot.
namespace tessera {

/// Parts follow each other and differ by at most one. They depend on the two numbers alone, so that
/// sums over parts are the same bits wherever they are made.
class EqualParts {
 public:
  /// As few parts as it takes to have at most `most` in each; none of nothing.
  static constexpr EqualParts of_at_most(EdgeOffset length, EdgeOffset most) {
    return {length, (length + most - 1) / most};
  }
  constexpr EqualParts(EdgeOffset length, EdgeOffset count) : length_(length), count_(count) {}

  constexpr EdgeOffset count() const noexcept { return count_; }
  constexpr EdgeOffset begin(EdgeOffset part) const noexcept { return length_ * part / count_; }
  constexpr EdgeOffset end(EdgeOffset part) const noexcept { return begin(part + 1); }

 private:
  EdgeOffset length_;
  EdgeOffset count_;
};

/// Some of the edges or steps of one row or window, counted from its first.
struct CutPart {
  EdgeOffset begin = 0;
  EdgeOffset end = 0;
  std::int32_t slot = -1;  ///< -1: there is no other part
};

/// One row or window in its parts.
class Cut {
 public:
  Cut(const EqualParts& parts, std::int64_t first_slot)
      : parts_(parts), first_slot_(static_cast<std::int32_t>(first_slot)) {}

  bool is_whole() const noexcept { return parts_.count() <= 1; }
  std::int32_t first_slot() const noexcept { return first_slot_; }
  std::int32_t num_slots() const noexcept {
    return is_whole() ? 0 : static_cast<std::int32_t>(parts_.count());
  }

  /// Calls body(CutPart) for all of them, in order.
  template <class Body>
  void for_parts(Body&& body) const {
    for (EdgeOffset i = 0; i < parts_.count(); ++i) {
      const std::int32_t slot = is_whole() ? -1 : first_slot_ + static_cast<std::int32_t>(i);
      body(CutPart{parts_.begin(i), parts_.end(i), slot});
    }
  }

 private:
  EqualParts parts_;
  std::int32_t first_slot_;
};

/// Cuts one row or window after the other, and numbers their slots.
class Cutter {
 public:
  Cut cut(const EqualParts& parts) {
    const Cut cut(parts, num_slots_);
    num_slots_ += cut.num_slots();
    return cut;
  }

  std::int64_t num_slots() const noexcept { return num_slots_; }

 private:
  std::int64_t num_slots_ = 0;
};

}  // namespace tessera
