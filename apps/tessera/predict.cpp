// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/predict.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "describe.hpp"
#include "judge.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "partition_file.hpp"
#include "predict_files.hpp"
#include "predict_links.hpp"
#include "predict_numbers.hpp"
#include "predict_relational.hpp"
#include "predict_triples.hpp"
#include "start_device.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/graph/partition.hpp"
#include "tessera/train/bit_batches.hpp"
#include "tessera/train/relational.hpp"
#include "tessera/train/triples.hpp"
#include "tessera/train/true_classes.hpp"
#include "train_options.hpp"
#include "useless.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

struct PredictArguments {
  DataOptions data;
  std::string checkpoint;
  PredictFiles files;
  PredictLinks links;
  std::string bits;
  bool rounded = false;
  bool calibrate = false;
  std::string ranges;
  std::string quantised;
  std::int32_t parts = 0;
  std::int64_t parts_per_batch = 20;
  std::int64_t rows_at_a_time = 0;
  std::string partition_file;
  std::string method = "auto";
  std::string device = "cpu", precision = "fp32";
  PlanningOptions planning;
};

void require_sense(const PredictArguments& arguments) {
  checked_device(arguments.device);
  if (arguments.checkpoint.empty()) {
    throw Error(ErrorCode::invalid_argument, "no checkpoint named", "",
                "give --checkpoint FILE, written by 'tessera train'");
  }
  require_sense(arguments.files);
}

/// What a model of few bits saves and costs.
struct Quantised {
  std::vector<std::int64_t> bits;
  std::int64_t bytes = 0;
  std::int64_t full_bytes = 0;
  std::optional<double> loss = {};  ///< of the metric, against all bits
};

/// Predicts once more with the bits that rounding left out, of a graph in parts over the same edges
/// and on the CPU: it need not fit on the device. A model that was trained for its bits has no
/// other to be compared with, but may say what it lost.
Quantised compare_bits(const train::Checkpoint& checkpoint, const Dataset& dataset,
                       train::PredictOptions options, const std::vector<std::int64_t>& bits,
                       const train::Prediction& prediction) {
  Quantised quantised{bits, train::weight_bytes(checkpoint, bits),
                      train::weight_bytes(checkpoint, {})};
  const auto quality = assess(dataset, checkpoint, prediction);
  if (!checkpoint.model.bits.empty()) {
    if (bits == checkpoint.model.bits) quantised.loss = checkpoint.lost;
    return quantised;
  }
  if (!quality) return quantised;
  Dataset same_edges = dataset;
  if (options.partition != nullptr) {
    same_edges.graph = train::within_parts(dataset.graph, *options.partition);
    same_edges.edge_features = {};
    options.partition = nullptr;
    options.placement = {};
  }
  options.bits.clear();
  options.embeddings = false;
  const train::Prediction unrounded = train::predict(checkpoint, same_edges, options);
  if (const auto full = assess(dataset, checkpoint, unrounded)) {
    quantised.loss = full->metric - quality->metric;
  }
  return quantised;
}

/// The kernels of a model's products, in their order.
std::vector<std::string> kernels_of(const train::Prediction& prediction) {
  std::vector<std::string> kernels;
  for (const ops::Explanation& product : prediction.computed.children) {
    for (const ops::Candidate& candidate : product.candidates) {
      if (candidate.verdict.starts_with("chosen")) kernels.push_back(candidate.kernel);
    }
  }
  return kernels;
}

std::map<std::int64_t, std::int64_t> class_counts(const train::Prediction& prediction) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const std::int64_t label : prediction.classes) ++counts[label];
  return counts;
}

/// The name of a class where it has one, or else its number.
std::string shown_class(const train::Prediction& prediction, std::int64_t label) {
  return printable(train::class_name(prediction, label));
}

const char* metric_name(const train::Prediction& prediction) {
  return prediction.multi_label ? "micro_f1" : "accuracy";
}

