// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/io/open.hpp"

namespace tessera::app {
namespace {

constexpr const char* generate_prefix = "generate:";

bool starts_with(const std::string& text, const std::string& prefix) {
  return text.rfind(prefix, 0) == 0;
}

std::vector<std::string> parameters_of(const std::string& description) {
  std::vector<std::string> parameters;
  const std::size_t question = description.find('?');
  if (question == std::string::npos) return parameters;
  std::istringstream text(description.substr(question + 1));
  for (std::string parameter; std::getline(text, parameter, '&');) parameters.push_back(parameter);
  return parameters;
}

bool is_seed(const std::string& parameter) { return starts_with(parameter, "seed="); }

bool names_seed(const std::string& description) {
  for (const std::string& parameter : parameters_of(description)) {
    if (is_seed(parameter)) return true;
  }
  return false;
}

Duplicates parse_duplicates(const std::string& text) {
  if (text == "sum") return Duplicates::sum;
  if (text == "first") return Duplicates::first;
  if (text == "keep") return Duplicates::keep;
  return Duplicates::reject;
}

/// The placeholders that stand for numbers in help texts.
bool takes_whole_numbers(const std::string& placeholder) {
  for (const char* name : {"N", "S", "K", "ROWS", "EDGES", "LIST"}) {
    if (placeholder == name) return true;
  }
  return false;
}

bool takes_reals(const std::string& placeholder) {
  for (const char* name : {"M", "SHARE", "RATE", "RATIO", "FACTOR", "SECONDS", "NORM", "DECAY"}) {
    if (placeholder == name) return true;
  }
  return false;
}

/// What is wrong with the value of an option, whatever the option; empty: nothing.
std::string problem_of(const std::string& value, const std::string& placeholder) {
  if (value.empty()) return "needs a value that is not empty";
  const bool whole = takes_whole_numbers(placeholder);
  if (!whole && !takes_reals(placeholder)) return {};
  const bool is_negative = value[0] == '-';
  // Seeds alone have no sign: a negative one would be read as a large one.
  const bool has_no_sign = placeholder == "S";
  if (is_negative && has_no_sign) return fmt::format("'{}' is negative", value);
  const std::string digits = value.substr(is_negative || value[0] == '+' ? 1 : 0);
  if (!digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos) {
    // Some would read it as an octal number.
    if (whole && digits[0] == '0' && digits.size() > 1) {
      return fmt::format("'{}' begins with a zero", value);
    }
    errno = 0;
    has_no_sign ? void(std::strtoull(value.c_str(), nullptr, 10))
                : void(std::strtoll(value.c_str(), nullptr, 10));
    return errno == ERANGE ? fmt::format("'{}' does not fit 64 bits", value) : std::string();
  }
  char* end = nullptr;
  const double real = std::strtod(value.c_str(), &end);
  if (end != value.c_str() + value.size() || whole) {
    return fmt::format("'{}' is no {}number", value, whole ? "whole " : "");
  }
  return std::isfinite(real) ? std::string() : fmt::format("'{}' is no finite number", value);
}

/// "a, b or c"
std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return text;
}

bool read_number(const std::string& value, std::int64_t& number) {
  char* end = nullptr;
  errno = 0;
  number = std::strtoll(value.c_str(), &end, 10);
  return end == value.c_str() + value.size() && errno != ERANGE;
}

bool read_number(const std::string& value, double& number) {
  char* end = nullptr;
  number = std::strtod(value.c_str(), &end);
  return end == value.c_str() + value.size();
}

template <class Number>
Check within(Number low, Number high, const char* kind) {
  return {[low, high, kind](const std::string& value) {
    Number number{};
    const bool fits = read_number(value, number) && number >= low && number <= high;
    return fits ? std::string()
                : fmt::format("'{}' is no {} from {} to {}", value, kind, low, high);
  }};
}

}  // namespace

Check one_of(std::vector<std::string> words) {
  return {[words](const std::string& value) {
            if (std::find(words.begin(), words.end(), value) != words.end()) return std::string();
            return fmt::format("unknown value '{}'; use {}", value, listed(words));
          },
          words};
}

Check offers(std::vector<std::string> words) {
  return {[](const std::string&) { return std::string(); }, std::move(words)};
}

Check between(std::int64_t low, std::int64_t high) { return within(low, high, "whole number"); }

Check between(double low, double high) { return within(low, high, "number"); }

void add_common_options(Arguments& app, CommonOptions& options) {
  const std::string group = "Common options";
  app.add_option(
         "--json", options.json,
         "write the results as JSON to a file, or with - to standard output in place of the report")
      ->type_name("FILE|-")
      ->group(group);
  // `bench` has one of its own, which takes several numbers.
  if (app.find("--threads") == nullptr) {
    app.add_option("--threads", options.threads, "threads to use; 0 is one per core")
        ->type_name("N")
        ->check(between(std::int64_t{0}, std::int64_t{4096}))
        ->capture_default_str()
        ->group(group);
  }
  app.add_option("--seed", options.seed, "seed of everything random (default 1)")
      ->type_name("S")
      ->group(group);
  app.add_option("--color", options.color,
                 "colours: always, never, or auto: on a terminal, unless NO_COLOR is set")
      ->type_name("WHEN")
      ->check(one_of({"auto", "always", "never"}))
      ->capture_default_str()
      ->group(group);
  app.add_flag("--force,-f", options.force, "replace output files that exist")->group(group);
  app.add_flag("--quiet,-q", options.quiet, "no progress and no report, only errors")->group(group);
  app.add_help_flag("-h,--help", "show this text")->group(group);
}

