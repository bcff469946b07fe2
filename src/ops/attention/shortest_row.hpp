// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::ops {

/// What attention by cosines takes shorter rows for.
inline constexpr double shortest_row = 1e-12;

}  // namespace tessera::ops
