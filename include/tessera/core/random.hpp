// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace tessera {

/// Philox4x32-10 (Salmon et al., SC 2011): a function from (counter, key) to 128 random bits. There
/// is no state, so any thread or device computes any element's numbers, and all agree.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

/// Random numbers addressed by (seed, step, layer, element). `step` is a training step or the n-th
/// draw for an element; `layer` keeps independent uses of one seed apart.
class Random {
 public:
  constexpr explicit Random(std::uint64_t seed, std::uint32_t layer = 0,
                            std::uint32_t step = 0) noexcept
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        layer_(layer),
        step_(step) {}

  constexpr Random at_step(std::uint32_t step) const noexcept {
    Random other = *this;
    other.step_ = step;
    return other;
  }

  constexpr std::array<std::uint32_t, 2> key() const noexcept { return key_; }
  constexpr std::uint32_t layer() const noexcept { return layer_; }
  constexpr std::uint32_t step() const noexcept { return step_; }

  /// 128 bits that belong to this element.
  constexpr std::array<std::uint32_t, 4> bits(std::uint64_t element) const noexcept {
    return philox4x32({static_cast<std::uint32_t>(element),
                       static_cast<std::uint32_t>(element >> 32), step_, layer_},
                      key_);
  }

  constexpr std::uint64_t bits64(std::uint64_t element) const noexcept {
    const auto four = bits(element);
    return (std::uint64_t{four[1]} << 32) | four[0];
  }

  /// Uniform in [0, 1), 53 bits.
  constexpr double uniform(std::uint64_t element) const noexcept {
    return static_cast<double>(bits64(element) >> 11) * 0x1p-53;
  }

  /// Uniform in [0, bound), bound > 0; the bias is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t element, std::uint64_t bound) const noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(bits64(element)) * bound) >> 64);
  }

  /// Standard normal, by Box and Muller.
  double normal(std::uint64_t element) const noexcept {
    const auto four = bits(element);
    const std::uint64_t first = (std::uint64_t{four[1]} << 32) | four[0];
    const std::uint64_t second = (std::uint64_t{four[3]} << 32) | four[2];
    const double radius =
        std::sqrt(-2 * std::log((static_cast<double>(first >> 11) + 1) * 0x1p-53));
    return radius * std::cos(2 * std::numbers::pi * static_cast<double>(second >> 11) * 0x1p-53);
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t layer_;
  std::uint32_t step_;
};

}  // namespace tessera
