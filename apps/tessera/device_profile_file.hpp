// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "json.hpp"
#include "tessera/core/device_profile.hpp"

/// Profiles of GPUs as options name them and as reports show them.
namespace tessera::app {

/// The built-in profile of this name, or that of a file: what has a dot or a slash is one.
DeviceProfile device_profile_of(const std::string& name_or_file);

bool names_profile_file(const std::string& name_or_file);

/// Rates of gathering are pairs [bytes of a row, bytes in a microsecond].
Json profile_json(const DeviceProfile& profile);

/// A line for each number; with what was expected of them beside it, unless that is null.
std::string profile_text(const DeviceProfile& profile, const DeviceProfile* expected = nullptr);

}  // namespace tessera::app
