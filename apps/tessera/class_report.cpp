// SPDX-License-Identifier: Apache-2.0
#include "class_report.hpp"

#include <fmt/format.h>

#include "picture/class_report_picture.hpp"
#include "tessera/core/error.hpp"
#include "tessera/io/writing.hpp"

namespace tessera::app {
namespace {

constexpr const char* option = "--report";

bool is_text(const std::string& path) { return path.ends_with(".txt"); }
bool is_json(const std::string& path) { return path.ends_with(".json"); }
bool is_picture(const std::string& path) {
  return path.ends_with(".svg") || path.ends_with(".png");
}

}  // namespace

void add_report_option(Arguments& app, std::vector<std::string>& paths) {
  app.add_option(option, paths,
                 "how good it is class by class: .txt, .json, or .svg and .png for the confusion "
                 "matrix and the calibration; may be given several times")
      ->type_name("FILE")
      ->repeatable();
}

void require_report_endings(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (is_text(path) || is_json(path) || is_picture(path)) continue;
    throw Error(ErrorCode::invalid_argument,
                "the ending of '" + path + "' does not say which kind of report to write", option,
                "use .txt, .json, .svg or .png");
  }
}

std::vector<FileUse> report_files(const std::vector<std::string>& paths) {
  std::vector<FileUse> uses;
  for (const std::string& path : paths) {
    uses.push_back({option, path,
                    is_json(path)      ? FileRole::report
                    : is_picture(path) ? FileRole::picture
                                       : FileRole::output});
  }
  return uses;
}

void write_class_reports(const TitledReport& titled, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (is_picture(path)) {
      picture::write(picture::class_report_picture(
                         fmt::format("{} on {}: {}", titled.model, titled.data, titled.judged_on),
                         titled.report),
                     path);
    } else {
      io::write_text_file(
          path, is_json(path) ? class_report_json(titled).written() : class_report_text(titled));
    }
  }
}

}  // namespace tessera::app
