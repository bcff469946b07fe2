// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tessera::io {

/// A text as JSON has it, with its quotation marks, in ASCII alone: other characters are "\\u00e9",
/// and bytes that are no UTF-8 are "\\ufffd".
void append_json_text(std::string& json, std::string_view text);

}  // namespace tessera::io
