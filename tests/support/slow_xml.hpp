// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/slow_text.hpp"

/// XML read in the slowest and plainest way, and written in ways that differ in everything that
/// does not count.
namespace tessera::test {

struct XmlNode {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  ///< of the element itself, without what its children hold
  std::vector<XmlNode> children;
};

namespace slow_xml_detail {

inline void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

inline std::string unescaped(std::string text) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"&lt;", "<"},
                                                        {"&gt;", ">"},
                                                        {"&quot;", "\""},
                                                        {"&apos;", "'"},
                                                        {"&#65;", "A"},
                                                        {"&#x42;", "B"},
                                                        {"&amp;", "&"}}) {
    replace_all(text, name, value);
  }
  return text;
}

inline std::string without_prefix(const std::string& name) {
  return name.substr(name.find(':') == std::string::npos ? 0 : name.find(':') + 1);
}

/// The inside of a tag without its angles: "node id='a' /".
inline XmlNode tag_of(const std::string& inside) {
  XmlNode node;
  std::size_t i = 0;
  const auto skip = [&] {
    while (i < inside.size() && std::isspace(inside[i]) != 0) ++i;
  };
  while (i < inside.size() && std::isspace(inside[i]) == 0 && inside[i] != '/')
    node.name += inside[i++];
  node.name = without_prefix(node.name);
  for (skip(); i < inside.size() && inside[i] != '/'; skip()) {
    std::string name, value;
    while (inside[i] != '=' && std::isspace(inside[i]) == 0) name += inside[i++];
    while (inside[i] != '"' && inside[i] != '\'') ++i;
    for (const char quote = inside[i++]; inside[i] != quote; ++i) value += inside[i];
    ++i;
    node.attributes[name] = unescaped(value);
  }
  return node;
}

}  // namespace slow_xml_detail

/// The children of the outermost level.
inline XmlNode slow_xml(const std::string& text) {
  using namespace slow_xml_detail;
  std::vector<XmlNode> open(1);
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 4, "<!--") == 0) {
      i = text.find("-->", i) + 3;
    } else if (text.compare(i, 2, "<?") == 0) {
      i = text.find("?>", i) + 2;
    } else if (text.compare(i, 9, "<![CDATA[") == 0) {
      const std::size_t end = text.find("]]>", i);
      open.back().text += text.substr(i + 9, end - i - 9);
      i = end + 3;
    } else if (text[i] == '<') {
      std::size_t end = i + 1;
      char quote = 0;
      for (; quote != 0 || text[end] != '>'; ++end) {
        if (quote == 0 && (text[end] == '"' || text[end] == '\'')) {
          quote = text[end];
        } else if (text[end] == quote) {
          quote = 0;
        }
      }
      const std::string inside = text.substr(i + 1, end - i - 1);
      if (inside[0] != '/') open.push_back(tag_of(inside));
      if (inside[0] == '/' || inside.back() == '/') {
        XmlNode node = std::move(open.back());
        open.pop_back();
        open.back().children.push_back(std::move(node));
      }
      i = end + 1;
    } else {
      const std::size_t end = std::min(text.find('<', i), text.size());
      open.back().text += unescaped(text.substr(i, end - i));
      i = end;
    }
  }
  if (open.size() != 1) throw std::runtime_error("the slow parser found tags that do not close");
  return open[0];
}

/// Characters as entities where they must be, and where it so falls.
inline std::string escaped(const std::string& text, Draws& draws) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<': result += "&lt;"; break;
      case '&': result += "&amp;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&apos;"; break;
      case '>': result += draws.often() ? "&gt;" : ">"; break;
      case 'A': result += draws.seldom() ? "&#65;" : "A"; break;
      case 'B': result += draws.seldom() ? "&#x42;" : "B"; break;
      default: result += c;
    }
  }
  return result;
}

inline std::string xml_blanks(Draws& draws) {
  std::string blanks;
  while (draws.seldom())
    blanks +=
        std::vector<std::string>{" ", "\n", "\r\n", "\t"}[static_cast<std::size_t>(draws.below(4))];
  return blanks;
}

inline std::string xml_remark(Draws& draws) {
  return xml_blanks(draws) + (draws.seldom() ? "<!-- <node id='no'/> -- > -->" : "") +
         xml_blanks(draws);
}

/// The element as text. Its name and attributes stay, and its text but for blanks around it.
inline std::string written(const XmlNode& node, const std::string& prefix, Draws& draws) {
  std::string text = "<" + prefix + node.name;
  std::vector<std::pair<std::string, std::string>> attributes(node.attributes.begin(),
                                                              node.attributes.end());
  for (std::size_t i = attributes.size(); i > 1; --i) {
    std::swap(attributes[i - 1],
              attributes[static_cast<std::size_t>(draws.below(static_cast<int>(i)))]);
  }
  for (const auto& [name, value] : attributes) {
    const std::string quote = draws.often() ? "\"" : "'";
    text += " " + xml_blanks(draws) + name + (draws.seldom() ? " = " : "=") + quote +
            escaped(value, draws) + quote;
  }
  text += xml_blanks(draws);
  if (node.children.empty() && node.text.empty() && draws.often()) return text + "/>";
  text += ">" + xml_remark(draws);
  const bool plain = node.text.find("]]>") == std::string::npos;
  text += plain && draws.seldom() ? "<![CDATA[" + node.text + "]]>" : escaped(node.text, draws);
  for (const XmlNode& child : node.children)
    text += xml_remark(draws) + written(child, prefix, draws);
  return text + xml_remark(draws) + "</" + prefix + node.name + (draws.seldom() ? " >" : ">");
}

}  // namespace tessera::test
