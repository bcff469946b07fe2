// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/core/error.hpp"
#include "tessera/train/options.hpp"

/// Settings as text: how checkpoints store a configuration, and how two are compared.
namespace tessera::train {

/// Settings found by name. Whatever is wrong with one is `bad_data` of the file it came from.
class SettingsReader {
 public:
  /// No name may occur twice.
  SettingsReader(std::vector<Setting> settings, std::string where);

  const std::vector<Setting>& settings() const { return settings_; }
  const std::string& where() const { return where_; }
  const std::string& text(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  /// Within these bounds.
  std::int64_t integer(const std::string& name, std::int64_t least, std::int64_t most) const;
  bool truth(const std::string& name) const { return integer(name, 0, 1) != 0; }
  bool has(const std::string& name) const { return by_name_.contains(name); }

  /// What `parse` makes of the text under a name.
  template <class Parse>
  auto reading(const std::string& name, Parse&& parse) const {
    const std::string& found = text(name);
    try {
      return parse(found);
    } catch (const Error& error) {
      reject(name, error);
    }
  }

 private:
  [[noreturn]] void reject(const std::string& name, const Error& error) const;

  std::vector<Setting> settings_;
  std::map<std::string, std::string> by_name_;
  std::string where_;
};

/// The opposite of `settings_of`.
nn::ModelConfig model_config_from(const SettingsReader& settings);

/// One line "name = value" each.
std::string to_text(const std::vector<Setting>& settings);
SettingsReader parse_settings(const std::string& text, const std::string& where);

}  // namespace tessera::train
