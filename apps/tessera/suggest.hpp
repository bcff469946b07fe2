// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tessera::app {

/// "did you mean 'X'?" for the nearest of `known`, at most two typing errors away; otherwise empty.
std::string suggestion(const std::string& typed, const std::vector<std::string>& known);

}  // namespace tessera::app
