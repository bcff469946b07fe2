// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// The one rule for the files of a command, whatever its verb: nothing is overwritten unasked.
namespace tessera::app {

/// What a command does with a file.
enum class FileRole {
  input,    ///< reads it
  output,   ///< writes it; one that exists needs --force
  report,   ///< writes JSON; may replace JSON, and anything else with --force
  picture,  ///< writes a picture; may replace one of ours, and anything else with --force
  state,    ///< reads it where it is there, and writes it: --resume, --plans
};

struct FileUse {
  std::string option;  ///< "-o"
  std::string path;    ///< empty: not given
  FileRole role;
};

/// A data source as a use of a file: none where it is embedded or generated.
FileUse source_file(const std::string& source, const std::string& option = "--data");

/// True for what a report is written to directly: stdout ("-"), a descriptor that is open
/// (/dev/stdout, what a shell gives for >(...)), a terminal or another device of characters.
bool is_stream(const std::string& path);

/// Throws before the work rather than after: where a file would be overwritten that must not be,
/// where two outputs are one file, an output is an input or a file in an input folder (also through
/// links and other spellings of a name), and where a file could not be written at all.
void check_files(const std::vector<FileUse>& uses, bool force);

}  // namespace tessera::app
