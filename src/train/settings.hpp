// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/train/options.hpp"

/// Settings as text: how checkpoints store a configuration, and how two are compared.
namespace tessera::train {

/// The value under a name; `bad_data` where it is missing.
const std::string& setting(const std::vector<Setting>& settings, const std::string& name,
                           const std::string& where);

std::int64_t integer_setting(const std::vector<Setting>& settings, const std::string& name,
                             const std::string& where);
double real_setting(const std::vector<Setting>& settings, const std::string& name,
                    const std::string& where);

/// The opposite of `settings_of`.
nn::ModelConfig model_config_from(const std::vector<Setting>& settings, const std::string& where);

/// One line "name = value" each.
std::string to_text(const std::vector<Setting>& settings);
std::vector<Setting> parse_settings(const std::string& text, const std::string& where);

/// A real number that reads back as the same bits.
std::string exact_text(double value);

}  // namespace tessera::train
