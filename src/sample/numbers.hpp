// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "tessera/core/random.hpp"

#include "core/anywhere.hpp"

/// Random numbers of one vertex in one hop. No function of a mathematical library is used, since
/// they round differently from machine to machine: all devices draw the same.
namespace tessera::sample {

/// Uniform in [0, bound) of 64 random bits; the bias is below bound / 2^64.
constexpr std::uint64_t below(std::uint64_t bits, std::uint64_t bound) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

/// Uniform in [0, 1), 53 bits.
constexpr double uniform(std::uint64_t bits) noexcept {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// Exponentially distributed with mean 1, greater than 0: minus the logarithm of a number inside of
/// (0, 1). All that is rounded is a single operation, so that no compiler may fuse two of them.
TESSERA_ANYWHERE inline double exponential(std::uint64_t bits) noexcept {
  int exponent = 0;
  double part = std::frexp(static_cast<double>((bits >> 11) * 2 + 1) * 0x1p-54, &exponent);
  if (part < 0.70710678118654752) {
    part *= 2;
    --exponent;
  }
  // log(part) = 2 atanh(ratio), a series in the square of a ratio below 0.172.
  const double ratio = (part - 1) / (part + 1);
  const double square = ratio * ratio;
  double sum = 0;
  for (int odd = 21; odd >= 1; odd -= 2) sum = std::fma(sum, square, 2.0 / odd);
  return std::fma(-exponent, 0.69314718055994531, -ratio * sum);
}

/// The halves of a block of 128 bits.
constexpr std::uint64_t number_in(const std::array<std::uint32_t, 4>& bits, bool second) noexcept {
  return second ? (std::uint64_t{bits[3]} << 32) | bits[2]
                : (std::uint64_t{bits[1]} << 32) | bits[0];
}

/// Number n of a vertex: two of each block.
constexpr std::uint64_t nth_number(const Random& random, std::uint64_t element, std::uint64_t n,
                                   std::uint32_t first_block = 0) noexcept {
  const auto block = first_block + static_cast<std::uint32_t>(n / 2);
  return number_in(random.at_step(block).bits(element), n % 2 == 1);
}

/// The same numbers in their order.
class Numbers {
 public:
  constexpr Numbers(const Random& random, std::uint64_t element,
                    std::uint32_t first_block = 0) noexcept
      : random_(random), element_(element), block_(first_block) {}

  constexpr std::uint64_t next() noexcept {
    if (!second_) bits_ = random_.at_step(block_++).bits(element_);
    const std::uint64_t number = number_in(bits_, second_);
    second_ = !second_;
    return number;
  }

 private:
  Random random_;
  std::uint64_t element_;
  std::uint32_t block_;
  bool second_ = false;
  std::array<std::uint32_t, 4> bits_{};
};

}  // namespace tessera::sample
