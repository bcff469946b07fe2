// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/device_profile.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <type_traits>
#include <variant>

#include <fmt/format.h>

#include "io/file.hpp"
#include "io/text.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/printable.hpp"

namespace tessera::io {
namespace {

constexpr std::string_view title = "tessera device profile";
constexpr std::string_view format_number = "1";
constexpr const char* fix =
    "make it again with 'tessera calibrate'; 'tessera doctor --device-profile h200 -o FILE' writes "
    "a profile that is complete";

/// A field of the file as text.
struct Written {
  std::string operator()(const std::string& text) const {
    std::string line = text;
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
    return line;
  }
  std::string operator()(const GatherRates& rates) const {
    std::string text;
    for (const GatherRate& each : rates) {
      text += fmt::format("{}{:.6g}:{:.6g}", text.empty() ? "" : " ", each.row_bytes,
                          each.bytes_per_us);
    }
    return text;
  }
  std::string operator()(double number) const { return fmt::format("{:.6g}", number); }
  template <std::integral Whole>
  std::string operator()(Whole number) const {
    return fmt::format("{}", number);
  }
};

/// Takes a text into a field; false where it is of another type.
struct Taken {
  std::string_view text;

  bool operator()(std::string& member) const {
    member = text;
    return true;
  }
  bool operator()(GatherRates& member) const {
    LineScanner words(text);
    while (!words.at_end()) {
      const std::string_view word = words.word();
      const std::size_t colon = std::min(word.find(':'), word.size());
      GatherRate rate;
      if (colon == word.size() || !Taken{word.substr(0, colon)}(rate.row_bytes) ||
          !Taken{word.substr(colon + 1)}(rate.bytes_per_us)) {
        return false;
      }
      member.push_back(rate);
    }
    return true;
  }
  template <class Number>
  bool operator()(Number& member) const {
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, member);
    return problem == std::errc() && stop == end;
  }
};

const char* type_of(const ProfileField& field) {
  constexpr const char* names[] = {"a text", "a whole number", "a whole number", "a number",
                                   "pairs of bytes and bytes/us as in '64:2e6 512:9e6'"};
  return names[field.member.index()];
}

[[noreturn]] void reject(const std::string& problem, const std::string& where) {
  throw Error(ErrorCode::bad_data, problem, where, fix);
}

const ProfileField* field_named(std::string_view name) {
  for (const ProfileField& field : profile_fields()) {
    if (name == field.name) return &field;
  }
  return nullptr;
}

/// "name<tab>value"
void take_field(DeviceProfile& profile, std::string_view line, std::set<std::string_view>& seen,
                const std::string& where) {
  const std::size_t tab = std::min(line.find('\t'), line.size());
  const std::string_view name = line.substr(0, tab);
  const ProfileField* const field = field_named(name);
  if (field == nullptr) {
    reject(fmt::format("a profile has no field '{}'", printable(std::string(name.substr(0, 40)))),
           where);
  }
  if (!seen.insert(field->name).second) reject(fmt::format("{} comes twice", field->name), where);
  const std::string_view value = line.substr(std::min(tab + 1, line.size()));
  const bool taken =
      std::visit([&](auto member) { return Taken{value}(profile.*member); }, field->member);
  if (!taken) reject(fmt::format("{} is not {}", field->name, type_of(*field)), where);
}

}  // namespace

std::string device_profile_text(const DeviceProfile& profile) {
  std::string text = fmt::format("{}\t{}\n", title, format_number);
  for (const ProfileField& field : profile_fields()) {
    text += fmt::format(
        "{}\t{}\n", field.name,
        std::visit([&](auto member) { return Written{}(profile.*member); }, field.member));
  }
  return text;
}

DeviceProfile parse_device_profile(std::string_view text, const std::string& where) {
  const std::string_view head = take_line(text);
  if (!head.starts_with(title)) reject("no profile of a GPU", where);
  if (head.substr(std::min(title.size() + 1, head.size())) != format_number) {
    throw Error(ErrorCode::unsupported,
                fmt::format("a profile of another format than {}", format_number), where, fix);
  }
  DeviceProfile profile;
  std::set<std::string_view> seen;
  for (std::int64_t number = 2; !text.empty(); ++number) {
    std::string_view line = take_line(text);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) take_field(profile, line, seen, fmt::format("{}, line {}", where, number));
  }
  for (const ProfileField& field : profile_fields()) {
    if (!seen.contains(field.name)) reject(fmt::format("{} is missing", field.name), where);
  }
  profile.validate(where);
  return profile;
}

DeviceProfile load_device_profile(const std::string& path) {
  const Buffer<std::byte> bytes = InputFile(path).read_all();
  return parse_device_profile(text_of(bytes), path);
}

}  // namespace tessera::io
