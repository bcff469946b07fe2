// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tessera::io {

/// Whether a spreadsheet would run the field.
bool is_formula(std::string_view field);

/// A name as a field of CSV, in quotation marks where it needs them. One that a spreadsheet would
/// run gets an apostrophe, which makes it a text (docs/formats.md).
void append_csv_field(std::string& text, std::string_view name);

}  // namespace tessera::io
