// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "describe.hpp"
#include "device_profile_file.hpp"
#include "numbers.hpp"
#include "options.hpp"
#include "table.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/ops/aggregate_update.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/edge_softmax.hpp"
#include "tessera/ops/expected.hpp"
#include "tessera/ops/messages.hpp"
#include "tessera/ops/plan_store.hpp"
#include "tessera/ops/sddmm.hpp"
#include "tessera/ops/spmm.hpp"
#include "useless.hpp"
#include "verb.hpp"

namespace tessera::app {
namespace {

struct PlanArguments {
  DataOptions data;
  std::string op = "spmm";
  std::int64_t features = 64;
  std::string precision = "fp32";
  std::string reduction = "sum";
  std::string form = "gat";
  std::int64_t heads = 1;
  std::string device = "cpu";
  std::string device_profile;
  std::string tune = "predicted";
  std::int64_t epochs = ops::PlanOptions{}.epochs;
  std::string kernel;
  bool backward = false;
  bool strict = false;
  bool exact_nonfinite = false;
  bool allow_nondeterministic = false;
  std::string save;
  std::string load;
};

/// The options that every op has, filled in.
template <class Options>
Options common_options(const PlanArguments& arguments, std::shared_ptr<ops::PlanStore> store) {
  Options options;
  options.device = parse_device(arguments.device);
  options.kernel = arguments.kernel;
  options.tune = ops::parse_tune(arguments.tune);
  options.epochs = arguments.epochs;
  options.backward = arguments.backward;
  options.strict = arguments.strict;
  options.exact_nonfinite =
      arguments.exact_nonfinite || parse_nonfinite(arguments.data.nonfinite) == Nonfinite::allow;
  options.allow_nondeterministic = arguments.allow_nondeterministic;
  options.store = std::move(store);
  options.stored_only = !arguments.load.empty();
  options.precision = parse_precision(arguments.precision);
  return options;
}

ops::AttentionForm parse_form(const std::string& text) {
  for (const auto form : {ops::AttentionForm::gat, ops::AttentionForm::gatv2,
                          ops::AttentionForm::dot, ops::AttentionForm::cosine}) {
    if (text == ops::to_string(form)) return form;
  }
  throw Error(ErrorCode::invalid_argument, "unknown form '" + text + "'", "",
              "use gat, gatv2, dot or cosine");
}

/// By planning, or as expected on a GPU that need not be there.
template <class Options>
ops::Explanation explained(const PlanArguments& arguments, const Graph& graph,
                           const Options& options) {
  if (!arguments.device_profile.empty()) {
    return ops::expected(graph, options, device_profile_of(arguments.device_profile));
  }
  if constexpr (std::is_same_v<Options, ops::SpmmOptions>) {
    return ops::plan_spmm(graph, options).explain();
  } else if constexpr (std::is_same_v<Options, ops::SddmmOptions>) {
    return ops::plan_sddmm(graph, options).explain();
  } else if constexpr (std::is_same_v<Options, ops::EdgeSoftmaxOptions>) {
    return ops::plan_edge_softmax(graph, options).explain();
  } else if constexpr (std::is_same_v<Options, ops::AggregateUpdateOptions>) {
    return ops::plan_aggregate_update(graph, options).explain();
  } else {
    return ops::plan_attention(graph, options).explain();
  }
}

ops::Explanation explanation_of(const PlanArguments& arguments, const Graph& graph,
                                const std::shared_ptr<ops::PlanStore>& store) {
  const std::string& op = arguments.op;
  if (op == "spmm" || op == "spmm_backward") {
    auto options = common_options<ops::SpmmOptions>(arguments, store);
    options.reduction = ops::parse_reduction(arguments.reduction);
    options.features = arguments.features;
    if (op == "spmm") return explained(arguments, graph, options);
    std::swap(options.kernel, options.backward_kernel);
    options.backward = true;
    return *find_child(explained(arguments, graph, options), "backward");
  }
  if (op == "sddmm") {
    auto options = common_options<ops::SddmmOptions>(arguments, store);
    options.features = arguments.features;
    options.heads = arguments.heads;
    return explained(arguments, graph, options);
  }
  if (op == "messages") {
    auto options = common_options<ops::MessagesOptions>(arguments, store);
    options.features = arguments.features;
    return ops::plan_messages(graph, options).explain();
  }
  if (op == "edge_softmax") {
    auto options = common_options<ops::EdgeSoftmaxOptions>(arguments, store);
    options.heads = arguments.heads;
    return explained(arguments, graph, options);
  }
  if (op == "aggregate_update") {
    auto options = common_options<ops::AggregateUpdateOptions>(arguments, store);
    options.in = options.out = arguments.features;
    options.backward = options.keep_aggregated = true;
    return explained(arguments, graph, options);
  }
  auto options = common_options<ops::AttentionOptions>(arguments, store);
  options.features = arguments.features;
  options.heads = arguments.heads;
  options.form = parse_form(arguments.form);
  return explained(arguments, graph, options);
}

std::string time_text(double us) { return us > 0 ? human_microseconds(us) : ""; }

std::string indented(const std::string& text, const std::string& indent) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    result += indent + text.substr(begin, end - begin);
    begin = end;
  }
  return result;
}

