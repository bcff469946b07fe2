// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tessera/core/device_profile.hpp"

/// Profiles of GPUs as files: lines of text, a field in each (docs/formats.md).
namespace tessera::io {

std::string device_profile_text(const DeviceProfile& profile);

/// Throws `bad_data` that names the line or the field where one is missing, unknown, or none that
/// can be; `unsupported` for a file of another format.
DeviceProfile parse_device_profile(std::string_view text, const std::string& where);
DeviceProfile load_device_profile(const std::string& path);

}  // namespace tessera::io
