// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "describe.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/graph/transform.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

struct ConvertOptions {
  DataOptions data;
  OutputOptions output;
  bool transpose = false;
  bool symmetrise = false;
  std::string self_loops = "keep";
};

// In the order of the help text, so that the result does not depend on the order of the options.
std::vector<std::string> apply_steps(Session& session, const ConvertOptions& options,
                                     Dataset& dataset) {
  std::vector<std::string> done;
  const auto step = [&](const char* name, auto&& change) {
    session.stage(name);
    drop_edge_arrays(session, dataset);
    dataset.graph = change(dataset.graph);
    done.emplace_back(name);
  };
  if (options.transpose) step("transposed", [](const Graph& g) { return transposed(g); });
  if (options.symmetrise) step("symmetrised", [](const Graph& g) { return symmetrised(g); });
  if (options.self_loops == "add") {
    step("self loops added", [](const Graph& g) { return with_self_loops(g); });
  } else if (options.self_loops == "remove") {
    step("self loops removed", [](const Graph& g) { return without_self_loops(g); });
  }
  return done;
}

void require_data_still_fits(const ConvertOptions& options, const Dataset& dataset) {
  const bool has_data = dataset.num_features() > 0 || dataset.num_classes() > 0 ||
                        !dataset.graph_ids.empty() || !dataset.train.empty();
  if (options.transpose && !dataset.graph.is_square() && has_data && !options.output.graph_only) {
    throw Error(ErrorCode::invalid_argument,
                "features and labels belong to the rows, which transposing makes columns",
                options.data.source, "give --graph-only to leave them out");
  }
}

ExitCode convert(Session& session, const ConvertOptions& options) {
  if (options.output.path.empty()) {
    throw Error(ErrorCode::invalid_argument, "no output named", "", "give -o FILE");
  }
  require_savable(options.output);
  LoadedData data = load(session, options.data);
  Dataset& dataset = data.dataset;
  const EdgeOffset edges_before = dataset.graph.num_edges();
  require_data_still_fits(options, dataset);
  const std::vector<std::string> steps = apply_steps(session, options, dataset);
  const Stopwatch watch;
  save(session, options.output, dataset);
  const double write_seconds = watch.seconds();
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(options.output.path));

  Table table("ll");
  for (const std::string& step : steps) table.add({step});
  table.add({"read in", human_seconds(data.seconds)});
  table.add({"written", fmt::format("{}, {} in {}", options.output.path, human_bytes(bytes),
                                    human_seconds(write_seconds))});
  Json json{{"verb", "convert"}, {"source", options.data.source}};
  json.update(brief_json(dataset));
  json["edges_before"] = edges_before;
  json["steps"] = steps;
  json["output"] = options.output.path;
  json["output_bytes"] = bytes;
  json["load_seconds"] = data.seconds;
  json["write_seconds"] = write_seconds;
  session.deliver(headline(dataset) + "\n" + table.text(), json);
  return ExitCode::ok;
}

Action setup(Arguments& app) {
  auto options = std::make_shared<ConvertOptions>();
  add_data_options(app, options->data);
  add_table_options(app, options->data.tables);
  add_nonfinite_option(app, options->data.nonfinite);
  app.add_flag("--transpose", options->transpose, "first, reverse every edge");
  app.add_flag("--symmetrise", options->symmetrise,
               "then keep each edge in both directions once, without weights");
  app.add_option("--self-loops", options->self_loops, "then add, remove or keep self loops")
      ->type_name("HOW")
      ->check(one_of({"add", "remove", "keep"}))
      ->capture_default_str();
  add_dataset_output_options(app, options->output);
  return {[options](Session& session) { return convert(session, *options); },
          [options] {
            return std::vector<FileUse>{source_file(options->data.source),
                                        {"--nodes", options->data.tables.nodes, FileRole::input},
                                        {"-o", options->output.path, FileRole::output}};
          }};
}

}  // namespace

const Verb convert_verb{"convert", "write a data set in another format", "[options] SOURCE -o FILE",
                        "tessera convert --data graph.npz -o graph.tsr\n"
                        "tessera convert edges.csv --nodes nodes.csv --symmetrise -o graph.tsr\n"
                        "tessera convert --data matrix.mtx.gz -o graph.npz --symmetrise\n"
                        "tessera convert --data graph.npz -o graph.mtx.gz --graph-only",
                        setup};

}  // namespace tessera::app
