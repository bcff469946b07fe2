// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

/// 1234567 as "1,234,567", as reports and notes have numbers that people read.
std::string grouped(std::int64_t number);

}  // namespace tessera
