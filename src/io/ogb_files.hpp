// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/io/open.hpp"

/// The files of OGB's folders, of one kind of vertices or of several.
namespace tessera::io {

/// The file of this name below the folder, packed or plain; empty where there is none.
std::string find_ogb_file(const std::string& folder, const std::string& name);

/// Gives the data set what the folder says of so many vertices; nothing where it says nothing.
void read_ogb_features(const std::string& folder, VertexId vertices, const ReadOptions& options,
                       Dataset& dataset);
void read_ogb_labels(const std::string& folder, VertexId vertices, const ReadOptions& options,
                     Dataset& dataset);
/// Those of train, valid and test.
void read_ogb_parts(const std::string& folder, Dataset& dataset);

}  // namespace tessera::io
