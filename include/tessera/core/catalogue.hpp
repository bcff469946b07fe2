// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera {

/// One thing a user can ask for by name, with a line about it: a data set, a method, a kernel.
struct CatalogueEntry {
  std::string name;
  std::string summary;
};

}  // namespace tessera
