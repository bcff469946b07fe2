// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// Where results go: stdout and files.
namespace tessera::app {

/// Makes sure that descriptors 0 to 2 are taken, so that no file opened later becomes stdout by
/// accident; writing to a stdout that was closed then fails as it should.
void guard_standard_streams();

/// Throws `io` where stdout is closed, full or no longer read.
void write_stdout(std::string_view text);

/// A file appears whole or not at all. Streams (files.hpp) are written directly; a pipe that
/// nothing reads is an `io` error.
void write_report(const std::string& path, std::string_view text);

}  // namespace tessera::app
