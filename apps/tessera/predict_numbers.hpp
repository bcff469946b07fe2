// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json.hpp"
#include "judge.hpp"
#include "table.hpp"
#include "tessera/train/predict.hpp"

/// What `predict` says of a model of numbers.
namespace tessera::app {

/// A line for each target: where its predictions lie, and how far they are from what the data says.
void add_numbers(const train::Prediction& prediction, const JudgedItems& judged, Table& table);
void add_numbers(const train::Prediction& prediction, const JudgedItems& judged, Json& json);

}  // namespace tessera::app
