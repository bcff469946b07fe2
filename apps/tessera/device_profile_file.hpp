// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "json.hpp"
#include "tessera/core/device_profile.hpp"

/// Profiles of GPUs as files: an object of JSON with the fields of `profile_fields`, rates of
/// gathering as pairs [bytes of a row, bytes in a microsecond].
namespace tessera::app {

/// The built-in profile of this name, or that of a file: what has a dot or a slash is one. Throws
/// `bad_data` that names the field where one is missing, unknown, or none that can be.
DeviceProfile device_profile_of(const std::string& name_or_file);

bool names_profile_file(const std::string& name_or_file);

Json profile_json(const DeviceProfile& profile);

/// A line for each field.
std::string profile_text(const DeviceProfile& profile);

}  // namespace tessera::app
