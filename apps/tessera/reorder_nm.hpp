// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "arguments.hpp"
#include "output.hpp"
#include "session.hpp"
#include "tessera/reorder/nm.hpp"

namespace tessera::app {

/// What `--method nm` takes besides.
struct NmCommand {
  std::string pattern = "1:2:4";
  std::string algorithm = "group";
  std::string search = "hardest";
  bool ignore_loops = false;
  bool pad = false;
  double effort = 1;
  double time_limit = 0;
};

void add_nm_options(Arguments& app, NmCommand& command);

/// Throws `invalid_argument` for options that say nothing without `--method nm`, or nothing with
/// the pattern that was given.
void reject_useless_nm_options(const Arguments& app, const NmCommand& command, bool is_nm,
                               bool writes_data);

/// Throws where a pattern cannot be read, before any work is done.
void check_nm_command(const NmCommand& command);

reorder::NmSearchResult find_nm_order(Session& session, const NmCommand& command,
                                      const Graph& graph);

std::string nm_report(const reorder::NmSearchResult& found);
/// Renumbers the graph once more, to count the work of a product.
Json nm_json(const reorder::NmSearchResult& found, const Graph& graph);

}  // namespace tessera::app
