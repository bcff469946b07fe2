// SPDX-License-Identifier: Apache-2.0
#include "data/description.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace tessera::data {
namespace {

[[noreturn]] void reject(const std::string& text, const std::string& where,
                         const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, fmt::format("cannot read '{}'", text), where, fix);
}

/// The whole text as a number, or nothing.
template <class Number>
std::optional<Number> read_number(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end) return std::nullopt;
  return value;
}

template <class Integer>
void read_integer(const std::string& text, const std::string& where, Integer& value) {
  if (const auto exact = read_number<Integer>(text)) {
    value = *exact;
    return;
  }
  // Powers of ten are how sizes are said: 2e6 is a whole number too.
  constexpr double limit =
      std::min(0x1p53, static_cast<double>(std::numeric_limits<Integer>::max()));
  const auto real = read_number<double>(text);
  if (!real || !(std::abs(*real) <= limit) || std::trunc(*real) != *real ||
      (*real < 0 && !std::is_signed_v<Integer>)) {
    reject(text, where,
           fmt::format("use a whole number up to {}, such as 2000000 or 2e6",
                       std::numeric_limits<Integer>::max()));
  }
  value = static_cast<Integer>(*real);
}

}  // namespace

Description parse_description(const std::string& text) {
  const std::size_t question = text.find('?');
  Description result{text.substr(0, question), {}};
  if (question == std::string::npos) return result;
  for (std::size_t begin = question + 1; begin < text.size();) {
    const std::size_t end = std::min(text.find('&', begin), text.size());
    const std::string setting = text.substr(begin, end - begin);
    const std::size_t equals = setting.find('=');
    if (equals == 0 || equals == std::string::npos) {
      reject(setting, text, "use kind?name=value&name=value");
    }
    const std::string name = setting.substr(0, equals);
    for (const auto& [earlier, value] : result.settings) {
      if (earlier == name) {
        throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is given twice", name), text,
                    "give each parameter once");
      }
    }
    result.settings.emplace_back(name, setting.substr(equals + 1));
    begin = end + 1;
  }
  return result;
}

void read_value(const std::string& text, const std::string& where, std::int32_t& value) {
  read_integer(text, where, value);
}
void read_value(const std::string& text, const std::string& where, std::int64_t& value) {
  read_integer(text, where, value);
}
void read_value(const std::string& text, const std::string& where, std::uint64_t& value) {
  read_integer(text, where, value);
}

void read_value(const std::string& text, const std::string& where, double& value) {
  const auto real = read_number<double>(text);
  if (!real || !std::isfinite(*real)) reject(text, where, "use a number such as 0.5");
  value = *real;
}

void read_value(const std::string& text, const std::string& where, bool& value) {
  const bool is_true = text == "true" || text == "1";
  if (!is_true && text != "false" && text != "0") reject(text, where, "use true or false");
  value = is_true;
}

}  // namespace tessera::data
