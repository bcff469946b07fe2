// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// A name from a file within a message: in quotes, and not longer than a line bears.
std::string in_quotes(std::string_view name);

/// "a, b and c"; of more than eight the first eight and how many there are beside them.
std::string listed(const std::vector<std::string>& items);

}  // namespace tessera
