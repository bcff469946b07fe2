// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "verb.hpp"

/// Help texts. CLI11's own differ from release to release; these do not.
namespace tessera::app {

/// What `tessera` alone prints.
std::string program_help();

/// What `tessera VERB --help` prints; `app` holds the verb's options.
std::string verb_help(const Verb& verb, const CLI::App& app);

/// Every spelling of every option, for suggestions.
std::vector<std::string> option_names(const CLI::App& app);

}  // namespace tessera::app
