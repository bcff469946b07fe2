// SPDX-License-Identifier: Apache-2.0
#include "useless.hpp"

#include <fmt/format.h>

namespace tessera::app {

void reject_useless(const Arguments& app, const std::vector<Useless>& options) {
  for (const Useless& one : options) {
    if (!one.is_useless || !app.is_given(one.option)) continue;
    throw UselessOption(
        ErrorCode::invalid_argument, fmt::format("does nothing {}", one.where), one.option,
        one.alternative.empty() ? "leave it out"
                                : fmt::format("leave it out, or {}", one.alternative));
  }
}

}  // namespace tessera::app
