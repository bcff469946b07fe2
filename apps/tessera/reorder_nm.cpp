// SPDX-License-Identifier: Apache-2.0
#include "reorder_nm.hpp"

#include <fmt/format.h>

#include "numbers.hpp"
#include "options.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "useless.hpp"

namespace tessera::app {
namespace {

using reorder::NmOrder;

bool is_search(const NmCommand& command) { return command.pattern == "best"; }

Json to_json(const reorder::NmViolations& violations) {
  return {{"vectors", violations.vectors}, {"meta_blocks", violations.meta_blocks}};
}

Json to_json(const NmOrder& order) {
  Json json{{"pattern", to_string(order.pattern)},
            {"algorithm", to_string(order.algorithm)},
            {"conforms", order.after.conforms()},
            {"before", to_json(order.before)},
            {"after", to_json(order.after)},
            {"improvement", order.improvement()},
            {"iterations", order.iterations},
            {"padding", order.padding},
            {"stopped", order.stopped},
            {"order_seconds", order.seconds}};
  if (!order.obstacle.empty()) json["obstacle"] = order.obstacle;
  return json;
}

/// What a product has to do in the order.
Json work_json(const NmOrder& order, const Graph& graph) {
  const Graph pattern = graph.with_scales({}, {}).with_values({});
  const reorder::NmWork work =
      nm_work(permuted(reorder::padded(pattern, order.padding), order.order), order.pattern);
  return {{"gathered_rows", work.gathered_rows}, {"quads", work.quads}};
}

std::string verdict(const NmOrder& order) {
  if (order.after.conforms()) return "conforms";
  if (!order.obstacle.empty()) return "impossible";
  return order.stopped ? "stopped" : "does not conform";
}

std::string patterns_tried(const std::vector<NmOrder>& tried) {
  Table table("lrrr");
  table.add({"pattern", "violating meta-blocks", "", "time"});
  for (const NmOrder& order : tried) {
    table.add({to_string(order.pattern), grouped(order.after.meta_blocks), verdict(order),
               human_seconds(order.seconds)});
  }
  return table.text();
}

}  // namespace

void add_nm_options(Arguments& app, NmCommand& command) {
  constexpr const char* group = "Options of --method nm";
  app.add_option("--pattern", command.pattern,
                 "pattern to fit: V:2:M such as 1:2:4 or 16:2:16, or best, which searches")
      ->type_name("PATTERN")
      ->check(offers({"best", "1:2:4", "1:2:8", "16:2:16"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--algorithm", command.algorithm,
                 "group (columns in groups, entries spread) or paper (SOGRE's two stages)")
      ->type_name("NAME")
      ->check(one_of({"group", "paper"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--search", command.search,
                 "how --pattern best searches: paper (double M, then V), hardest (largest "
                 "meta-blocks first) or time (least predicted time of a product)")
      ->type_name("NAME")
      ->check(one_of({"paper", "hardest", "time"}))
      ->capture_default_str()
      ->group(group);
  app.add_flag("--ignore-loops", command.ignore_loops, "leave self loops out of the pattern")
      ->group(group);
  app.add_flag("--pad", command.pad, "add empty vertices where that makes the pattern possible")
      ->group(group);
  app.add_option("--effort", command.effort, "factor on the steps that a search may take")
      ->type_name("FACTOR")
      ->check(between(0.001, 1e6))
      ->capture_default_str()
      ->group(group);
  app.add_option("--time-limit", command.time_limit,
                 "take the best order found after this time; 0 is no limit")
      ->type_name("SECONDS")
      ->check(between(0.0, 1e9))
      ->capture_default_str()
      ->group(group);
}

void reject_useless_nm_options(const Arguments& app, const NmCommand& command, bool is_nm,
                               bool writes_data) {
  std::vector<Useless> options;
  for (const char* name : {"--pattern", "--algorithm", "--search", "--ignore-loops", "--pad",
                           "--effort", "--time-limit"}) {
    options.push_back({name, !is_nm, "without --method nm", "use --method nm"});
  }
  options.push_back(
      {"--search", !is_search(command), "without --pattern best", "use --pattern best"});
  reject_useless(app, options);
  if (command.pad && writes_data) {
    throw Error(ErrorCode::invalid_argument,
                "--pad adds vertices, which have no features or labels", "",
                "add --graph-only, or leave --pad out");
  }
}

void check_nm_command(const NmCommand& command) {
  if (!is_search(command)) reorder::NmPattern::parse(command.pattern);
}

reorder::NmSearchResult find_nm_order(Session& session, const NmCommand& command,
                                      const Graph& graph) {
  reorder::NmOptions options;
  options.algorithm = reorder::parse_nm_algorithm(command.algorithm);
  options.seed = session.seed();
  options.ignore_loops = command.ignore_loops;
  options.pad = command.pad;
  options.effort = command.effort;
  options.time_limit_seconds = command.time_limit;
  options.progress = session.progress();
  // Ctrl-C ends the search, not the work: the best order so far is what it was for.
  bool stopped = false;
  options.stop = [&options, &session, &stopped] {
    if (stopped) return true;
    try {
      report(options.progress, "fitting");
      return false;
    } catch (const Interrupted&) {
      session.results_are_complete();
      stopped = true;
      return true;
    }
  };
  if (is_search(command)) {
    return search_nm(graph, reorder::parse_nm_search(command.search), options);
  }
  return {order_nm(graph, reorder::NmPattern::parse(command.pattern), options), {}};
}

std::string nm_report(const reorder::NmSearchResult& found) {
  const NmOrder& best = found.best;
  std::string text = found.tried.empty() ? "" : patterns_tried(found.tried);
  Table table("lrr");
  table.add({to_string(best.pattern), "before", "after"});
  table.add(
      {"violating segment vectors", grouped(best.before.vectors), grouped(best.after.vectors)});
  table.add(
      {"violating meta-blocks", grouped(best.before.meta_blocks), grouped(best.after.meta_blocks)});
  text += table.text();
  text += fmt::format("  {} {}: {} of the violating vectors gone, {} {}\n", to_string(best.pattern),
                      verdict(best), human_share(best.improvement()), grouped(best.iterations),
                      best.algorithm == reorder::NmAlgorithm::paper ? "passes" : "swaps");
  if (!best.obstacle.empty()) text += "  impossible: " + best.obstacle + "\n";
  if (best.padding > 0) text += fmt::format("  {} empty vertices added\n", grouped(best.padding));
  return text;
}

Json nm_json(const reorder::NmSearchResult& found, const Graph& graph) {
  Json json = to_json(found.best);
  json["work"] = work_json(found.best, graph);
  if (found.tried.empty()) return json;
  json["tried"] = Json::array();
  for (const NmOrder& order : found.tried) json["tried"].push_back(to_json(order));
  return json;
}

}  // namespace tessera::app
