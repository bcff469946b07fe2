// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "arguments.hpp"
#include "files.hpp"
#include "json.hpp"
#include "tessera/train/class_report.hpp"

/// `--report`: how good predictions are class by class, as text, JSON or a picture.
namespace tessera::app {

/// A report and what it is about.
struct TitledReport {
  std::string data;
  std::string model;
  std::string judged_on;  ///< "the test part of the training's split"
  train::ClassReport report;
};

/// For 80 columns. Of many classes those that most items are of are shown, and in place of a wide
/// confusion matrix the most frequent confusions.
std::string class_report_text(const TitledReport& titled);
Json class_report_json(const TitledReport& titled);

void add_report_option(Arguments& app, std::vector<std::string>& paths);

/// Throws where the ending of a name says no kind of report.
void require_report_endings(const std::vector<std::string>& paths);

/// The files as uses of the option.
std::vector<FileUse> report_files(const std::vector<std::string>& paths);

void write_class_reports(const TitledReport& titled, const std::vector<std::string>& paths);

}  // namespace tessera::app
