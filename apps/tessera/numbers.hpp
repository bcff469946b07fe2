// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tessera/core/grouped.hpp"

/// Numbers as people read them. Machines read the JSON.
namespace tessera::app {

/// "312 bytes", "1.25 MiB".
std::string human_bytes(std::int64_t bytes);

/// "0.8 ms", "12.3 ms", "1.24 s".
std::string human_seconds(double seconds);

/// "45 s", "2 min 5 s", "3 h 12 min": as exact as one waits.
std::string human_duration(double seconds);

/// "8.3 us", then as `human_seconds`.
std::string human_microseconds(double microseconds);

/// "3.90", or a grouped whole number where decimals mean little.
std::string human_real(double number);

/// 0.0127 as "1.27 %".
std::string human_share(double share);

}  // namespace tessera::app
