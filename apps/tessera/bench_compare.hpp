// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "exit_code.hpp"
#include "session.hpp"

namespace tessera::app {

/// Sets the records of two files side by side and says how many times faster the second is. Exit
/// code `check_failed` where any case is below `fail_under`; 0 never fails. `by_position` takes the
/// n-th graph of one file for the n-th of the other, whatever they are called.
ExitCode compare_records(Session& session, const std::string& first, const std::string& second,
                         double fail_under, bool by_position);

}  // namespace tessera::app
