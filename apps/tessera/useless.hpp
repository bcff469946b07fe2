// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "arguments.hpp"
#include "tessera/core/error.hpp"

namespace tessera::app {

/// An option that may change nothing: whoever gives it then expects something else to happen.
struct Useless {
  const char* option;
  bool is_useless;
  std::string where;        ///< "for gcn", "without --checkpoint"
  std::string alternative;  ///< "use --model gat"; may be empty
};

/// That an option changes nothing; `where()` is the option.
class UselessOption : public Error {
 public:
  using Error::Error;
};

/// Throws `UselessOption`, an `invalid_argument`, for the first of these that was given and changes
/// nothing.
void reject_useless(const Arguments& app, const std::vector<Useless>& options);

}  // namespace tessera::app