/// Kernels of other devices are in the JSON only.
std::string to_text(const ops::Explanation& explanation, const std::string& indent = "") {
  Table table("lrrl");
  table.add({"kernel", "predicted", "measured", "verdict"});
  for (const ops::Candidate& candidate : explanation.candidates) {
    if (candidate.verdict.starts_with("runs on another device")) continue;
    table.add({candidate.kernel, time_text(candidate.predicted_us),
               time_text(candidate.measured_us), candidate.verdict});
  }
  const bool has_candidates = !explanation.candidates.empty();
  std::string text = indented(has_candidates ? table.text() : "", indent);
  text += indent + printable(explanation.summary) + "\n";
  for (const ops::Explanation& child : explanation.children) {
    text += fmt::format("{}{}:\n", indent, child.name) + to_text(child, indent + "  ");
  }
  return text;
}

/// A time that was not predicted or not measured is 0.
Json known(double us) { return us > 0 ? Json(us) : Json(); }

/// What is written of an explanation and of each of its children.
void add_choice(Json& json, const ops::Explanation& explanation) {
  json["summary"] = explanation.summary;
  json["kernel"] = Json();
  Json candidates = Json::array();
  for (const ops::Candidate& candidate : explanation.candidates) {
    if (candidate.verdict == "chosen") json["kernel"] = candidate.kernel;
    candidates.push_back({{"kernel", candidate.kernel},
                          {"predicted_us", known(candidate.predicted_us)},
                          {"measured_us", known(candidate.measured_us)},
                          {"verdict", candidate.verdict}});
  }
  json["candidates"] = candidates;
  json["children"] = Json::array();
  for (const ops::Explanation& child : explanation.children) {
    Json part{{"name", child.name}};
    add_choice(part, child);
    json["children"].push_back(part);
  }
}

Json to_json(const PlanArguments& arguments, const Dataset& dataset,
             const ops::Explanation& explanation) {
  Json json{{"verb", "plan"}};
  json.update(brief_json(dataset));
  json["op"] = arguments.op;
  json["width"] = arguments.features;
  json["precision"] = arguments.precision;
  json["device"] = arguments.device_profile.empty()
                       ? device_name(parse_device(arguments.device))
                       : device_profile_of(arguments.device_profile).name;
  json["tune"] = arguments.tune;
  add_choice(json, explanation);
  return json;
}

FileUse profile_file(const std::string& profile) {
  return {"--device-profile", names_profile_file(profile) ? profile : "", FileRole::input};
}

void reject_useless_options(const Arguments& app, const PlanArguments& arguments) {
  const std::string& op = arguments.op;
  const bool spmm = op == "spmm" || op == "spmm_backward";
  const std::string here = "for " + op;
  reject_useless(app, {{"--heads", spmm || op == "messages" || op == "aggregate_update", here,
                        "use --op attention, sddmm or edge_softmax"},
                       {"--reduction", !spmm, here, "use --op spmm"},
                       {"--form", op != "attention", here, "use --op attention"},
                       {"--features", op == "edge_softmax", here, "use --heads"},
                       {"--device-profile", op == "messages", here, "use another op"}});
  const bool absent = !arguments.device_profile.empty();
  const std::string there = "with --device-profile";
  const std::string fix = "plan without --device-profile";
  reject_useless(app, {{"--device", absent, there, fix},
                       {"--tune", absent, there, fix},
                       {"--epochs", absent, there, fix},
                       {"--save", absent, there, fix},
                       {"--load", absent, there, fix}});
}

ExitCode run_plan(Session& session, const PlanArguments& arguments) {
  std::shared_ptr<ops::PlanStore> store;
  if (!arguments.load.empty()) {
    store = std::make_shared<ops::PlanStore>(ops::PlanStore::load(arguments.load));
  } else if (!arguments.save.empty()) {
    store = std::make_shared<ops::PlanStore>();
  }
  const LoadedData data = load(session, arguments.data);
  session.stage("planning");
  const ops::Explanation explanation = explanation_of(arguments, data.dataset.graph, store);
  if (!arguments.save.empty()) store->save(arguments.save);
  session.deliver(headline(data.dataset) + "\n" + to_text(explanation),
                  to_json(arguments, data.dataset, explanation));
  return ExitCode::ok;
}