void guard_values(Arguments& app) {
  for (const auto& option : app.options()) {
    const std::string placeholder = option->placeholder();
    if (placeholder.empty()) continue;
    option->check(
        {[placeholder](const std::string& value) { return problem_of(value, placeholder); }});
  }
}

void add_data_options(Arguments& app, DataOptions& options) {
  app.add_option("-d,--data,SOURCE", options.source,
                 "a file or folder in any known format, embedded:NAME, "
                 "generate:KIND?PARAMETERS or twin:NAME; --data itself may be left out")
      ->type_name("SOURCE");
  app.add_option("--format", options.format,
                 "what the file is, where its content does not say it: " +
                     fmt::format("{}", fmt::join(io::format_names(), ", ")))
      ->type_name("NAME")
      ->check(one_of(io::format_names()));
  app.add_option("--duplicates", options.duplicates,
                 "what to do with an edge that a file lists twice: reject, sum, first, or keep for "
                 "edges whose features differ")
      ->type_name("HOW")
      ->check(one_of({"reject", "sum", "first", "keep"}))
      ->capture_default_str();
}

void add_reading_options(Arguments& app, DataOptions& options) {
  add_table_options(app, options.tables);
  add_step_options(app, options.steps);
}

std::vector<FileUse> with_data_files(const DataOptions& options, std::vector<FileUse> others) {
  std::vector<FileUse> files{source_file(options.source),
                             {"--nodes", options.tables.nodes, FileRole::input}};
  files.insert(files.end(), others.begin(), others.end());
  return files;
}

void add_nonfinite_option(Arguments& app, std::string& nonfinite) {
  app.add_option(
         "--nonfinite", nonfinite,
         "what to do with weights that are infinite or not a number: reject, or allow, with "
         "kernels that treat them exactly")
      ->type_name("HOW")
      ->check(one_of({"reject", "allow"}))
      ->capture_default_str();
}

Nonfinite parse_nonfinite(const std::string& text) {
  return text == "allow" ? Nonfinite::allow : Nonfinite::reject;
}

/// Edges that are kept apart have features that tell them apart, and stay as they are.
void require_reason_to_repeat(const Dataset& dataset, const GraphSteps& steps) {
  if (!dataset.graph.has_repeated_edges()) return;
  if (dataset.edge_features.count() == 0) {
    throw Error(ErrorCode::invalid_argument, "edges that are listed twice have no features",
                "--duplicates keep", "use --duplicates sum or first");
  }
  if (steps.transpose || steps.symmetrise || steps.self_loops != "keep") {
    throw Error(ErrorCode::unsupported, "some edges are listed twice, and stay as they are",
                "--duplicates keep",
                "list edges in the directions and with the loops that they are to have");
  }
}

LoadedData load(Session& session, const DataOptions& options) {
  if (options.source.empty()) {
    throw Error(ErrorCode::invalid_argument, "no data named", "",
                "give --data SOURCE, for example --data embedded:karate");
  }
  std::string source = options.source;
  if (session.given_seed() && starts_with(source, generate_prefix) && !names_seed(source)) {
    source = with_seed(source, *session.given_seed());
  }
  session.stage("opening");
  const Stopwatch watch;
  io::ReadOptions read;
  read.duplicates = parse_duplicates(options.duplicates);
  read.nonfinite = parse_nonfinite(options.nonfinite);
  read.progress = session.progress();
  read.format = options.format;
  options.tables.apply_to(read);
  LoadedData loaded{io::open(source, read), 0};
  loaded.seconds = watch.seconds();
  require_reason_to_repeat(loaded.dataset, options.steps);
  loaded.edges_read = loaded.dataset.graph.num_edges();
  session.add_notes(loaded.dataset.notes);
  loaded.steps = take_steps(session, options.steps, options.source, loaded.dataset);
  return loaded;
}

std::string with_seed(const std::string& description, std::uint64_t seed) {
  std::string seeded = description.substr(0, description.find('?')) + '?';
  for (const std::string& parameter : parameters_of(description)) {
    if (!is_seed(parameter)) seeded += parameter + '&';
  }
  return seeded + fmt::format("seed={}", seed);
}

void add_dataset_output_options(Arguments& app, OutputOptions& options) {
  app.add_option("-o,--output", options.path,
                 "file to write; its ending says the format: .npz, .mtx, .mtx.gz or .tsr")
      ->type_name("FILE");
  app.add_flag("--graph-only", options.graph_only,
               "write the graph without features, labels and split");
}

void require_savable(const OutputOptions& options) {
  if (!options.path.empty()) io::require_known_ending(options.path);
}

void drop_edge_arrays(Session& session, Dataset& dataset) {
  std::vector<std::string> dropped;
  std::erase_if(dataset.extras, [&](const auto& named) {
    const auto& [name, extra] = named;
    const bool of_edges = name.starts_with("edge_") && !extra.shape.empty() &&
                          extra.shape[0] == dataset.graph.num_edges();
    if (of_edges) dropped.push_back(name);
    return of_edges;
  });
  if (dropped.empty()) return;
  session.add_notes({fmt::format("{} left out: the edges are no longer those of the file",
                                 fmt::join(dropped, ", "))});
}

void save(Session& session, const OutputOptions& options, const Dataset& dataset) {
  if (options.path.empty()) return;
  session.stage("writing");
  io::save(dataset, options.path, options.graph_only, session.progress());
}

}  // namespace tessera::app
