// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera {

/// The library's version, such as "0.1.0". Versions follow semver.org.
const char* version() noexcept;

}  // namespace tessera
