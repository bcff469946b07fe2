// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "arguments.hpp"

namespace tessera::app {

/// An option that may change nothing: whoever gives it then expects something else to happen.
struct Useless {
  const char* option;
  bool is_useless;
  std::string where;        ///< "for gcn", "without --checkpoint"
  std::string alternative;  ///< "use --model gat"; may be empty
};

/// Throws `invalid_argument` for the first of these that was given and changes nothing.
void reject_useless(const Arguments& app, const std::vector<Useless>& options);

}  // namespace tessera::app
