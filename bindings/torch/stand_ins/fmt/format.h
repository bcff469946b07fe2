// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

/// The few things that the sparse ops use of fmt, so that the Python package needs nothing but a
/// compiler: `ptr`, and `format` with {}, {:<N}, {:0Nx}, {:g}, {:.Nf}, {:.Ng} and {:.Ne}. Other builds use fmt itself;
/// tests/unit/core/format_test.cpp holds both against each other.
namespace fmt {
namespace detail {

/// What stands between the colon and the closing brace.
struct Specification {
  std::string_view text;

  bool left_aligned() const { return text.starts_with('<'); }
  char kind() const { return text.empty() ? '\0' : text.back(); }
  std::size_t number_after(char sign) const {
    const std::size_t at = text.find(sign);
    std::size_t number = 0;
    if (at != std::string_view::npos) {
      std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
    }
    return number;
  }
};

inline std::string padded(std::string text, const Specification& specification) {
  if (specification.left_aligned() && text.size() < specification.number_after('<')) {
    text.resize(specification.number_after('<'), ' ');
  }
  return text;
}

template <class Number>
std::string number_text(Number value, const Specification& specification) {
  char buffer[64];
  if constexpr (std::is_floating_point_v<Number>) {
    if (!specification.text.empty()) {
      const char pattern[] = {'%', '.', '*', specification.kind(), '\0'};
      // Below 0 are as many digits as without a number of them.
      const int digits = specification.text.starts_with('.')
                             ? static_cast<int>(specification.number_after('.'))
                             : -1;
      const auto number = static_cast<double>(value);
      const int length = std::snprintf(nullptr, 0, pattern, digits, number);
      std::string text(static_cast<std::size_t>(length < 0 ? 0 : length), '\0');
      std::snprintf(text.data(), text.size() + 1, pattern, digits, number);
      return text;
    }
    const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
    return {buffer, end};
  } else {
    const bool hexadecimal = specification.kind() == 'x';
    const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, hexadecimal ? 16 : 10).ptr;
    std::string text(buffer, end);
    const std::size_t width = hexadecimal ? specification.number_after('0') : 0;
    if (text.size() < width) text.insert(0, width - text.size(), '0');
    return text;
  }
}

inline std::string text_of(bool value, const Specification&) { return value ? "true" : "false"; }
inline std::string text_of(char value, const Specification&) { return std::string(1, value); }
template <class Value>
std::string text_of(const Value& value, const Specification& specification) {
  if constexpr (std::is_arithmetic_v<Value>) {
    return number_text(value, specification);
  } else if constexpr (std::is_same_v<Value, const void*>) {
    return "0x" + number_text(reinterpret_cast<std::uintptr_t>(value), Specification{"x"});
  } else {
    return std::string(std::string_view(value));
  }
}

}  // namespace detail

/// A pointer, to be printed as such.
inline const void* ptr(const void* pointer) { return pointer; }

/// The text with every pair of braces replaced by its argument.
template <class... Values>
std::string format(std::string_view pattern, const Values&... values) {
  std::string result;
  const auto copy_until_brace = [&] {
    while (!pattern.empty()) {
      const char letter = pattern.front();
      const bool doubled = pattern.size() > 1 && pattern[1] == letter;
      if (letter == '{' && !doubled) return;
      pattern.remove_prefix((letter == '{' || letter == '}') && doubled ? 2 : 1);
      result += letter;
    }
  };
  [[maybe_unused]] const auto take = [&](const auto& value) {
    copy_until_brace();
    const std::size_t end = pattern.find('}');
    if (end == std::string_view::npos) return;
    detail::Specification specification{pattern.substr(1, end - 1)};
    if (specification.text.starts_with(':')) specification.text.remove_prefix(1);
    result += detail::padded(detail::text_of(value, specification), specification);
    pattern.remove_prefix(end + 1);
  };
  (take(values), ...);
  copy_until_brace();
  return result;
}

}  // namespace fmt
