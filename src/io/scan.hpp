// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/graph/build.hpp"

#include "io/file.hpp"

/// The innermost steps of reading text: each takes the place to read at and returns the place after
/// what it read, without copying anything.
namespace tessera::io {

/// Thrown for a line that cannot be read; whoever knows the file makes an error of it, with the
/// number of the line.
struct LineProblem {
  const char* at;  ///< anywhere in the line
  std::string problem;
  std::string fix = damaged_file_fix;
};

/// Throws one for a number that is not finite, where those are rejected.
inline void require_finite(float value, const char* at, const char* what, Nonfinite nonfinite) {
  if (nonfinite != Nonfinite::reject || std::isfinite(value)) return;
  throw LineProblem{at, std::string("has a ") + what + " that is not finite",
                    std::string("give finite ") + what + "s, or use --nonfinite allow"};
}

inline bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

inline const char* skip_blanks(const char* at, const char* end) {
  while (at != end && is_blank(*at)) ++at;
  return at;
}

/// Where the line ends: at its '\n', or at the end of the text.
inline const char* line_end(const char* at, const char* end) {
  const void* const found = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
  return found == nullptr ? end : static_cast<const char*>(found);
}

/// One to seven digits, all at once; null where there are none or more, or where the text ends
/// within the next eight bytes.
inline const char* scan_few_digits(const char* at, const char* end, std::int64_t& value) {
  if (std::endian::native != std::endian::little || end - at < 8) return nullptr;
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  word ^= 0x3030303030303030u;  // the first digit is the lowest byte
  // The highest bit of every byte that is no digit; bytes behind the first such one may be wrong.
  const std::uint64_t others = ((word + 0x7676767676767676u) | word) & 0x8080808080808080u;
  const int digits = std::countr_zero(others) / 8;
  if (digits == 0 || digits == 8) return nullptr;
  word <<= 8 * (8 - digits);
  // Pairs of digits, then of pairs, then of those.
  word = (word * 10 + (word >> 8)) & 0x00FF00FF00FF00FFu;
  word = (word * 100 + (word >> 16)) & 0x0000FFFF0000FFFFu;
  value = static_cast<std::int64_t>((word * 10000 + (word >> 32)) & 0xFFFFFFFFu);
  return at + digits;
}

/// An integer of 64 bits with an optional sign; null where there is none or it does not fit.
inline const char* scan_integer(const char* at, const char* end, std::int64_t& value) {
  if (const char* const stop = scan_few_digits(at, end, value)) return stop;
  if (at == end) return nullptr;
  const char sign = *at;
  if (sign == '+' || sign == '-') ++at;
  const char* const first = at;
  std::uint64_t sum = 0;
  for (; at != end; ++at) {
    const unsigned digit = static_cast<unsigned char>(*at) - unsigned{'0'};
    if (digit > 9) break;
    sum = sum * 10 + digit;
  }
  constexpr std::ptrdiff_t always_fits = 18;
  if (at - first > always_fits) {
    const char* const begin = sign == '-' ? first - 1 : first;
    return std::from_chars(begin, at, value).ec == std::errc() ? at : nullptr;
  }
  const auto magnitude = static_cast<std::int64_t>(sum);
  value = sign == '-' ? -magnitude : magnitude;
  return at == first ? nullptr : at;
}

/// A real number as any program writes it, also with Fortran's D before the exponent: too small a
/// one is 0; nothing where it is no number or too large for a float. Infinity and not-a-number are
/// numbers here.
std::optional<float> parse_real(std::string_view word);

/// The same, but what is too large is infinity: still a number, and not a text among numbers.
std::optional<float> parse_any_real(std::string_view word);

/// Such a number from `at` up to a character that `ends` it; null where there is none.
template <class Ends>
inline const char* scan_real(const char* at, const char* end, Ends&& ends, float& value) {
  // A few digits, perhaps with a point, are the quotient of two numbers that floats hold exactly.
  constexpr float powers[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};
  const char* const begin = at;
  const bool negative = at != end && *at == '-';
  if (negative) ++at;
  std::uint32_t digits = 0;
  std::int32_t seen = 0;
  std::int32_t after_point = 0;
  bool point = false;
  for (; at != end && seen <= 8; ++at) {
    const unsigned digit = static_cast<unsigned char>(*at) - unsigned{'0'};
    if (digit <= 9) {
      digits = digits * 10 + digit;
      ++seen;
      after_point += point ? 1 : 0;
    } else if (*at == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  if (seen > 0 && digits < (1u << 24) && seen <= 8 && (at == end || ends(*at))) {
    const float magnitude = static_cast<float>(digits) / powers[after_point];
    value = negative ? -magnitude : magnitude;
    return at;
  }
  at = begin;
  while (at != end && !ends(*at)) ++at;
  const auto parsed = parse_real({begin, static_cast<std::size_t>(at - begin)});
  if (!parsed) return nullptr;
  value = *parsed;
  return at;
}

}  // namespace tessera::io
