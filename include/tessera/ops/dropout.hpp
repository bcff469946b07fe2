// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "tessera/core/random.hpp"
#include "tessera/ops/step_clock.hpp"

/// Which elements fall to dropout. Every op and every device draws them in the same way: four
/// consecutive elements share the 128 bits of one counter, 32 bits each.
///
///     word(element) = random.bits(element / 4)[element % 4]
///     kept when word(element) >= round(share * 2^32)
namespace tessera::ops {

/// What a kernel needs to draw the same elements: plain numbers.
struct DropoutConstants {
  std::uint32_t key[2] = {0, 0};
  std::uint32_t step = 0;
  std::uint32_t layer = 0;
  std::uint32_t threshold = 0;       ///< words below it are dropped
  double kept_factor = 1;            ///< what a kept element is multiplied by; a dropped one by 0
  const StepClock* clock = nullptr;  ///< if there is one, its step counts instead

  /// With the clock read, which must lie in memory of this process.
  DropoutConstants at_present() const noexcept {
    DropoutConstants constants = *this;
    if (clock != nullptr) constants.step = static_cast<std::uint32_t>(clock->step);
    constants.clock = nullptr;
    return constants;
  }
};

struct Dropout {
  double share = 0;  ///< in [0, 1]
  Random random = Random(0);
  const StepClock* clock = nullptr;  ///< if there is one, its step takes the place of `random`'s

  bool active() const noexcept { return share > 0; }

  /// 1 / (1 - share), so that the expected value stays. A share of 1 drops everything.
  double kept_factor() const noexcept { return share < 1 ? 1 / (1 - share) : 0; }

  std::uint32_t threshold() const noexcept {
    const double words = std::nearbyint(share * 0x1p32);
    return words < 0x1p32 ? static_cast<std::uint32_t>(words) : 0xFFFFFFFFu;
  }

  /// By `random` alone, as `factor`.
  std::uint32_t word(std::uint64_t element) const noexcept {
    return random.bits(element / 4)[element % 4];
  }

  /// What the element is multiplied by. Infinities and not-a-number stay visible: they are
  /// multiplied by 0 as well.
  double factor(std::uint64_t element) const noexcept {
    if (!active()) return 1;
    return word(element) >= threshold() ? kept_factor() : 0;
  }

  DropoutConstants constants() const noexcept {
    const auto key = random.key();
    return {{key[0], key[1]}, random.step(), random.layer(), threshold(), kept_factor(), clock};
  }
};

}  // namespace tessera::ops
