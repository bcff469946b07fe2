// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <fmt/format.h>

#include "describe.hpp"
#include "distinct_edges.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "table.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/data/change_edges.hpp"
#include "tessera/reorder/nm.hpp"
#include "useless.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

struct PruneOptions {
  DataOptions data;
  OutputOptions output;
  std::string pattern = "1:2:4";
};

ExitCode prune(Session& session, const PruneOptions& options) {
  require_savable(options.output);
  const auto pattern = reorder::NmPattern::parse(options.pattern);
  LoadedData data = load(session, options.data);
  Dataset& dataset = data.dataset;
  require_distinct_edges(dataset);
  session.stage("pruning");
  const EdgeOffset edges_before = dataset.graph.num_edges();
  const reorder::NmViolations before = count_violations(dataset.graph, pattern);
  const Stopwatch watch;
  drop_edge_arrays(session, dataset);
  EdgeOffset dropped = 0;
  change_edges(dataset, [&](const Graph& graph) {
    reorder::NmPruned pruned = prune_nm(graph, pattern);
    dropped = pruned.dropped;
    return pruned.graph;
  });
  const double seconds = watch.seconds();
  save(session, options.output, dataset);

  const double share =
      edges_before == 0 ? 0 : static_cast<double>(dropped) / static_cast<double>(edges_before);
  Table table("lr");
  table.add({"violating segment vectors", grouped(before.vectors)});
  table.add({"violating meta-blocks", grouped(before.meta_blocks)});
  table.add({"edges dropped", fmt::format("{}, {}", grouped(dropped), human_share(share))});
  std::string report = headline(dataset) + "\n" + table.text();
  report += fmt::format(
      "  fits {} now, without {} of its edges; 'tessera reorder --method nm' drops none\n",
      to_string(pattern), human_share(share));
  Json json{{"verb", "prune"}, {"source", options.data.source}};
  json.update(brief_json(dataset));
  json["pattern"] = to_string(pattern);
  json["edges_before"] = edges_before;
  json["dropped"] = dropped;
  json["violating_vectors"] = before.vectors;
  json["violating_meta_blocks"] = before.meta_blocks;
  json["load_seconds"] = data.seconds;
  json["prune_seconds"] = seconds;
  if (!options.output.path.empty()) {
    report += fmt::format("  output written to {}\n", printable(options.output.path));
    json["output"] = options.output.path;
  }
  session.deliver(report, json);
  return ExitCode::ok;
}

Action setup(Arguments& app) {
  auto options = std::make_shared<PruneOptions>();
  add_data_options(app, options->data);
  add_nonfinite_option(app, options->data.nonfinite);
  app.add_option("--pattern", options->pattern, "pattern to fit: V:2:M such as 1:2:4 or 16:2:16")
      ->type_name("PATTERN")
      ->capture_default_str();
  add_dataset_output_options(app, options->output);
  return {[&app, options](Session& session) {
            reject_useless(app, {{"--graph-only", options->output.path.empty(), "without -o",
                                  "give -o FILE"}});
            return prune(session, *options);
          },
          [options] {
            return std::vector<FileUse>{source_file(options->data.source),
                                        {"-o", options->output.path, FileRole::output}};
          }};
}

}  // namespace

const Verb prune_verb{"prune",
                      "drop edges, smallest weights first, until a graph fits sparse tensor cores",
                      "[options] SOURCE [-o FILE]",
                      "tessera prune embedded:citation --pattern 1:2:4\n"
                      "tessera prune --data graph.npz --pattern 16:2:16 -o pruned.tsr",
                      setup};

}  // namespace tessera::app
