// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// The options of a verb. CLI11 reads them, in arguments.cpp alone: its headers take the compiler
/// longer than a verb itself.
namespace tessera::app {

/// What a value must be.
struct Check {
  /// What is wrong with a value; empty: nothing.
  std::function<std::string(const std::string&)> problem;
  std::vector<std::string> choices = {};  ///< the words it may be, where they are few
};

/// One option. Those functions that set something return the option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  /// The placeholder of its value in help texts.
  Option* type_name(const std::string& placeholder);
  Option* group(const std::string& name);
  Option* check(const Check& check);
  /// Help says the value that it has without being given.
  Option* capture_default_str();
  /// Between several values that are given at once.
  Option* delimiter(char separator);
  /// Takes one value each time it is given.
  Option* repeatable();
  Option* excludes(Option* other);

  std::vector<std::string> names() const;  ///< "-o", "--output"; none where the place alone says it
  std::string placeholder() const;         ///< empty for a flag
  std::string description() const;
  std::string default_text() const;
  std::string group() const;
  const std::vector<std::string>& choices() const { return choices_; }
  bool is_given() const;
  /// As they were given, one after the other; "true" for a flag.
  std::vector<std::string> values() const;

 private:
  CLI::Option* option_;
  std::vector<std::string> choices_;
};

class Arguments {
 public:
  Arguments(const std::string& summary, const std::string& verb);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  /// For the types of values that arguments.cpp names.
  template <class Value>
  Option* add_option(const std::string& names, Value& value, const std::string& description);
  Option* add_flag(const std::string& names, bool& value, const std::string& description);
  Option* add_help_flag(const std::string& names, const std::string& description);

  /// In the order they were added.
  const std::vector<std::unique_ptr<Option>>& options() const { return options_; }
  /// Null where there is none of that name.
  const Option* find(const std::string& name) const;
  bool is_given(const std::string& name) const;

  /// False when help was asked for. Throws `invalid_argument` for what cannot be understood.
  bool parse(int argc, char** argv);

 private:
  Option* keep(CLI::Option* option);

  std::string verb_;
  std::unique_ptr<CLI::App> app_;
  std::vector<std::unique_ptr<Option>> options_;
};

}  // namespace tessera::app
