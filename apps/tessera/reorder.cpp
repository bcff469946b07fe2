// SPDX-License-Identifier: Apache-2.0
#include "distinct_edges.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/reorder/orders.hpp"

#include <memory>
#include <optional>

#include <fmt/format.h>

#include "describe.hpp"
#include "locality.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "output.hpp"
#include "picture/graph_picture.hpp"
#include "reorder_nm.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/io/index_file.hpp"
#include "tessera/reorder/layout.hpp"
#include "useless.hpp"
#include "verb.hpp"
#include "window_report.hpp"

namespace tessera::app {
namespace {

struct ReorderOptions {
  DataOptions data;
  OutputOptions output;
  std::string method = "rcm";
  std::string permutation_path;
  std::string picture;
  bool report = false;
  int vertex_window = reorder::LoaOptions::default_vertex_window;
  NmCommand nm;

  bool fills_windows() const { return method == "loa" || method == "layout"; }
  bool is_nm() const { return method == nm_method; }
  static constexpr const char* nm_method = "nm";
};

/// An order, and what else there is to say about it.
struct Ordering {
  Permutation order;
  std::int64_t padding = 0;
  std::string report;
  Json json;
};

void write_permutation(const Permutation& order, const std::string& path) {
  if (path.empty()) return;
  const std::vector<std::int64_t> numbers(order.new_to_old().begin(), order.new_to_old().end());
  io::write_index_file(path, numbers);
}

Json to_json(const Locality& locality) {
  return {{"bandwidth", locality.bandwidth},
          {"mean_gap", locality.mean_gap},
          {"window_reuse", locality.window_reuse}};
}

std::string compared(const Locality& before, const Locality& after) {
  Table table("lrr");
  table.add({"", "before", "after"});
  table.add({"bandwidth", grouped(before.bandwidth), grouped(after.bandwidth)});
  table.add(
      {"mean distance of neighbours", human_real(before.mean_gap), human_real(after.mean_gap)});
  table.add({fmt::format("reuse in {}-row windows", reorder::row_window),
             human_real(before.window_reuse), human_real(after.window_reuse)});
  return table.text();
}

Ordering find_order(Session& session, const ReorderOptions& options, const Graph& graph) {
  if (options.fills_windows()) {
    const reorder::LoaOptions loa{options.vertex_window, session.progress()};
    if (options.method == "loa") return {reorder::loa(graph, loa), 0, "", {}};
    const reorder::Layout layout = reorder::best_layout(graph, loa);
    return {layout.order, 0, fmt::format("  densest order: {}\n", layout.method), layout.method};
  }
  if (!options.is_nm()) {
    return {reorder::compute(options.method, graph, session.seed(), session.progress()), 0, "", {}};
  }
  const reorder::NmSearchResult found = find_nm_order(session, options.nm, graph);
  return {found.best.order, found.best.padding, nm_report(found),
          session.wants_json() ? nm_json(found, graph) : Json{}};
}

/// With padding only the graph is left: nothing is known of the vertices that were added.
Dataset renumbered(const Dataset& dataset, const Ordering& ordering) {
  if (ordering.padding == 0) return permuted(dataset, ordering.order);
  Dataset graph_only;
  graph_only.name = dataset.name;
  graph_only.graph = permuted(reorder::padded(dataset.graph, ordering.padding), ordering.order);
  return graph_only;
}

picture::Side drawn(const char* title, const Graph& graph, const Locality& locality,
                    const std::optional<WindowReport>& windows) {
  picture::Side side{title,
                     picture::density_of(graph),
                     {fmt::format("bandwidth {}, mean distance of neighbours {}",
                                  grouped(locality.bandwidth), human_real(locality.mean_gap)),
                      fmt::format("reuse in windows of {} rows: {}", reorder::row_window,
                                  human_real(locality.window_reuse))}};
  if (!windows) return side;
  for (const std::string& note : notes(*windows)) side.notes.push_back(note);
  side.on_tensor_cores = windows->cores.on_tensor_cores;
  return side;
}

ExitCode run_reorder(Session& session, const ReorderOptions& options) {
  require_savable(options.output);
  if (options.is_nm()) check_nm_command(options.nm);
  picture::require_picture_ending(options.picture, "--picture");
  LoadedData data = load(session, options.data);
  if (options.is_nm()) require_distinct_edges(data.dataset);
  drop_edge_arrays(session, data.dataset);
  const Dataset& dataset = data.dataset;
  session.stage("ordering");
  const Stopwatch watch;
  const Ordering ordering = find_order(session, options, dataset.graph);
  const double seconds = watch.seconds();
  session.stage("renumbering");
  const Dataset reordered = renumbered(dataset, ordering);
  session.stage("comparing");
  const Locality before = measure_locality(dataset.graph);
  const Locality after = measure_locality(reordered.graph);
  std::optional<WindowReport> windows_before, windows_after;
  if (options.report) {
    windows_before.emplace(dataset.graph);
    windows_after.emplace(reordered.graph);
  }
  save(session, options.output, reordered);
  write_permutation(ordering.order, options.permutation_path);
  if (!options.picture.empty()) {
    session.stage("drawing");
    picture::write(
        picture::compared_picture(fmt::format("{}, order by {}", headline(dataset), options.method),
                                  drawn("before", dataset.graph, before, windows_before),
                                  drawn("after", reordered.graph, after, windows_after)),
        options.picture);
  }

  std::string report = headline(dataset) + "\n" + compared(before, after) + ordering.report;
  if (options.report) report += compared(*windows_before, *windows_after);
  report += fmt::format("  {} order found in {}\n", options.method, human_seconds(seconds));
  Json json{{"verb", "reorder"}, {"source", options.data.source}};
  json.update(brief_json(dataset));
  json["method"] = options.method;
  json["before"] = to_json(before);
  json["after"] = to_json(after);
  if (options.report) {
    json["before"]["windows"] = to_json(*windows_before);
    json["after"]["windows"] = to_json(*windows_after);
  }
  if (options.is_nm()) json["nm"] = ordering.json;
  if (options.method == "layout") json["layout"] = ordering.json;
  json["load_seconds"] = data.seconds;
  json["order_seconds"] = seconds;
  for (const auto& [key, path] : {std::pair{"output", options.output.path},
                                  std::pair{"permutation", options.permutation_path},
                                  std::pair{"picture", options.picture}}) {
    if (path.empty()) continue;
    report += fmt::format("  {} written to {}\n", key, printable(path));
    json[key] = path;
  }
  session.deliver(report, json);
  return ExitCode::ok;
}

Action setup(Arguments& app) {
  auto options = std::make_shared<ReorderOptions>();
  std::vector<std::string> names;
  std::string summaries;
  for (const CatalogueEntry& method : reorder::methods()) {
    names.push_back(method.name);
    summaries += fmt::format("{}{}", summaries.empty() ? "" : ", ", method.name);
  }
  names.push_back(ReorderOptions::nm_method);
  summaries += fmt::format(", {} (fits sparse tensor cores)", ReorderOptions::nm_method);
  add_data_options(app, options->data);
  add_nonfinite_option(app, options->data.nonfinite);
  app.add_option("-m,--method", options->method, "order to compute: " + summaries)
      ->type_name("NAME")
      ->check(one_of(names))
      ->capture_default_str();
  app.add_option("--permutation", options->permutation_path,
                 "file for the new order: line i holds the old number of new vertex i")
      ->type_name("FILE");
  app.add_option("--picture", options->picture,
                 "picture of the adjacency matrix before and after, .svg or .png")
      ->type_name("FILE");
  app.add_flag("--report", options->report,
               "also show which cores of a GPU suit the windows before and after, and what they "
               "share; a picture shows them, too");
  add_dataset_output_options(app, options->output);
  app.add_option("--vertex-window", options->vertex_window,
                 "of --method loa and layout: vertices that compete for a place in a row window")
      ->type_name("N")
      ->check(between(std::int64_t{16}, std::int64_t{1} << 20))
      ->capture_default_str();
  add_nm_options(app, options->nm);
  return {[&app, options](Session& session) {
            reject_useless(
                app, {{"--graph-only", options->output.path.empty(), "without -o", "give -o FILE"},
                      {"--vertex-window", !options->fills_windows(),
                       fmt::format("for --method {}", options->method), "use --method loa"}});
            reject_useless_nm_options(app, options->nm, options->is_nm(),
                                      !options->output.path.empty() && !options->output.graph_only);
            return run_reorder(session, *options);
          },
          [options] {
            return std::vector<FileUse>{
                source_file(options->data.source),
                {"-o", options->output.path, FileRole::output},
                {"--permutation", options->permutation_path, FileRole::output},
                {"--picture", options->picture, FileRole::picture}};
          }};
}

}  // namespace

const Verb reorder_verb{
    "reorder", "renumber vertices so that neighbours lie near each other",
    "[options] SOURCE [-o FILE]",
    "tessera reorder embedded:citation\n"
    "tessera reorder --data graph.npz --method rcm -o ordered.tsr --picture order.svg\n"
    "tessera reorder --data graph.npz --method layout -o ordered.tsr\n"
    "tessera reorder --data graph.npz --method degree --permutation order.txt\n"
    "tessera reorder --data graph.npz --method nm --pattern 16:2:16",
    setup};

}  // namespace tessera::app
