// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "arguments.hpp"
#include "verb.hpp"

/// Help texts. CLI11's own differ from release to release; these do not.
namespace tessera::app {

/// What `tessera` alone prints.
std::string program_help();

/// What the program is, in a line, and how it names data.
std::string program_summary();
std::string data_help();

/// What `tessera VERB --help` prints; `app` holds the verb's options.
std::string verb_help(const Verb& verb, const Arguments& app);

}  // namespace tessera::app