Action setup(Arguments& app) {
  auto arguments = std::make_shared<PlanArguments>();
  add_data_options(app, arguments->data);
  add_nonfinite_option(app, arguments->data.nonfinite);
  app.add_option(
         "--op", arguments->op,
         "spmm, spmm_backward, sddmm, messages, edge_softmax, attention or aggregate_update "
         "(default spmm)")
      ->type_name("OP")
      ->check(one_of({"spmm", "spmm_backward", "sddmm", "messages", "edge_softmax", "attention",
                      "aggregate_update"}));
  app.add_option("--features", arguments->features, "width of the features (default 64)")
      ->type_name("N")
      ->check(between(std::int64_t{0}, std::int64_t{1} << 20));
  app.add_option("--precision", arguments->precision,
                 "fp32, fp64, bf16 or, on a GPU, fp16 (default fp32)")
      ->type_name("NAME")
      ->check(offers({"fp32", "fp64", "bf16", "fp16"}));
  app.add_option("--reduction", arguments->reduction, "spmm: sum, mean, max or min (default sum)")
      ->type_name("NAME")
      ->check(offers({"sum", "mean", "max", "min"}));
  app.add_option("--heads", arguments->heads,
                 "sddmm, edge_softmax, attention: number of heads (default 1)")
      ->type_name("N")
      ->check(between(std::int64_t{1}, std::int64_t{4096}));
  app.add_option("--form", arguments->form, "attention: gat, gatv2, dot or cosine (default gat)")
      ->type_name("NAME")
      ->check(offers({"gat", "gatv2", "dot", "cosine"}));
  app.add_option("--device", arguments->device, "cpu, cuda or cuda:N (default cpu)")
      ->type_name("DEVICE")
      ->check(offers({"cpu", "cuda"}));
  app.add_option("--device-profile", arguments->device_profile,
                 "plan for a GPU that need not be here, and prepare nothing: a file, or a "
                 "built-in one (h200, h100, a100, l40s, 4090, b200)")
      ->type_name("FILE|NAME");
  app.add_option("--tune", arguments->tune,
                 "how kernels are chosen: predicted (by the cost model, the default) or measured "
                 "(by timing)")
      ->type_name("HOW")
      ->check(offers({"predicted", "measured"}));
  app.add_option("--epochs", arguments->epochs,
                 "how often the plan will be used (default 100); where that makes up for the time, "
                 "a plan on a GPU also looks for another order of rows")
      ->type_name("N")
      ->check(between(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--kernel", arguments->kernel, "use this kernel instead of choosing one")
      ->type_name("NAME");
  app.add_flag("--backward", arguments->backward, "also plan the backward pass");
  app.add_flag("--strict", arguments->strict, "only kernels that are as accurate as sums in fp32");
  app.add_flag("--exact-nonfinite", arguments->exact_nonfinite,
               "only kernels in which an infinity or NaN reaches no rows but those that use it");
  app.add_flag("--allow-nondeterministic", arguments->allow_nondeterministic,
               "also kernels whose last digits may differ from run to run");
  auto* const save =
      app.add_option("--save", arguments->save, "write the choice to this file")->type_name("FILE");
  app.add_option("--load", arguments->load,
                 "use the choice in this file; an error if it has none for this problem")
      ->type_name("FILE")
      ->excludes(save);
  return {[&app, arguments](Session& session) {
            reject_useless_options(app, *arguments);
            return run_plan(session, *arguments);
          },
          [arguments] {
            return std::vector<FileUse>{source_file(arguments->data.source),
                                        {"--load", arguments->load, FileRole::input},
                                        {"--save", arguments->save, FileRole::output},
                                        profile_file(arguments->device_profile)};
          }};
}

}  // namespace

const Verb plan_verb{"plan", "explain which kernel would run on your graph, and why",
                     "[options] SOURCE",
                     "tessera plan embedded:citation --op spmm --features 128\n"
                     "tessera plan --data graph.npz --device cuda --precision bf16 --tune measured "
                     "--save graph.plans\n"
                     "tessera plan --data graph.npz --device cuda --precision bf16 "
                     "--load graph.plans\n"
                     "tessera plan --data graph.npz --precision bf16 --device-profile a100",
                     setup};

}  // namespace tessera::app