std::string to_text(const PredictArguments& arguments, const Dataset& dataset,
                    const train::Checkpoint& checkpoint, const train::Prediction& prediction,
                    const std::optional<Quantised>& quantised, std::int64_t peak_bytes) {
  Table table("ll");
  table.add({"model", nn::describe(checkpoint.model)});
  const train::BestEpoch best = train::best_epoch(checkpoint);
  table.add({"weights", fmt::format("of run {}, epoch {}", best.run + 1, best.epoch)});
  table.add({prediction.graph_task ? "graphs" : "vertices", grouped(prediction.logits.rows())});
  std::string counts;
  for (const auto& [label, count] : class_counts(prediction)) {
    counts += fmt::format("{}{}: {}", counts.empty() ? "" : ", ", shown_class(prediction, label),
                          grouped(count));
  }
  if (!counts.empty()) table.add({"classes", counts});
  if (prediction.numbers) {
    add_numbers(prediction, items_to_judge(dataset, checkpoint, prediction), table);
  }
  if (const auto quality = assess(dataset, checkpoint, prediction)) {
    table.add({metric_name(prediction), fmt::format("{:.2f} % of {} ({})", quality->metric * 100,
                                                    quality->items, grouped(quality->count))});
  }
  if (quantised) {
    table.add({"bits", nn::bits_text(quantised->bits)});
    table.add({"weights in bits", fmt::format("{} bytes instead of {}", grouped(quantised->bytes),
                                              grouped(quantised->full_bytes))});
    if (prediction.memory) {
      const train::CodeMemory& memory = *prediction.memory;
      table.add({"features in bits", fmt::format("{} bytes instead of {}", grouped(memory.features),
                                                 grouped(memory.full_features))});
      table.add(
          {"activations in bits", fmt::format("{} bytes instead of {}", grouped(memory.activations),
                                              grouped(memory.full_activations))});
    }
    if (prediction.batches > 0) {
      const std::string copied =
          prediction.bytes_copied > 0
              ? fmt::format(", {} copied to the device", human_bytes(prediction.bytes_copied))
              : "";
      table.add({"batches", fmt::format("{} of {} parts, without the edges between parts{}",
                                        grouped(prediction.batches),
                                        grouped(arguments.parts_per_batch), copied)});
    }
    table.add({"computed", prediction.computed.summary});
    const std::vector<std::string> kernels = kernels_of(prediction);
    if (!kernels.empty()) table.add({"kernels", fmt::format("{}", fmt::join(kernels, ", "))});
    if (quantised->loss) {
      table.add({"lost", fmt::format("{:.2f} points against all bits", *quantised->loss * 100)});
    }
  }
  table.add({"peak memory", human_bytes(peak_bytes)});
  for (const std::string& path : paths_of(arguments.files)) table.add({"written", path});
  if (!arguments.quantised.empty()) table.add({"model written", arguments.quantised});
  return headline(dataset) + "\n" + table.text();
}

Json to_json(const PredictArguments& arguments, const Dataset& dataset,
             const train::Checkpoint& checkpoint, const train::Prediction& prediction,
             const std::optional<Quantised>& quantised, std::int64_t peak_bytes) {
  Json json{{"verb", "predict"}, {"source", arguments.data.source}};
  json.update(brief_json(dataset));
  json["checkpoint"] = arguments.checkpoint;
  json["model"] = nn::to_string(checkpoint.model.kind);
  json["items"] = prediction.logits.rows();
  json["task"] = prediction.numbers ? "numbers" : prediction.graph_task ? "graph" : "node";
  if (prediction.numbers) {
    add_numbers(prediction, items_to_judge(dataset, checkpoint, prediction), json);
  }
  for (const auto& [label, count] : class_counts(prediction)) {
    json["predicted"][shown_class(prediction, label)] = count;
  }
  if (const auto quality = assess(dataset, checkpoint, prediction)) {
    json["test"] = {
        {"metric", metric_name(prediction)}, {"value", quality->metric}, {"items", quality->count}};
  }
  if (quantised) {
    json["bits"] = {{"layers", quantised->bits},
                    {"weight_bytes", quantised->bytes},
                    {"full_weight_bytes", quantised->full_bytes},
                    {"computed", prediction.computed.summary},
                    {"kernels", kernels_of(prediction)}};
    if (quantised->loss) json["bits"]["lost"] = *quantised->loss;
    if (prediction.batches > 0) {
      json["bits"]["batches"] = prediction.batches;
      json["bits"]["bytes_to_device"] = prediction.bytes_copied;
    }
    if (prediction.memory) {
      json["bits"]["feature_bytes"] = prediction.memory->features;
      json["bits"]["activation_bytes"] = prediction.memory->activations;
      json["bits"]["full_feature_bytes"] = prediction.memory->full_features;
      json["bits"]["full_activation_bytes"] = prediction.memory->full_activations;
    }
  }
  json["peak_memory_bytes"] = peak_bytes;
  add_paths(arguments.files, json);
  if (!arguments.quantised.empty()) json["quantised"] = arguments.quantised;
  return json;
}

/// The parts that batches are made of; null: the whole graph is computed at once.
std::shared_ptr<const Partition> partition_of(Session& session, const PredictArguments& arguments,
                                              const Graph& graph) {
  if (!arguments.partition_file.empty()) {
    return std::make_shared<const Partition>(
        read_partition_file(arguments.partition_file, graph.num_rows(), arguments.parts));
  }
  if (arguments.parts == 0) return nullptr;
  session.stage("partitioning");
  PartitionOptions options;
  options.parts = arguments.parts;
  options.method = arguments.method;
  options.seed = session.seed();
  options.progress = session.progress();
  return std::make_shared<const Partition>(partition(graph, options));
}

