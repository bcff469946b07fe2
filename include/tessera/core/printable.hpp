// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tessera {

/// The text with everything written out that a terminal does not show as it stands: control and
/// format characters ("\n", "\x1b", "\u202e"), spaces other than the plain one, and bytes that are
/// no UTF-8 ("\xff"). So a name from a file can neither talk to a terminal nor look like another.
/// `keep_lines`: the ends of lines stay. The line of every `Error` is printable.
std::string printable(std::string_view text, bool keep_lines = false);

}  // namespace tessera
