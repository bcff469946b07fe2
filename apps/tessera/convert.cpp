// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "describe.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

struct ConvertOptions {
  DataOptions data;
  OutputOptions output;
};

ExitCode convert(Session& session, ConvertOptions options) {
  if (options.output.path.empty()) {
    throw Error(ErrorCode::invalid_argument, "no output named", "", "give -o FILE");
  }
  require_savable(options.output);
  options.data.steps.graph_alone = options.output.graph_only;
  const LoadedData data = load(session, options.data);
  const Dataset& dataset = data.dataset;
  const Stopwatch watch;
  save(session, options.output, dataset);
  const double write_seconds = watch.seconds();
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(options.output.path));

  Table table("ll");
  table.add({"read in", human_seconds(data.seconds)});
  table.add({"written to", fmt::format("{}, {} in {}", options.output.path, human_bytes(bytes),
                                       human_seconds(write_seconds))});
  Json json{{"verb", "convert"}, {"source", options.data.source}};
  json.update(brief_json(dataset));
  json["edges_before"] = data.edges_read;
  json["steps"] = data.steps;
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
  add_reading_options(app, options->data);
  add_nonfinite_option(app, options->data.nonfinite);
  add_dataset_output_options(app, options->output);
  return {[options](Session& session) { return convert(session, *options); },
          [options] {
            return with_data_files(options->data, {{"-o", options->output.path, FileRole::output}});
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