ExitCode run_predict(Session& session, const Arguments& app, PredictArguments arguments) {
  if (train::holds_triple_knowledge(arguments.checkpoint)) {
    return predict_triples(session, app, arguments.data.source, arguments.checkpoint,
                           arguments.links, arguments.files.output);
  }
  if (train::holds_relational_checkpoint(arguments.checkpoint)) {
    return predict_relational(
        session, app, {arguments.data, arguments.checkpoint, arguments.files, arguments.device});
  }
  require_sense(arguments);
  open_plans(arguments.planning);
  const auto started = started_meanwhile(parse_device(arguments.device));
  session.stage("reading the checkpoint");
  const train::Checkpoint checkpoint = train::load_checkpoint(arguments.checkpoint);
  const LinkQuestion question{arguments.data, arguments.links, arguments.checkpoint,
                              arguments.files.output, arguments.files.embeddings};
  require_sense(app, question, checkpoint);
  if (arguments.data.tables.kinds.empty())
    arguments.data.tables.kinds = to_string(checkpoint.kinds);
  if (!arguments.files.output.empty() && !checkpoint.decoder) {
    train::require_prediction_ending(arguments.files.output,
                                     checkpoint.multi_label || checkpoint.numbers);
  }
  if (checkpoint.numbers) {
    reject_useless(app, {{"--report", true, "for a model of numbers, which has no classes", ""}});
    arguments.data.tables.numbers = true;
  }
  const LoadedData data = load(session, arguments.data);
  train::PredictOptions options;
  options.embeddings = !arguments.files.embeddings.empty();
  options.placement.memory = &default_memory(checked_device(arguments.device));
  options.placement.precision = parse_precision(arguments.precision);
  options.plans = arguments.planning.options();
  if (checkpoint.decoder) {
    options.embeddings = false;
    const ExitCode code = predict_links(session, question, data.dataset, checkpoint, options);
    save_plans(arguments.planning);
    return code;
  }
  if (!arguments.bits.empty()) options.bits = nn::parse_bits(arguments.bits);
  options.integers = !arguments.rounded;
  options.calibrate = arguments.calibrate;
  if (!arguments.ranges.empty()) options.ranges = nn::parse_range_search(arguments.ranges);
  const std::vector<std::int64_t> bits =
      options.bits.empty() ? checkpoint.model.bits : options.bits;
  const std::pair<bool, const char*> for_bits[] = {
      {arguments.rounded, "--rounded"},        {arguments.calibrate, "--calibrate"},
      {!arguments.ranges.empty(), "--ranges"}, {!arguments.quantised.empty(), "--quantised"},
      {arguments.parts > 0, "--parts"},        {!arguments.partition_file.empty(), "--partition"}};
  for (const auto& [given, name] : for_bits) {
    if (!given || !bits.empty()) continue;
    throw Error(ErrorCode::invalid_argument, "does nothing for a model with all bits", name,
                "leave it out, or give --bits");
  }
  options.partition = partition_of(session, arguments, data.dataset.graph);
  if (options.partition != nullptr) {
    arguments.parts_per_batch =
        std::min<std::int64_t>(arguments.parts_per_batch, options.partition->parts);
  }
  options.parts_per_batch = arguments.parts_per_batch;
  options.rows_at_a_time = arguments.rows_at_a_time;
  session.stage("predicting");
  const Device device = options.placement.device();
  reset_memory_peak(device);
  const train::Prediction prediction = train::predict(checkpoint, data.dataset, options);
  const std::int64_t peak_bytes = memory_use(device).peak_bytes;
  session.add_notes(prediction.notes);
  if (!checkpoint.numbers) {
    session.add_notes(train::true_classes(checkpoint, data.dataset).notes);
  }
  session.add_notes(notes_on_tables(arguments.files, prediction));
  session.stage("writing");
  write_files(arguments.files, data.dataset, checkpoint, prediction);
  std::optional<Quantised> quantised;
  if (!bits.empty()) {
    session.stage("comparing with all bits");
    quantised = compare_bits(checkpoint, data.dataset, options, bits, prediction);
  }
  save_plans(arguments.planning);
  if (!arguments.quantised.empty()) {
    train::save(train::quantised(checkpoint, bits, prediction.ranges, quantised->loss),
                arguments.quantised);
  }
  session.deliver(to_text(arguments, data.dataset, checkpoint, prediction, quantised, peak_bytes),
                  to_json(arguments, data.dataset, checkpoint, prediction, quantised, peak_bytes));
  return ExitCode::ok;
}

