// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// Colours on a terminal, which say nothing that the words do not.
namespace tessera::app {

/// What --color says: auto, always or never. Of the whole process.
void set_colour_mode(const std::string& mode);

/// True if what goes to this descriptor may have colours: as --color says, or, for auto, where it
/// is a terminal that has them and NO_COLOR is not set.
bool colour_on(int descriptor);

enum class Paint { bold, red, green, yellow, cyan };

std::string paint(const std::string& text, Paint colour);

/// The report with its first line in bold and verdicts, which are cells of their own in its tables,
/// in colours.
std::string painted_report(const std::string& report);

}  // namespace tessera::app
