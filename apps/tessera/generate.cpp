// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <fmt/format.h>

#include "describe.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/data/embedded.hpp"
#include "useless.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

struct GenerateOptions {
  std::string what;
  bool list = false;
  OutputOptions output;
};

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

// The data source that `what` stands for: "rmat?scale=17" is short for "generate:rmat?scale=17".
std::string source_of(const GenerateOptions& options, const Session& session) {
  const std::string& what = options.what;
  const bool has_parameters = !starts_with(what, "twin:") && !starts_with(what, "embedded:");
  if (!has_parameters) {
    if (session.given_seed()) {
      throw Error(ErrorCode::invalid_argument,
                  "--seed does not apply: this graph is always the same", what, "leave --seed out");
    }
    return what;
  }
  const std::string source = starts_with(what, "generate:") ? what : "generate:" + what;
  return session.given_seed() ? with_seed(source, *session.given_seed()) : source;
}

struct Catalogue {
  const char* key;
  const char* title;
  const char* prefix;
  std::vector<CatalogueEntry> entries;
};

ExitCode list(Session& session) {
  constexpr std::size_t summary_column = 28;
  const std::vector<Catalogue> catalogues{
      {"generators", "Random graphs, KIND?PARAMETER=VALUE&...", "", generator_kinds()},
      {"twins", "Random graphs of known sizes", "twin:", twins()},
      {"embedded", "Data sets inside the program", "embedded:", embedded_datasets()},
  };
  std::string report;
  Json json{{"verb", "generate"}};
  for (const Catalogue& catalogue : catalogues) {
    report += fmt::format("{}{}\n", report.empty() ? "" : "\n", catalogue.title);
    Json entries = Json::array();
    for (const CatalogueEntry& entry : catalogue.entries) {
      report += fmt::format("  {:<{}}{}\n", catalogue.prefix + entry.name, summary_column - 2,
                            wrapped(entry.summary, summary_column));
      entries.push_back({{"name", catalogue.prefix + entry.name}, {"summary", entry.summary}});
    }
    json[catalogue.key] = entries;
  }
  session.deliver(report, json);
  return ExitCode::ok;
}

ExitCode generate(Session& session, const GenerateOptions& options) {
  if (options.what.empty()) {
    throw Error(ErrorCode::invalid_argument, "nothing to generate", "",
                "name a kind, for example 'rmat?scale=14', or see --list");
  }
  require_savable(options.output);
  DataOptions data_options;
  data_options.source = source_of(options, session);
  const LoadedData data = load(session, data_options);
  const Stopwatch watch;
  save(session, options.output, data.dataset);
  const double write_seconds = watch.seconds();

  Table table("ll");
  table.add({"generated in", human_seconds(data.seconds)});
  Json json{{"verb", "generate"}, {"source", data_options.source}};
  json.update(brief_json(data.dataset));
  json["generate_seconds"] = data.seconds;
  if (!options.output.path.empty()) {
    table.add(
        {"written", fmt::format("{} in {}", options.output.path, human_seconds(write_seconds))});
    json["output"] = options.output.path;
    json["write_seconds"] = write_seconds;
  }
  session.deliver(headline(data.dataset) + "\n" + table.text(), json);
  return ExitCode::ok;
}

Action setup(Arguments& app) {
  auto options = std::make_shared<GenerateOptions>();
  app.add_option("--what,WHAT", options->what,
                 "KIND?PARAMETERS of a random graph, twin:NAME or embedded:NAME; --what itself may "
                 "be left out")
      ->type_name("WHAT");
  app.add_flag("--list", options->list, "list kinds with their parameters, twins and data sets");
  add_dataset_output_options(app, options->output);
  const auto run = [&app, options](Session& session) {
    reject_useless(app,
                   {{"--what", options->list, "with --list", ""},
                    {"--output", options->list, "with --list", ""},
                    {"--graph-only", options->output.path.empty(), "without -o", "give -o FILE"}});
    return options->list ? list(session) : generate(session, *options);
  };
  return {run, [options] {
            return std::vector<FileUse>{{"-o", options->output.path, FileRole::output}};
          }};
}

}  // namespace

const Verb generate_verb{"generate", "make a random graph and write it to a file",
                         "[options] WHAT [-o FILE]",
                         "tessera generate 'rmat?scale=17&edges=2e6' -o rmat.tsr --seed 7\n"
                         "tessera generate twin:reddit -o reddit.tsr\n"
                         "tessera generate --list",
                         setup};

}  // namespace tessera::app
