// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// The text with control characters written out ("\n", "\x1b"), so that a name from a file cannot
/// talk to a terminal. `keep_lines`: the ends of lines stay. The line of every `Error` is
/// printable.
std::string printable(std::string_view text, bool keep_lines = false);

}  // namespace tessera
