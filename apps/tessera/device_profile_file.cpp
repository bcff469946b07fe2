// SPDX-License-Identifier: Apache-2.0
#include "device_profile_file.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <variant>

#include <fmt/format.h>

#include "numbers.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/printable.hpp"

namespace tessera::app {
namespace {

constexpr int format_number = 1;
constexpr const char* title = "tessera_device_profile";

[[noreturn]] void reject(const std::string& what, const std::string& where,
                         const char* fix =
                             "'tessera doctor --device-profile h200 --json -' shows "
                             "a profile that is complete") {
  throw Error(ErrorCode::bad_data, what, where, fix);
}

/// Takes a value into a member; false where it is of another type.
struct Take {
  const Json& value;

  bool operator()(std::string& member) const {
    if (value.kind() != Json::Kind::text) return false;
    member = value.text();
    return true;
  }
  bool operator()(double& member) const {
    if (value.kind() == Json::Kind::real) {
      member = value.real();
    } else if (value.kind() == Json::Kind::integer) {
      member = static_cast<double>(value.integer());
    } else {
      return false;
    }
    return true;
  }
  bool operator()(int& member) const {
    std::int64_t number = 0;
    if (!(*this)(number) || number != static_cast<int>(number)) return false;
    member = static_cast<int>(number);
    return true;
  }
  bool operator()(std::int64_t& member) const {
    if (value.kind() != Json::Kind::integer) return false;
    member = value.integer();
    return true;
  }
  bool operator()(GatherRates& member) const {
    if (value.kind() != Json::Kind::array) return false;
    return std::all_of(value.items().begin(), value.items().end(), [&](const Json& pair) {
      GatherRate rate;
      if (pair.kind() != Json::Kind::array || pair.items().size() != 2 ||
          !Take{pair.items()[0]}(rate.row_bytes) || !Take{pair.items()[1]}(rate.bytes_per_us)) {
        return false;
      }
      member.push_back(rate);
      return true;
    });
  }
};

const char* type_of(const ProfileField& field) {
  constexpr const char* names[] = {"a text", "a whole number", "a whole number", "a number",
                                   "pairs of numbers [bytes of a row, bytes/us]"};
  return names[field.member.index()];
}

DeviceProfile profile_in(const Json& json, const std::string& where) {
  if (json.kind() != Json::Kind::object) reject("no object of JSON", where);
  const auto value_of = [&](const std::string& key) -> const Json* {
    const auto found = std::find(json.keys().begin(), json.keys().end(), key);
    return found == json.keys().end() ? nullptr : &json.items()[found - json.keys().begin()];
  };
  const Json* const format = value_of(title);
  if (format == nullptr) reject(fmt::format("no profile of a GPU: it has no {}", title), where);
  if (format->kind() != Json::Kind::integer || format->integer() != format_number) {
    throw Error(ErrorCode::unsupported,
                fmt::format("a profile of another format than {}", format_number), where,
                "use a profile that this version wrote");
  }
  DeviceProfile profile;
  for (const ProfileField& field : profile_fields()) {
    const Json* const value = value_of(field.name);
    if (value == nullptr) reject(fmt::format("{} is missing", field.name), where);
    const bool taken =
        std::visit([&](auto member) { return Take{*value}(profile.*member); }, field.member);
    if (!taken) reject(fmt::format("{} is not {}", field.name, type_of(field)), where);
  }
  for (const std::string& key : json.keys()) {
    const auto fields = profile_fields();
    const bool known = key == title || std::any_of(fields.begin(), fields.end(),
                                                   [&](const auto& f) { return key == f.name; });
    if (!known) reject(fmt::format("a profile has no field '{}'", printable(key)), where);
  }
  profile.validate(where);
  return profile;
}

}  // namespace

bool names_profile_file(const std::string& name_or_file) {
  return name_or_file.find_first_of("./") != std::string::npos;
}

DeviceProfile device_profile_of(const std::string& name_or_file) {
  if (!names_profile_file(name_or_file)) return built_in_profile(name_or_file);
  return profile_in(json_of_file(name_or_file), name_or_file);
}

Json profile_json(const DeviceProfile& profile) {
  Json json{{title, format_number}};
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

std::string profile_text(const DeviceProfile& profile) {
  Table table("lll");
  const auto text_of = [](const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const GatherRates&>) {
      std::string text;
      for (const GatherRate& each : value) {
        text += fmt::format("{}{:.4g} of {:.0f} bytes", text.empty() ? "" : ", ", each.bytes_per_us,
                            each.row_bytes);
      }
      return text;
    } else if constexpr (std::is_same_v<decltype(value), const double&>) {
      return fmt::format("{:.6g}", value);
    } else {
      return fmt::format("{}", value);
    }
  };
  for (const ProfileField& field : profile_fields()) {
    table.add(
        {field.name,
         printable(std::visit([&](auto member) { return text_of(profile.*member); }, field.member)),
         field.unit});
  }
  return table.text();
}

}  // namespace tessera::app