Action setup(Arguments& app) {
  auto arguments = std::make_shared<PredictArguments>();
  add_data_options(app, arguments->data);
  add_reading_options(app, arguments->data);
  app.add_option("-c,--checkpoint", arguments->checkpoint,
                 "the trained model, as 'tessera train --checkpoint' wrote it")
      ->type_name("FILE");
  add_file_options(app, arguments->files);
  add_link_options(app, arguments->links);
  app.add_option(
         "--bits", arguments->bits,
         "gcn, gin: as with so many bits of weights, features and activations, 1 to 16; one "
         "number, or one for each layer (8,4,8)")
      ->type_name("B");
  app.add_flag("--rounded", arguments->rounded,
               "with bits: rounded numbers in floating point, as in training, instead of integers");
  app.add_flag("--calibrate", arguments->calibrate,
               "with bits: ranges of these features and what follows from them, not those of the "
               "training");
  app.add_option("--ranges", arguments->ranges,
                 "with bits: calibrate ranges that have so much of the numbers (0.999), or these "
                 "bounds (-2,4); outliers become their ends")
      ->type_name("S|L,U");
  app.add_option("--quantised", arguments->quantised,
                 "with bits: write the model with its bits, ranges and what they cost as a "
                 "checkpoint")
      ->type_name("FILE");
  app.add_option("--rows-at-a-time", arguments->rows_at_a_time,
                 "predict layer by layer, over N vertices at a time, which takes less memory")
      ->type_name("N")
      ->check(between(std::int64_t{1}, std::int64_t{std::numeric_limits<std::int32_t>::max()}));
  const std::string batches = "Batches of parts, of a model with bits (Cluster-GCN)";
  app.add_option("--parts", arguments->parts,
                 "cut the graph into K parts, without the edges between them, and compute a few "
                 "parts at a time")
      ->type_name("K")
      ->check(between(std::int64_t{1}, std::int64_t{std::numeric_limits<std::int32_t>::max()}))
      ->group(batches);
  app.add_option("--parts-per-batch", arguments->parts_per_batch, "number of parts at a time")
      ->type_name("N")
      ->check(between(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str()
      ->group(batches);
  app.add_option("--partition", arguments->partition_file,
                 "read the parts from this file: line i holds the part of vertex i")
      ->type_name("FILE")
      ->group(batches);
  app.add_option("--method", arguments->method,
                 "how to make the parts: auto, multilevel, metis or contiguous")
      ->type_name("NAME")
      ->check(one_of({"auto", "multilevel", "metis", "contiguous"}))
      ->capture_default_str()
      ->group(batches);
  app.add_option("--device", arguments->device, "cpu or cuda")
      ->type_name("NAME")
      ->check(offers({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--precision", arguments->precision,
                 "fp32, tf32 (products on a GPU's tensor cores), or bf16 (features and activations "
                 "in 16 bits); the checkpoint's own plays no part")
      ->type_name("NAME")
      ->check(one_of({"fp32", "tf32", "bf16"}))
      ->capture_default_str();
  add_planning_options(app, arguments->planning);
  return {[&app, arguments](Session& session) {
            const bool given = !arguments->partition_file.empty();
            const bool whole = arguments->parts == 0 && !given;
            reject_useless(app,
                           {useless_short(arguments->files),
                            {"--parts", given, "with --partition", ""},
                            {"--method", given, "with --partition", ""},
                            {"--method", whole, "for a whole graph", "give --parts"},
                            {"--parts-per-batch", whole, "for a whole graph", "give --parts"}});
            return run_predict(session, app, *arguments);
          },
          [arguments] {
            std::vector<FileUse> uses = uses_of(arguments->files);
            for (FileUse& use : uses_of(arguments->links)) uses.push_back(std::move(use));
            uses.insert(uses.end(), {{"--checkpoint", arguments->checkpoint, FileRole::input},
                                     {"--quantised", arguments->quantised, FileRole::output},
                                     {"--partition", arguments->partition_file, FileRole::input},
                                     plans_file(arguments->planning)});
            return with_data_files(arguments->data, std::move(uses));
          }};
}

}  // namespace

const Verb predict_verb{"predict", "predict with a trained model",
                        "[options] SOURCE --checkpoint FILE [-o FILE]",
                        "tessera train embedded:citation --checkpoint model.tsr\n"
                        "tessera predict embedded:citation --checkpoint model.tsr -o classes.csv\n"
                        "tessera predict embedded:citation -c model.tsr --report report.txt\n"
                        "tessera predict edges.csv --nodes users.csv -c model.tsr -o classes.csv\n"
                        "tessera predict follows.csv -c follows.tsr --top 10 -o lists.csv\n"
                        "tessera predict facts/ -c facts.tsr --for questions.tsv -o answers.tsv",
                        setup};

}  // namespace tessera::app
