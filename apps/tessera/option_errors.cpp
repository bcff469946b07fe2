// SPDX-License-Identifier: Apache-2.0
#include "option_errors.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace tessera::app {
namespace {

/// Fields whose options are not called like them.
constexpr std::pair<const char*, const char*> other_names[] = {
    {"learning_rate", "--lr"},
    {"patience", "--early-stopping"},
    {"rate_decay_every", "--decay-every"},
    {"rate_decay", "--decay-factor"},
    {"checkpoint.every", "--checkpoint-every"},
    {"batching", "--batch"},
    {"fan_outs", "--fanout"},
    {"partition", "--parts"},
    {"precomputed", "--precompute"},
    {"rewrites", "--without-rewrites"},
    {"way to stop", "--stop-by"},
    {"kind of negatives", "--negatives"},
    {"per_positive", "--negatives-per-link"},
    {"times of edges", "--edge-time"},
    {"time", "--edge-time"},
    {"avoids_held_out", "--avoid-held-out"},
    {"kind", "--model"},
    {"top", "--top-k"},
};

/// "--parts-per-batch" for parts_per_batch; empty where the verb has no such option.
std::string option_for(const Arguments& app, std::string field) {
  for (const auto& [name, option] : other_names) {
    if (field == name) return app.find(option) == nullptr ? "" : option;
  }
  if (field.empty() ||
      field.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") != std::string::npos) {
    return {};
  }
  std::replace(field.begin(), field.end(), '_', '-');
  const std::string option = "--" + field;
  return app.find(option) == nullptr ? "" : option;
}

std::string word(const std::string& text, std::size_t begin) {
  return text.substr(begin, text.find(' ', begin) - begin);
}

/// "is -1" of "learning_rate is -1", of which the option in front says what it is.
std::string without_field(const std::string& problem, const std::string& option) {
  const std::string field = word(problem, 0);
  const bool is_other = std::any_of(
      std::begin(other_names), std::end(other_names),
      [&](const auto& other) { return field == other.first && option == other.second; });
  return is_other && field.size() < problem.size() ? problem.substr(field.size() + 1) : problem;
}

/// "made with --decay-every = 50, not 3" of training.rate_decay_every.
std::string naming_setting(const Arguments& app, std::string problem) {
  constexpr const char* made_with = "the checkpoint was made with ";
  if (!problem.starts_with(made_with)) return problem;
  const std::string setting = word(problem, std::string(made_with).size());
  // It may be what --method says, or a file.
  if (setting == "training.partition") return problem;
  const std::string option = option_for(app, setting.substr(setting.find('.') + 1));
  if (option.empty()) return problem;
  return problem.replace(std::string(made_with).size(), setting.size(), option);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// The column of --edge-time is read as those of --edge-features are: an error of its reading names
/// the option that was given.
Error naming_edge_time(const Arguments& app, const Error& error) {
  constexpr const char* features = "--edge-features";
  constexpr const char* time = "--edge-time";
  if (app.find(time) == nullptr || !app.is_given(time)) return error;
  const std::string problem = problem_of(error);
  const bool is_of_time = problem.find("'" + app.find(time)->values().back() + "'") != problem.npos;
  if (app.is_given(features) && !is_of_time) return error;
  if (is_of_time && problem.find("different texts") != problem.npos) {
    return Error(error.code(), problem + ", but times are numbers", error.where(),
                 "give numbers that grow with time: seconds, or 20240531 for a date");
  }
  return Error(error.code(), replaced(problem, features, time),
               replaced(error.where(), features, time), replaced(error.fix(), features, time));
}

}  // namespace

std::string problem_of(const Error& error) {
  std::string text = error.what();
  const std::string where = error.where() + ": ";
  const std::string fix = "; " + error.fix();
  if (!error.where().empty() && text.starts_with(where)) text.erase(0, where.size());
  if (!error.fix().empty() && text.ends_with(fix)) text.resize(text.size() - fix.size());
  return text;
}

Error naming_option(const Arguments& app, const Error& given) {
  const Error error = naming_edge_time(app, given);
  constexpr const char* unknown = "unknown ";
  std::string problem = problem_of(error);
  std::string option;
  if (error.code() == ErrorCode::backend_unavailable && error.where().starts_with("cuda")) {
    option = option_for(app, "device");
  } else if (error.where() == "training" || error.where() == "model") {
    option = option_for(app, word(problem, 0));
    problem = without_field(problem, option);
  } else if (error.where().empty() && problem.starts_with(unknown)) {
    const std::size_t begin = std::string(unknown).size();
    option = option_for(app, problem.substr(begin, problem.find(" '") - begin));
  } else if (const std::string named = naming_setting(app, problem); named != problem) {
    return Error(error.code(), named, error.where(), error.fix());
  } else {
    option = option_for(app, error.where());
  }
  return option.empty() ? error : Error(error.code(), problem, option, error.fix());
}

}  // namespace tessera::app
