// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "json.hpp"
#include "tessera/data/dataset.hpp"
#include "tune_trials.hpp"

namespace tessera::app {

/// The command line that trains with the settings of a trial.
std::string train_command(const Arguments& app, const Trial& trial);

/// Of trials of which the best comes first.
std::string tune_text(const TuneArguments& arguments, const Dataset& dataset,
                      const std::vector<Trial>& trials, const std::string& command);
Json tune_json(const TuneArguments& arguments, const Dataset& dataset,
               const std::vector<Trial>& trials, const std::string& command);

}  // namespace tessera::app
