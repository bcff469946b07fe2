// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "colour.hpp"
#include "output.hpp"
#include "table.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/io/notes.hpp"

namespace tessera::app {
namespace {

/// Raised when a key of docs/json.md goes away or changes its meaning.
constexpr int schema_number = 1;

/// What is listed of tables may be long.
constexpr std::size_t report_width = 80;

/// Where the second column of a table begins, of which this is a line.
std::size_t second_column(const std::string& line) {
  const std::size_t cell = line.find_first_not_of(' ');
  const std::size_t gap = cell == std::string::npos ? cell : line.find("  ", cell);
  const std::size_t column = gap == std::string::npos ? gap : line.find_first_not_of(' ', gap);
  constexpr std::size_t narrowest = std::string_view("  note  ").size();
  return cell != 2 || column == std::string::npos ? narrowest : std::max(column, narrowest);
}

/// The notes as rows of the table below the headline, those on tables under their topics; a report
/// without a headline has them last.
std::string with_notes(const std::string& report, const std::vector<std::string>& notes) {
  const bool has_headline = !report.empty() && report.front() != ' ';
  const std::size_t below = has_headline ? report.find('\n') + 1 : report.size();
  const std::size_t end = std::min(report.find('\n', below), report.size());
  std::size_t column = second_column(report.substr(below, end - below));
  for (const std::string& note : notes) {
    column = std::max(column, io::parted(note).topic.size() + std::string_view("    ").size());
  }
  std::string rows;
  for (const std::string& note : notes) {
    const auto [topic, text] = io::parted(note);
    std::string row = "  " + std::string(topic.empty() ? "note" : topic);
    row.resize(column, ' ');
    const std::string line = printable(text);
    rows += row + (topic.empty() ? line : wrapped(line, column, report_width)) + '\n';
  }
  return report.substr(0, below) + rows + report.substr(below);
}

}  // namespace

Session::Session(const CommonOptions& options)
    : options_(options),
      line_(options.quiet ? ProgressLine::Style::hidden : ProgressLine::suitable()),
      interrupt_([this] { line_.tick(); },
                 [this] {
                   line_.clear();
                   std::fputs(("tessera: interrupted; " + kept() + '\n').c_str(), stderr);
                 },
                 [this] { return kept(); }),
      progress_([this](std::string_view words, std::int64_t done, std::int64_t total) {
        interrupt_.check();
        line_.update(words, done, total);
      }) {
  if (options_.threads > 0) set_num_threads(options_.threads);
}

void Session::on_interrupt(std::function<std::string()> kept) {
  const std::lock_guard lock(kept_mutex_);
  kept_ = std::move(kept);
}

std::string Session::kept() const {
  const std::lock_guard lock(kept_mutex_);
  return kept_ ? kept_() : "nothing was written";
}

void Session::add_notes(const std::vector<std::string>& notes) {
  if (!notes_) notes_.emplace();
  for (const std::string& note : notes) {
    if (std::find(notes_->begin(), notes_->end(), note) == notes_->end()) notes_->push_back(note);
  }
}

void Session::deliver(const std::string& report, const Json& json) {
  const std::string text = printable(notes_ ? with_notes(report, *notes_) : report, true);
  deliver_text(colour_on(STDOUT_FILENO) ? painted_report(text) : text, json);
}

void Session::deliver_text(const std::string& text, const Json& json) {
  interrupt_.check();
  line_.clear();
  const bool json_on_stdout = options_.json == "-";
  if (!options_.json.empty()) {
    Json numbered = Json::object();
    numbered["verb"];  // stands first, whatever else there is
    numbered["schema"] = schema_number;
    numbered.update(json);
    if (notes_) numbered["notes"] = *notes_;
    const std::string record = numbered.written();
    json_on_stdout ? write_stdout(record) : write_report(options_.json, record);
  }
  if (!json_on_stdout && !options_.quiet) write_stdout(text);
}

}  // namespace tessera::app
