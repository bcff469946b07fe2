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
    {"partition", "--parts"},
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

}  // namespace

std::string problem_of(const Error& error) {
  std::string text = error.what();
  const std::string where = error.where() + ": ";
  const std::string fix = "; " + error.fix();
  if (!error.where().empty() && text.starts_with(where)) text.erase(0, where.size());
  if (!error.fix().empty() && text.ends_with(fix)) text.resize(text.size() - fix.size());
  return text;
}

Error naming_option(const Arguments& app, const Error& error) {
  constexpr const char* unknown = "unknown ";
  const std::string problem = problem_of(error);
  std::string option;
  if (error.code() == ErrorCode::backend_unavailable && error.where().starts_with("cuda")) {
    option = option_for(app, "device");
  } else if (error.where() == "training" || error.where() == "model") {
    option = option_for(app, word(problem, 0));
  } else if (error.where().empty() && problem.starts_with(unknown)) {
    option = option_for(app, word(problem, std::string(unknown).size()));
  } else {
    option = option_for(app, error.where());
  }
  return option.empty() ? error : Error(error.code(), problem, option, error.fix());
}

}  // namespace tessera::app
