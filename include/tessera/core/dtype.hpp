// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera {

/// A 16-bit float with fp32's range: the upper half of an fp32. Rounds to nearest, ties to even;
/// not-a-number stays so.
struct Bfloat16 {
  std::uint16_t bits;

  Bfloat16() = default;
  explicit Bfloat16(float value) noexcept {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (wide & 0x7FFFFFFFu) > 0x7F800000u;
    bits = static_cast<std::uint16_t>(is_nan ? (wide >> 16) | 0x40u
                                             : (wide + 0x7FFFu + ((wide >> 16) & 1u)) >> 16);
  }
  operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// IEEE's 16-bit float. Rounds to nearest, ties to even; what is too large becomes infinite.
struct Float16 {
  std::uint16_t bits;

  Float16() = default;
  explicit Float16(float value) noexcept {
    const auto wide = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = wide & 0x7FFFFFFFu;
    std::uint32_t narrow = 0;
    if (magnitude > 0x7F800000u) {
      narrow = 0x7E00u;
    } else if (magnitude >= 0x47800000u) {  // 2^16
      narrow = 0x7C00u;
    } else if (magnitude < 0x38800000u) {  // 2^-14: a multiple of 2^-24, as floats around 0.5 are
      narrow = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
    } else {
      narrow = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
    }
    bits = static_cast<std::uint16_t>(narrow | ((wide >> 16) & 0x8000u));
  }
  operator float() const noexcept {
    const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
    const std::uint32_t fraction = bits & 0x3FFu;
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
      return sign == 0 ? magnitude : -magnitude;
    }
    const std::uint32_t wide_exponent = exponent == 0x1Fu ? 0xFFu : exponent + 112;
    return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
  }
};

/// What the elements of a matrix are stored as. `bits` are packed, 32 to a word.
enum class ElementType { fp64, fp32, bf16, fp16, int8, int32, bits };

const char* to_string(ElementType type) noexcept;
int bits_per_element(ElementType type) noexcept;
/// What `count` elements in a row take: whole bytes, or whole 32-bit words where they are bits.
std::int64_t bytes_of(ElementType type, std::int64_t count) noexcept;

/// The arithmetic of a plan: how it stores features and edge values, and what it multiplies. Sums
/// are always at least fp32.
enum class Precision { fp64, fp32, tf32, bf16, fp16 };

const char* to_string(Precision precision) noexcept;
Precision parse_precision(const std::string& text);
std::size_t bytes_per_element(Precision precision) noexcept;
/// What a plan of this precision stores its matrices as: tf32 is fp32 in memory.
ElementType storage_of(Precision precision) noexcept;

/// The element type that stores a T.
template <class T>
struct ElementTypeOf;
template <>
struct ElementTypeOf<double> {
  static constexpr ElementType value = ElementType::fp64;
};
template <>
struct ElementTypeOf<float> {
  static constexpr ElementType value = ElementType::fp32;
};
template <>
struct ElementTypeOf<Bfloat16> {
  static constexpr ElementType value = ElementType::bf16;
};
template <>
struct ElementTypeOf<Float16> {
  static constexpr ElementType value = ElementType::fp16;
};
template <>
struct ElementTypeOf<std::int8_t> {
  static constexpr ElementType value = ElementType::int8;
};
template <>
struct ElementTypeOf<std::int32_t> {
  static constexpr ElementType value = ElementType::int32;
};

}  // namespace tessera
