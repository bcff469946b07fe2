// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "arguments.hpp"
#include "tessera/core/error.hpp"

namespace tessera::app {

/// What happened, without where and how to fix it.
std::string problem_of(const Error& error);

/// The library speaks of its own fields ("learning_rate is -1"); users know options. The same error
/// with the option in front, where the verb has one of that name.
Error naming_option(const Arguments& app, const Error& error);

}  // namespace tessera::app
