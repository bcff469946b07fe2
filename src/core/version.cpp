// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/version.hpp"

namespace tessera {

const char* version() noexcept { return TESSERA_VERSION; }

}  // namespace tessera
