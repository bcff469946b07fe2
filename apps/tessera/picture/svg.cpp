// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <span>

#include <fmt/format.h>

#include "picture/picture.hpp"
#include "picture/png_file.hpp"
#include "tessera/core/printable.hpp"

namespace tessera::app::picture {
namespace {

std::string hex(const Colour& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

/// XML has no place for most of what is not printable.
std::string escaped(std::string_view text) {
  std::string xml;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': xml += "&amp;"; break;
      case '<': xml += "&lt;"; break;
      case '>': xml += "&gt;"; break;
      default: xml += c;
    }
  }
  return xml;
}

std::string base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= count ? digits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

std::string place(const Rect& rect) {
  return fmt::format("x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"", rect.x, rect.y,
                     rect.width, rect.height);
}

std::string element(const Box& box) {
  return fmt::format("<rect {} fill=\"{}\"/>\n", place(box.place), hex(box.fill));
}

std::string element(const Line& line) {
  std::string points;
  for (const Point& point : line.points) points += fmt::format("{:.2f},{:.2f} ", point.x, point.y);
  if (!points.empty()) points.pop_back();
  return fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
      "stroke-linejoin=\"round\"{}{}/>\n",
      points, hex(line.colour), line.width,
      line.opacity < 1 ? fmt::format(" stroke-opacity=\"{:.2f}\"", line.opacity) : "",
      line.dashed ? " stroke-dasharray=\"4 4\"" : "");
}

std::string element(const Text& text) {
  constexpr const char* anchors[] = {"start", "middle", "end"};
  return fmt::format(
      "<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"{}\">{}</text>\n",
      text.at.x, text.at.y, anchors[static_cast<int>(text.anchor)], text.size, hex(text.colour),
      escaped(text.words));
}

std::string element(const Raster& raster) {
  const std::string png = png_file(raster.columns, raster.rows, raster.cells, raster.palette);
  return fmt::format(
      "<image {} preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" "
      "href=\"data:image/png;base64,{}\"/>\n",
      place(raster.place), base64(png));
}

}  // namespace

std::string to_svg(const Picture& picture) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\">\n<!-- {2} -->\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      picture.width, picture.height, maker);
  for (const auto& shape : picture.shapes) {
    svg += std::visit([](const auto& one) { return element(one); }, shape);
  }
  return svg + "</svg>\n";
}

}  // namespace tessera::app::picture
