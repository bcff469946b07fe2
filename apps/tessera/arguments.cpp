// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "suggest.hpp"
#include "tessera/core/error.hpp"

namespace tessera::app {
namespace {

// "--data: 1 required SOURCE missing" as "--data needs a value: --data SOURCE", and the like.
std::string in_plain_words(const std::string& problem) {
  constexpr std::string_view twice = "At Most 1 required but received ";
  constexpr std::string_view one = "1 required ";
  constexpr std::string_view missing = " missing";
  const std::size_t colon = problem.find(": ");
  if (colon == std::string::npos || problem[0] != '-') return problem;
  const std::string option = problem.substr(0, colon);
  const std::string rest = problem.substr(colon + 2);
  if (rest.starts_with(twice)) return option + " was given more than once";
  if (!rest.starts_with(one) || !rest.ends_with(missing)) return problem;
  const std::string value = rest.substr(one.size(), rest.size() - one.size() - missing.size());
  if (value.find(' ') != std::string::npos) return problem;
  return fmt::format("{0} needs a value: {0} {1}", option, value);
}

}  // namespace

Option* Option::type_name(const std::string& placeholder) {
  option_->type_name(placeholder);
  return this;
}

Option* Option::group(const std::string& name) {
  option_->group(name);
  return this;
}

Option* Option::check(const Check& check) {
  option_->check(
      CLI::Validator([problem = check.problem](std::string& v) { return problem(v); }, ""));
  if (!check.choices.empty()) choices_ = check.choices;
  return this;
}

Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}

Option* Option::delimiter(char separator) {
  option_->delimiter(separator);
  return this;
}

Option* Option::repeatable() {
  option_->expected(1)->allow_extra_args(false)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeAll);
  return this;
}

Option* Option::excludes(Option* other) {
  option_->excludes(other->option_);
  return this;
}

std::vector<std::string> Option::names() const {
  std::vector<std::string> names;
  for (const std::string& name : option_->get_snames()) names.push_back("-" + name);
  for (const std::string& name : option_->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string Option::placeholder() const { return option_->get_type_name(); }
std::string Option::description() const { return option_->get_description(); }
std::string Option::default_text() const { return option_->get_default_str(); }
std::string Option::group() const { return option_->get_group(); }
bool Option::is_given() const { return option_->count() > 0; }
std::vector<std::string> Option::values() const { return option_->results(); }

Arguments::Arguments(const std::string& summary, const std::string& verb)
    : verb_(verb), app_(std::make_unique<CLI::App>(summary, verb)) {
  app_->option_defaults()->group("Options");
}

Arguments::~Arguments() = default;

Option* Arguments::keep(CLI::Option* option) {
  return options_.emplace_back(std::make_unique<Option>(option)).get();
}

template <class Value>
Option* Arguments::add_option(const std::string& names, Value& value,
                              const std::string& description) {
  return keep(app_->add_option(names, value, description));
}

// Every type of value that an option has.
template Option* Arguments::add_option(const std::string&, std::string&, const std::string&);
template Option* Arguments::add_option(const std::string&, int&, const std::string&);
template Option* Arguments::add_option(const std::string&, std::int64_t&, const std::string&);
template Option* Arguments::add_option(const std::string&, double&, const std::string&);
template Option* Arguments::add_option(const std::string&, std::optional<std::string>&,
                                       const std::string&);
template Option* Arguments::add_option(const std::string&, std::optional<std::int64_t>&,
                                       const std::string&);
template Option* Arguments::add_option(const std::string&, std::optional<std::uint64_t>&,
                                       const std::string&);
template Option* Arguments::add_option(const std::string&, std::optional<double>&,
                                       const std::string&);
template Option* Arguments::add_option(const std::string&, std::vector<std::string>&,
                                       const std::string&);
template Option* Arguments::add_option(const std::string&, std::vector<double>&,
                                       const std::string&);
template Option* Arguments::add_option(const std::string&, std::vector<int>&, const std::string&);
template Option* Arguments::add_option(const std::string&, std::vector<std::int64_t>&,
                                       const std::string&);

Option* Arguments::add_flag(const std::string& names, bool& value, const std::string& description) {
  return keep(app_->add_flag(names, value, description));
}

Option* Arguments::add_help_flag(const std::string& names, const std::string& description) {
  return keep(app_->set_help_flag(names, description));
}

const Option* Arguments::find(const std::string& name) const {
  for (const auto& option : options_) {
    const std::vector<std::string> names = option->names();
    if (std::find(names.begin(), names.end(), name) != names.end()) return option.get();
  }
  return nullptr;
}

bool Arguments::is_given(const std::string& name) const {
  const Option* const option = find(name);
  return option != nullptr && option->is_given();
}

bool Arguments::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ExtrasError&) {
    const std::string extra = app_->remaining().front();
    std::vector<std::string> known;
    for (const auto& option : options_) {
      for (const std::string& name : option->names()) {
        if (name.starts_with("--")) known.push_back(name);
      }
    }
    const std::string near_name = suggestion(extra.substr(0, extra.find('=')), known);
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} '{}'", extra[0] == '-' ? "unknown option" : "unexpected argument", extra),
        "", near_name.empty() ? fmt::format("see 'tessera help {}'", verb_) : near_name);
  } catch (const CLI::ParseError& error) {
    const std::string problem = in_plain_words(error.what());
    const bool says_how = problem.find("; use ") != std::string::npos;
    throw Error(ErrorCode::invalid_argument, problem, "",
                says_how ? "" : fmt::format("see 'tessera help {}'", verb_));
  }
}

}  // namespace tessera::app
