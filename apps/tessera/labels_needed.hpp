// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "options.hpp"

namespace tessera::app {

/// Throws where vertices are to be classified, but the data has no labels: says where they may come
/// from, and which columns of a table could be them. `task` is what `--task` says.
void require_labels(const DataOptions& data, const std::string& task, const Dataset& dataset);

}  // namespace tessera::app
