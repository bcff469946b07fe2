// SPDX-License-Identifier: Apache-2.0
#include "train/settings.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/core/error.hpp"

#include "core/names.hpp"
#include "io/file.hpp"

namespace tessera::train {
namespace {

constexpr std::array<Named<ops::OptimiserKind>, 3> optimiser_names = {
    {{ops::OptimiserKind::sgd, "sgd"},
     {ops::OptimiserKind::adam, "adam"},
     {ops::OptimiserKind::adamw, "adamw"}}};

constexpr const char* none = "none";

/// Every field that shapes a model, with its name: written, read and compared through this list.
template <class Config, class Visit>
void for_each_field(Config& config, Visit&& visit) {
  visit("model.kind", config.kind);
  visit("model.layers", config.layers);
  visit("model.hidden", config.hidden);
  visit("model.heads", config.heads);
  visit("model.output_heads", config.output_heads);
  visit("model.input_dropout", config.input_dropout);
  visit("model.dropout", config.dropout);
  visit("model.head_dropout", config.head_dropout);
  visit("model.attention_dropout", config.attention_dropout);
  visit("model.negative_slope", config.negative_slope);
  visit("model.share_weights", config.share_weights);
  visit("model.aggregation", config.aggregation);
  visit("model.hops", config.hops);
  visit("model.train_eps", config.train_eps);
  visit("model.fix_first_beta", config.fix_first_beta);
  visit("model.activation", config.activation);
  visit("model.batch_norm", config.batch_norm);
  visit("model.residual", config.residual);
  visit("model.readout", config.readout);
  visit("model.precomputed", config.precomputed);
  visit("model.decay_first_layer_only", config.decay_first_layer_only);
  visit("model.bits", config.bits);
  visit("model.edge_features", config.edge_features);
}

std::string text_of(std::int64_t value) { return fmt::format("{}", value); }
std::string text_of(std::uint64_t value) { return fmt::format("{}", value); }
std::string text_of(double value) { return fmt::format("{}", value); }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(ops::OptimiserKind kind) { return name_of(optimiser_names, kind); }
std::string text_of(const std::string& value) { return value; }
template <class Enum>
requires std::is_enum_v<Enum> std::string text_of(Enum value) { return to_string(value); }
std::string text_of(const std::vector<std::int64_t>& bits) {
  return bits.empty() ? "all" : nn::bits_text(bits);
}
std::string text_of(const std::optional<ops::Reduction>& value) {
  return value ? ops::to_string(*value) : none;
}

template <class Number>
Number number_from(const std::string& text) {
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) {
    throw Error(ErrorCode::bad_data, "'" + text.substr(0, 64) + "' is no number");
  }
  return value;
}

void assign(const std::string& text, std::int64_t& value) {
  value = number_from<std::int64_t>(text);
}
void assign(const std::string& text, double& value) { value = number_from<double>(text); }
void assign(const std::string& text, bool& value) {
  value = text == "true";
  if (!value && text != "false") throw Error(ErrorCode::bad_data, "'" + text + "' is no boolean");
}
void assign(const std::string& text, nn::ModelKind& value) { value = nn::parse_model_kind(text); }
void assign(const std::string& text, nn::SageAggregation& value) {
  value = nn::parse_sage_aggregation(text);
}
void assign(const std::string& text, ops::Activation& value) {
  value = ops::parse_activation(text);
}
void assign(const std::string& text, std::optional<ops::Reduction>& value) {
  value.reset();
  if (text != none) value = ops::parse_reduction(text);
}

void assign(const std::string& text, std::vector<std::int64_t>& bits) {
  bits.clear();
  if (text != "all") bits = nn::parse_bits(text);
}

std::string partition_text(const TrainOptions& options) {
  if (!options.partition) return options.partition_method;
  std::uint64_t sum = 0;
  for (const std::int32_t part : options.partition->assignment) {
    sum = sum * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(part) + 1;
  }
  return fmt::format("given {:016x}", sum);
}

}  // namespace

std::vector<Setting> settings_of(const nn::ModelConfig& config) {
  std::vector<Setting> settings;
  for_each_field(config, [&](const char* name, const auto& value) {
    settings.push_back({name, text_of(value)});
  });
  return settings;
}

