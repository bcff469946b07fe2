// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json.hpp"
#include "table.hpp"
#include "tessera/train/report.hpp"

/// What the report of a training says of links; nothing where these were not learned and tested.
namespace tessera::app {

void add_links(const train::TrainReport& report, Table& table);
void add_links(const train::TrainReport& report, Json& json);

}  // namespace tessera::app
