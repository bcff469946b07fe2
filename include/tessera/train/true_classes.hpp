// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tessera/data/dataset.hpp"
#include "tessera/train/checkpoint.hpp"

namespace tessera::train {

/// What a data set says of its items, in the classes of a model.
struct TrueClasses {
  /// As `Prediction::classes`, one per item; absent where there is no label, or one of a class that
  /// the model does not know. Empty: the data has no classes of such items.
  std::vector<std::optional<std::int64_t>> classes;
  std::vector<std::string> notes;
};

/// Classes are matched by their names; one without a name is called by its number. Where the data's
/// classes have no names at all and none of their numbers is a name of the model's, they go by
/// number, and a note says so.
TrueClasses true_classes(const Checkpoint& checkpoint, const Dataset& dataset);

}  // namespace tessera::train
