// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "arguments.hpp"
#include "json.hpp"
#include "options.hpp"
#include "session.hpp"
#include "tessera/data/relational_data.hpp"

namespace tessera::app {

/// Throws where an option was given that is neither common nor one of these.
void allow_options(const Arguments& app, const std::vector<const char*>& allowed,
                   const std::string& where);

/// Of those that say how the data is read.
inline const std::vector<const char*> relational_reading{
    "--data", "--label", "--drop", "--duplicates", "--unknown-ids", "--symmetrise"};

/// Reads a folder of kinds of vertices, gives relations their inverses where that is asked for, and
/// adds what was noted while reading to the report.
RelationalData load_relational(Session& session, const DataOptions& options);

/// "shop: 3 kinds, 2 relations, 1,200 vertices, 3,400 edges".
std::string headline(const RelationalData& data);
/// Name and counts.
Json brief_json(const RelationalData& data);

/// What `info` says of such a folder, and of a model of one.
void describe_relational(Session& session, const DataOptions& options);
void describe_relational_model(Session& session, const std::string& path);

}  // namespace tessera::app
