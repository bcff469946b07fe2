// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tessera/core/error.hpp"

namespace tessera::io {

/// Throws `code` where an array of an archive or a container has a name that no program should make
/// a file of: an empty one, an absolute path or one with '.', '..' or a backslash in it, or one
/// that cannot be printed. "paper/x" is a name.
void require_plain_name(std::string_view name, const std::string& where, ErrorCode code);

/// The same for a member of an archive, which is called "x.npy" where the array is "x".
void require_plain_member(std::string_view member, const std::string& where, ErrorCode code);

}  // namespace tessera::io
