// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/partition.hpp"

#include <limits>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "describe.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "output.hpp"
#include "partition_file.hpp"
#include "partition_report.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/io/index_file.hpp"
#include "useless.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

struct PartitionArguments {
  DataOptions data;
  std::int32_t parts = 0;
  std::string method = "auto";
  double imbalance = 0.05;
  std::string existing;
  std::string output;
  bool report = false;
  ClusterModel model;
};

void require_sense(const PartitionArguments& arguments) {
  if (arguments.parts == 0 && arguments.existing.empty()) {
    throw Error(ErrorCode::invalid_argument, "no number of parts given", "",
                "give --parts K, or --partition FILE to report on one made elsewhere");
  }
}

Partition make_partition(Session& session, const PartitionArguments& arguments,
                         const Graph& graph) {
  if (!arguments.existing.empty()) {
    return read_partition_file(arguments.existing, graph.num_rows(), arguments.parts);
  }
  PartitionOptions options;
  options.parts = arguments.parts;
  options.method = arguments.method;
  options.imbalance = arguments.imbalance;
  options.seed = session.seed();
  options.progress = session.progress();
  return partition(graph, options);
}

std::string method_note(const PartitionArguments& arguments, const Partition& result) {
  if (!arguments.existing.empty()) return "read from " + arguments.existing;
  return result.method;
}

std::string to_text(const PartitionArguments& arguments, const Dataset& dataset,
                    const Partition& result, const PartitionQuality& quality, double seconds,
                    const std::optional<PartitionReport>& report) {
  Table table("ll");
  table.add({"method", method_note(arguments, result)});
  table.add({"parts", fmt::format("{}, from {} to {} vertices", grouped(result.parts),
                                  grouped(quality.smallest), grouped(quality.largest))});
  table.add({"largest part", fmt::format("{} above the mean", human_share(quality.imbalance))});
  table.add({"edges cut",
             fmt::format("{} ({})", grouped(quality.cut_edges), human_share(quality.cut_share))});
  table.add({"took", human_seconds(seconds)});
  if (!arguments.output.empty()) table.add({"written", arguments.output});
  return headline(dataset) + "\n" + table.text() + (report ? to_text(*report) : "");
}

Json to_json(const PartitionArguments& arguments, const Dataset& dataset, const Partition& result,
             const PartitionQuality& quality, double seconds,
             const std::optional<PartitionReport>& report) {
  Json json{{"verb", "partition"}, {"source", arguments.data.source}};
  json.update(brief_json(dataset));
  json["method_requested"] = arguments.existing.empty() ? arguments.method : "file";
  json["method"] = result.method;
  json["parts"] = result.parts;
  json["cut_edges"] = quality.cut_edges;
  json["cut_share"] = quality.cut_share;
  json["smallest"] = quality.smallest;
  json["largest"] = quality.largest;
  json["imbalance"] = quality.imbalance;
  json["partition_seconds"] = seconds;
  if (report) json["report"] = to_json(*report);
  if (!arguments.output.empty()) json["output"] = arguments.output;
  return json;
}

ExitCode run_partition(Session& session, const PartitionArguments& arguments) {
  require_sense(arguments);
  const LoadedData data = load(session, arguments.data);
  session.stage("partitioning");
  const Stopwatch watch;
  const Partition result = make_partition(session, arguments, data.dataset.graph);
  const double seconds = watch.seconds();
  session.stage("assessing");
  const PartitionQuality quality = assess(data.dataset.graph, result);
  std::optional<PartitionReport> report;
  if (arguments.report) report = report_on(data.dataset.graph, result, arguments.model);
  if (!arguments.output.empty()) {
    session.stage("writing");
    const std::vector<std::int64_t> numbers(result.assignment.begin(), result.assignment.end());
    io::write_index_file(arguments.output, numbers);
  }
  session.deliver(to_text(arguments, data.dataset, result, quality, seconds, report),
                  to_json(arguments, data.dataset, result, quality, seconds, report));
  return ExitCode::ok;
}

