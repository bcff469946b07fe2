// SPDX-License-Identifier: Apache-2.0
#include "device_profile_file.hpp"

#include <cmath>
#include <type_traits>
#include <variant>

#include <fmt/format.h>

#include "table.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/io/device_profile.hpp"

namespace tessera::app {

bool names_profile_file(const std::string& name_or_file) {
  return name_or_file.find_first_of("./") != std::string::npos;
}

DeviceProfile device_profile_of(const std::string& name_or_file) {
  if (!names_profile_file(name_or_file)) return built_in_profile(name_or_file);
  return io::load_device_profile(name_or_file);
}

Json profile_json(const DeviceProfile& profile) {
  Json json = Json::object();
  for (const ProfileField& field : profile_fields()) {
    json[field.name] = std::visit(
        [&](auto member) {
          if constexpr (std::is_same_v<decltype(member), GatherRates DeviceProfile::*>) {
            Json pairs = Json::array();
            for (const GatherRate& each : profile.*member) {
              pairs.push_back(Json(std::vector<double>{each.row_bytes, each.bytes_per_us}));
            }
            return pairs;
          } else {
            return Json(profile.*member);
          }
        },
        field.member);
  }
  return json;
}

namespace {

std::string text_of(double number) { return fmt::format("{:.4g}", number); }
std::string text_of(std::int64_t number) { return std::to_string(number); }
std::string text_of(int number) { return std::to_string(number); }

/// "2.1 % more"; empty where there is nothing to compare.
std::string beside(double found, double expected) {
  if (expected == 0 || found == expected) return {};
  const double percent = 100 * (found / expected - 1);
  return fmt::format("{:.0f} % {}", std::abs(percent), percent < 0 ? "less" : "more");
}

/// Lines of the numbers of one field, of two profiles.
struct Lines {
  Table& table;
  const ProfileField& field;
  const DeviceProfile* expected;

  void add(const std::string& name, const std::string& value, const std::string& other,
           const std::string& difference) const {
    if (expected == nullptr) {
      table.add({name, value, field.unit});
    } else {
      table.add({name, value, other, difference, field.unit});
    }
  }
  void operator()(const GatherRates& rates, const GatherRates& others) const {
    for (const GatherRate& each : rates) {
      const double other = expected == nullptr ? 0 : rate_of(others, each.row_bytes);
      add(fmt::format("{}, rows of {:.0f} bytes", field.name, each.row_bytes),
          text_of(each.bytes_per_us), text_of(other), beside(each.bytes_per_us, other));
    }
  }
  void operator()(const std::string&, const std::string&) const {}
  template <class Number>
  void operator()(Number value, Number other) const {
    add(field.name, text_of(value), text_of(other),
        beside(static_cast<double>(value), static_cast<double>(other)));
  }
};

}  // namespace

std::string profile_text(const DeviceProfile& profile, const DeviceProfile* expected) {
  Table table(expected == nullptr ? "lrl" : "lrrrl");
  if (expected != nullptr) table.add({"", "measured", "expected", "", ""});
  const DeviceProfile& other = expected == nullptr ? profile : *expected;
  for (const ProfileField& field : profile_fields()) {
    std::visit(
        [&](auto member) {
          Lines{table, field, expected}(profile.*member, other.*member);
        },
        field.member);
  }
  return fmt::format("{}: {}\n", printable(profile.name), printable(profile.source)) + table.text();
}

}  // namespace tessera::app
