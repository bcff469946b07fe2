// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/train/predict.hpp"

namespace tessera::train {

/// A table of the columns id, label and probability, one line per item, under the names that ids
/// and classes have in the data; numbers where they have none. A name that a spreadsheet would run
/// gets an apostrophe (docs/formats.md).
std::string prediction_csv(const Prediction& prediction);

}  // namespace tessera::train