void add_report_options(Arguments& app, PartitionArguments& arguments) {
  ClusterModel& model = arguments.model;
  app.add_flag("--report", arguments.report,
               "say what training takes with each part on a GPU of its own: bytes, memory, time");
  app.add_option("--width", model.width, "for --report: features of every layer")
      ->type_name("N")
      ->check(between(std::int64_t{1}, std::int64_t{16384}))
      ->capture_default_str();
  app.add_option("--layers", model.layers, "for --report: layers of the model")
      ->type_name("N")
      ->check(between(std::int64_t{1}, std::int64_t{256}))
      ->capture_default_str();
  app.add_option("--link", model.link, "for --report: GB/s that a GPU sends to others")
      ->type_name("GB/S")
      ->check(between(1e-6, 1e9))
      ->capture_default_str();
  app.add_option("--memory-bandwidth", model.memory,
                 "for --report: GB/s that a GPU reads and writes")
      ->type_name("GB/S")
      ->check(between(1e-6, 1e9))
      ->capture_default_str();
  app.add_option("--tflops", model.operations, "for --report: TFLOP/s of dense products")
      ->type_name("N")
      ->check(between(1e-6, 1e9))
      ->capture_default_str();
}

Action setup(Arguments& app) {
  auto arguments = std::make_shared<PartitionArguments>();
  add_data_options(app, arguments->data);
  add_nonfinite_option(app, arguments->data.nonfinite);
  app.add_option("-k,--parts", arguments->parts, "number of parts")
      ->type_name("K")
      ->check(between(std::int64_t{1}, std::int64_t{std::numeric_limits<std::int32_t>::max()}));
  app.add_option("-m,--method", arguments->method,
                 "multilevel (built in), metis (where this build has it), contiguous (ranges of "
                 "numbers) or auto (multilevel)")
      ->type_name("NAME")
      ->check(one_of({"auto", "multilevel", "metis", "contiguous"}))
      ->capture_default_str();
  app.add_option("--imbalance", arguments->imbalance,
                 "how much larger than the mean a part may be, as a share: 0.05 is 5 %")
      ->type_name("SHARE")
      ->check(between(0.0, 1e6))
      ->capture_default_str();
  app.add_option(
         "--partition", arguments->existing,
         "report on this partition instead of making one: line i holds the part of vertex i")
      ->type_name("FILE");
  app.add_option("-o,--output", arguments->output, "file for the parts, one line per vertex")
      ->type_name("FILE");
  add_report_options(app, *arguments);
  return {[&app, arguments](Session& session) {
            const bool given = !arguments->existing.empty();
            const bool plain = !arguments->report;
            reject_useless(app, {{"--width", plain, "without --report", ""},
                                 {"--layers", plain, "without --report", ""},
                                 {"--link", plain, "without --report", ""},
                                 {"--memory-bandwidth", plain, "without --report", ""},
                                 {"--tflops", plain, "without --report", ""},
                                 {"--method", given, "with --partition", ""},
                                 {"--imbalance", given, "with --partition", ""},
                                 {"--imbalance", arguments->method == "contiguous",
                                  "for contiguous parts", "use --method multilevel"}});
            return run_partition(session, *arguments);
          },
          [arguments] {
            return std::vector<FileUse>{source_file(arguments->data.source),
                                        {"--partition", arguments->existing, FileRole::input},
                                        {"-o", arguments->output, FileRole::output}};
          }};
}

}  // namespace

const Verb partition_verb{"partition", "split the vertices into balanced parts with few edges cut",
                          "[options] SOURCE --parts K [-o FILE]",
                          "tessera partition embedded:citation --parts 4\n"
                          "tessera partition --data graph.npz --parts 16 -o parts.txt\n"
                          "tessera partition --data graph.npz --partition parts.txt\n"
                          "tessera partition embedded:citation --parts 4 --report --width 64",
                          setup};

}  // namespace tessera::app
