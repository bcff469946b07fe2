// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/data/dataset.hpp"

namespace tessera::data {

/// A made-up citation network of Cora's size and difficulty; always the same.
Dataset citation();

}  // namespace tessera::data