std::vector<Setting> settings_of(const TrainOptions& options) {
  std::vector<Setting> settings;
  const auto add = [&](const char* name, const auto& value) {
    settings.push_back({name, text_of(value)});
  };
  const ops::OptimiserOptions& optimiser = options.optimiser;
  add("training.optimiser", optimiser.kind);
  add("training.learning_rate", optimiser.learning_rate);
  add("training.weight_decay", optimiser.weight_decay);
  add("training.momentum", optimiser.momentum);
  add("training.beta1", optimiser.beta1);
  add("training.beta2", optimiser.beta2);
  add("training.epsilon", optimiser.epsilon);
  add("training.rate_decay_every", options.rate_decay_every);
  add("training.rate_decay", options.rate_decay);
  add("training.schedule", options.schedule);
  add("training.warm_up", options.warm_up);
  add("training.clip_gradients", options.clip_gradients);
  add("training.average_weights", options.average_weights);
  add("training.class_weights", to_string(options.class_weights));
  add("training.label_smoothing", options.label_smoothing);
  add("training.epochs", options.epochs);
  add("training.evaluate_every", options.evaluate_every);
  add("training.patience", options.patience);
  add("training.stop_by", options.stop_by);
  add("training.metric", options.metric);
  add("training.normalise", options.normalise);
  add("training.split",
      fmt::format("{},{},{}", options.split.train, options.split.validation, options.split.test));
  add("training.split_index",
      options.split_index ? text_of(*options.split_index) : std::string(none));
  add("training.folds", options.folds);
  add("training.batching", options.batching);
  add("training.parts", options.parts);
  add("training.parts_per_batch", options.parts_per_batch);
  add("training.partition", partition_text(options));
  add("training.graphs_per_batch", options.graphs_per_batch);
  if (options.batching == Batching::walks) {
    add("training.batch_size", options.batch_size);
    add("training.walk_length", options.walk_length);
  }
  if (options.batching == Batching::neighbours) {
    add("training.batch_size", options.batch_size);
    add("training.fan_outs", fmt::format("{}", fmt::join(options.fan_outs, ",")));
    add("training.replace", options.replace);
  }
  add("training.pattern", to_string(options.pattern));
  add("training.seed", options.seed);
  add("training.runs", options.runs);
  add("training.precision", std::string(tessera::to_string(options.placement.precision)));
  if (options.task == Task::links) {
    const LinkOptions& links = options.links;
    add("links.decoder", links.decoder);
    add("links.embedding", links.embedding);
    add("links.variational", links.variational);
    add("links.loss", links.loss);
    if (links.loss == LinkLoss::margin) add("links.margin", links.margin);
    add("links.validation", links.shares.validation);
    add("links.test", links.shares.test);
    add("links.supervision", links.shares.supervision);
    add("links.time", links.time.empty() ? std::string(none) : links.time);
    add("links.negatives", links.negatives);
    add("links.per_positive", links.per_positive);
    if (links.pairs_per_batch > 0) add("links.pairs_per_batch", links.pairs_per_batch);
    add("links.avoids_held_out", links.avoids_held_out);
    add("links.kinds", links.kinds.given() ? tessera::to_string(links.kinds) : std::string(none));
    add("links.top", links.top);
  }
  if (options.task == Task::numbers) {
    add("numbers.loss", options.numbers.loss);
    add("numbers.huber_delta", options.numbers.huber_delta);
    add("numbers.standardise", options.numbers.standardise);
  }
  add("plans.tune", options.plans.tune);
  add("plans.strict", options.plans.strict);
  add("plans.exact_nonfinite", options.plans.exact_nonfinite);
  add("plans.allow_nondeterministic", options.plans.allow_nondeterministic);
  return settings;
}

SettingsReader::SettingsReader(std::vector<Setting> settings, std::string where)
    : settings_(std::move(settings)), where_(std::move(where)) {
  for (const Setting& entry : settings_) {
    if (by_name_.emplace(entry.name, entry.value).second) continue;
    io::damaged(where_, "setting '" + entry.name + "' occurs twice");
  }
  // What files lack that were written before there was a choice.
  if (!by_name_.contains("training.epochs")) return;
  const auto earlier = by_name_.find("training.row_normalise");
  const std::string normalise = earlier == by_name_.end() ? "auto" : earlier->second;
  const bool decays = has("training.rate_decay_every") && text("training.rate_decay_every") != "0";
  const std::initializer_list<Setting> added = {
      {"training.schedule", decays ? "steps" : "constant"},
      {"training.warm_up", "0"},
      {"training.clip_gradients", "0"},
      {"training.average_weights", "0"},
      {"training.class_weights", none},
      {"training.label_smoothing", "0"},
      {"training.stop_by", "either"},
      {"training.evaluate_every", "1"},
      {"model.bits", "all"},
      {"model.edge_features", "0"},
      {"training.pattern", "off"},
      {"training.split_index", none},
      {"training.normalise", normalise == "on" ? "rows" : normalise}};
  for (const Setting& setting : added) {
    if (by_name_.emplace(setting.name, setting.value).second) settings_.push_back(setting);
  }
}

const std::string& SettingsReader::text(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return found->second;
  io::damaged(where_, "setting '" + name + "' is missing");
}

std::int64_t SettingsReader::integer(const std::string& name) const {
  return reading(name, [](const std::string& text) { return number_from<std::int64_t>(text); });
}

std::int64_t SettingsReader::integer(const std::string& name, std::int64_t least,
                                     std::int64_t most) const {
  const std::int64_t value = integer(name);
  if (value < least || value > most) io::damaged(where_, fmt::format("'{}' is {}", name, value));
  return value;
}

void SettingsReader::reject(const std::string& name, const Error& error) const {
  io::damaged(where_, fmt::format("setting '{}': {}", name, error.what()));
}

nn::ModelConfig model_config_from(const SettingsReader& settings) {
  nn::ModelConfig config;
  for_each_field(config, [&](const char* name, auto& value) {
    settings.reading(name, [&](const std::string& text) { assign(text, value); });
  });
  return config;
}

std::string to_text(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& entry : settings) text += entry.name + " = " + entry.value + "\n";
  return text;
}

SettingsReader parse_settings(const std::string& text, const std::string& where) {
  constexpr std::string_view separator = " = ";
  std::vector<Setting> settings;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t place = line.find(separator);
    if (place == std::string::npos) {
      io::damaged(where, "'" + line.substr(0, 64) + "' is no setting");
    }
    settings.push_back({line.substr(0, place), line.substr(place + separator.size())});
  }
  return {std::move(settings), where};
}

}  // namespace tessera::train
