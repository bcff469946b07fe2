// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include <fmt/format.h>

#include "options.hpp"
#include "tessera/core/error.hpp"

namespace tessera::app {
namespace {

char parse_separator(const std::string& text, const char* option) {
  if (text.empty()) return 0;
  if (text == "tab" || text == "\\t") return '\t';
  if (text == "blank" || text == "space") return ' ';
  if (text == "comma") return ',';
  if (text.size() == 1 && text[0] != '"' && text[0] != '\n') return text[0];
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no separator", text), option,
              "give one character, or tab, comma or blank");
}

/// Absent: it is found out.
std::optional<bool> parse_header(const std::string& text) {
  if (text == "auto") return {};
  return text == "yes";
}

TimeShares parse_time_shares(const std::vector<double>& shares) {
  if (shares.empty()) return {};
  if (shares.size() != 3) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} shares of time", shares.size()),
                "--time-shares", "give three, such as 0.6,0.2,0.2");
  }
  return {shares[0], shares[1], shares[2]};
}

io::IdKind parse_ids(const std::string& text) {
  if (text == "numbers") return io::IdKind::numbers;
  return text == "names" ? io::IdKind::names : io::IdKind::automatic;
}

}  // namespace

void add_table_options(Arguments& app, TableArguments& tables) {
  const std::string edges = "Edge lists (default: found out from the file)";
  app.add_option("--separator", tables.separator, "what parts columns: a character, tab or blank")
      ->type_name("CHAR")
      ->group(edges);
  app.add_option("--header", tables.header,
                 "whether the first line names the columns, also of --nodes: yes, no or auto")
      ->type_name("WHEN")
      ->check(one_of({"yes", "no", "auto"}))
      ->group(edges);
  app.add_option("--base", tables.base, "the number of the first vertex: 0 or 1")
      ->type_name("N")
      ->check(between(std::int64_t{0}, std::int64_t{1}))
      ->capture_default_str()
      ->group(edges);
  app.add_option("--ids", tables.ids,
                 "numbers of vertices, or names, which are numbered as they appear")
      ->type_name("KIND")
      ->check(one_of({"numbers", "names", "auto"}))
      ->group(edges);
  app.add_option("--source", tables.source, "column that edges come from: its name, or its number")
      ->type_name("COLUMN")
      ->group(edges);
  app.add_option("--target", tables.target, "column that edges lead to")
      ->type_name("COLUMN")
      ->group(edges);
  app.add_option("--weight", tables.weight, "column of the weights, or none")
      ->type_name("COLUMN")
      ->group(edges);
  app.add_option("--edge-features", tables.edge_features,
                 "columns that are features of the edges, as those of --nodes are of vertices")
      ->type_name("COLUMNS")
      ->delimiter(',')
      ->group(edges);
  app.add_option("--kinds", tables.kinds,
                 "the list has interactions of two kinds of vertices, such as user,item: their "
                 "columns, an edge each way, and names that say the kind, as user:7 and item:7")
      ->type_name("A,B")
      ->group(edges);
  const std::string nodes = "Table of the vertices of an edge list";
  app.add_option("--nodes", tables.nodes, "file with one line per vertex")
      ->type_name("FILE")
      ->group(nodes);
  app.add_option("--nodes-separator", tables.nodes_separator,
                 "what parts columns of this table (default: found out)")
      ->type_name("CHAR")
      ->group(nodes);
  app.add_option("--nodes-header", tables.nodes_header,
                 "the same as --header, for this table alone (default: as --header)")
      ->type_name("WHEN")
      ->check(one_of({"yes", "no", "auto"}))
      ->group(nodes);
  app.add_option("--id", tables.id, "column of the ids (default: the one called id)")
      ->type_name("COLUMN")
      ->group(nodes);
  app.add_option(
         "--label", tables.label,
         "column of the classes, or none (default: the one called label, class, target or y); of "
         "numbers to predict one column or several, between commas")
      ->type_name("COLUMN")
      ->group(nodes);
  app.add_option("--split-column", tables.split,
                 "column that says train, val or test, or none (default: the one called split)")
      ->type_name("COLUMN")
      ->group(nodes);
  app.add_option("--split-by-time", tables.time,
                 "column of numbers or dates: the earliest vertices are to train, the latest to "
                 "test")
      ->type_name("COLUMN")
      ->group(nodes);
  app.add_option("--time-shares", tables.time_shares,
                 "with --split-by-time: shares for training, validation and test (default "
                 "0.6,0.2,0.2)")
      ->type_name("A,B,C")
      ->delimiter(',')
      ->group(nodes);
  app.add_option("--features", tables.features, "columns that are features (default: all others)")
      ->type_name("COLUMNS")
      ->delimiter(',')
      ->group(nodes);
  app.add_option("--drop", tables.drop, "columns that are no features")
      ->type_name("COLUMNS")
      ->delimiter(',')
      ->group(nodes);
  app.add_option("--unknown-ids", tables.unknown_ids,
                 "what to do with an edge whose end is not in the table: reject or drop")
      ->type_name("HOW")
      ->check(one_of({"reject", "drop"}))
      ->capture_default_str()
      ->group(nodes);
}

void TableArguments::apply_to(io::ReadOptions& options) const {
  const bool for_nodes = !nodes_separator.empty() || !nodes_header.empty() || !id.empty() ||
                         !label.empty() || !split.empty() || !time.empty() || !features.empty() ||
                         !drop.empty() || unknown_ids != "reject";
  if (nodes.empty() && for_nodes) {
    throw Error(ErrorCode::invalid_argument, "options for a table of vertices, but no table",
                "--nodes", "name the table with --nodes FILE");
  }
  if (!time_shares.empty() && time.empty()) {
    throw Error(ErrorCode::invalid_argument, "shares of time, but no times", "--time-shares",
                "name the column of times with --split-by-time COLUMN");
  }
  options.edges.separator = parse_separator(separator, "--separator");
  options.edges.header = parse_header(header);
  options.nodes.separator = parse_separator(nodes_separator, "--nodes-separator");
  options.nodes.header = parse_header(nodes_header.empty() ? header : nodes_header);
  options.edges.base = base;
  options.edges.ids = parse_ids(ids);
  options.edges.source = source;
  options.edges.target = target;
  options.edges.weight = weight;
  options.edges.features = edge_features;
  options.edges.time = edge_time;
  options.edges.kinds = parse_kinds(kinds);
  options.nodes.path = nodes;
  options.nodes.id = id;
  options.nodes.label = label;
  options.nodes.numbers = numbers;
  options.nodes.split = split;
  options.nodes.features = features;
  options.nodes.drop = drop;
  options.nodes.time = time;
  options.nodes.time_shares = parse_time_shares(time_shares);
  options.nodes.unknown = unknown_ids == "drop" ? io::UnknownIds::drop : io::UnknownIds::reject;
}

}  // namespace tessera::app
