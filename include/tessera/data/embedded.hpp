// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/core/catalogue.hpp"
#include "tessera/core/progress.hpp"
#include "tessera/data/dataset.hpp"

namespace tessera {

/// Data sets inside the library: "karate" (Zachary's club, four classes) and "citation" (a planted
/// partition of Cora's size: 2,708 vertices, 1,433 sparse features, 7 classes, a public-style
/// split).
std::vector<CatalogueEntry> embedded_datasets();
Dataset embedded_dataset(const std::string& name);

/// Generated graphs of the sizes that published GPU measurements use, such as "reddit" and
/// "products"; NAME-shuffled is the same graph with random vertex ids.
std::vector<CatalogueEntry> twins();
Dataset twin(const std::string& name, const Progress& progress = {});

/// The kinds `generate` knows, with their parameters and defaults.
std::vector<CatalogueEntry> generator_kinds();

/// Builds from text such as "rmat?scale=17&edges=2000000&seed=1". Unknown kinds, unknown or
/// malformed parameters are `invalid_argument` errors that list what there is.
Dataset generate_dataset(const std::string& description, const Progress& progress = {});

}  // namespace tessera
