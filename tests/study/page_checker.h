// A checker of our report pages: tags balanced, ids unique and references to them met, nothing that reaches outside the
// file. It knows the subset of HTML that the pages use: quoted attributes, raw text in <style> and <script>, void
// elements.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace transept {

struct Element {
  std::string tag;
  std::map<std::string, std::string> attributes;
  std::string text;  // of itself alone, still escaped
};

struct CheckedPage {
  std::vector<Element> elements;
  std::vector<std::string> problems;

  std::vector<Element> all(std::string_view tag, std::string_view in_class = {}) const {
    std::vector<Element> found;
    for (const Element& e : elements) {
      if (e.tag != tag) continue;
      const auto c = e.attributes.find("class");
      const std::string classes = " " + (c == e.attributes.end() ? "" : c->second) + " ";
      if (in_class.empty() || classes.find(" " + std::string(in_class) + " ") != std::string::npos) found.push_back(e);
    }
    return found;
  }
};

inline CheckedPage check_page(std::string_view html) {
  static const std::set<std::string, std::less<>> kVoid{"meta", "br", "hr", "img", "input", "link"};
  CheckedPage page;
  std::vector<size_t> open;
  std::set<std::string> ids;
  std::vector<std::string> references;
  const auto problem = [&](std::string text) { page.problems.push_back(std::move(text)); };
  const auto is_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  size_t at = 0;
  while (at < html.size()) {
    if (html[at] != '<') {
      if (html[at] == '>') problem("stray > at " + std::to_string(at));
      if (html[at] == '&') {
        const size_t end = html.find(';', at);
        if (end == std::string_view::npos || end - at > 8) problem("stray & at " + std::to_string(at));
      }
      if (!open.empty()) page.elements[open.back()].text += html[at];
      ++at;
      continue;
    }
    if (html.substr(at, 15) == "<!DOCTYPE html>") {
      at += 15;
      continue;
    }
    const bool closing = html.substr(at, 2) == "</";
    at += closing ? 2 : 1;
    size_t start = at;
    while (at < html.size() && is_name(html[at])) ++at;
    Element e{std::string(html.substr(start, at - start)), {}, {}};
    if (e.tag.empty()) problem("stray < at " + std::to_string(start - 1));
    bool self_closed = false;
    while (at < html.size() && html[at] != '>') {
      if (html[at] == ' ') {
        ++at;
      } else if (html[at] == '/') {
        self_closed = true;
        ++at;
      } else if (is_name(html[at])) {
        start = at;
        while (at < html.size() && is_name(html[at])) ++at;
        const std::string key(html.substr(start, at - start));
        std::string value;
        if (html.substr(at, 2) == "=\"") {
          const size_t end = html.find('"', at + 2);
          if (end == std::string_view::npos) {
            problem("open quote in <" + e.tag + ">");
            return page;
          }
          value = html.substr(at + 2, end - at - 2);
          at = end + 1;
          if (value.find('<') != std::string::npos) problem("< in attribute " + key);
        }
        if (!e.attributes.emplace(key, value).second) problem("attribute " + key + " twice in <" + e.tag + ">");
      } else {
        problem("unexpected character in <" + e.tag + ">");
        ++at;
      }
    }
    ++at;
    if (closing) {
      if (open.empty() || page.elements[open.back()].tag != e.tag) {
        problem("</" + e.tag + "> closes " + (open.empty() ? "nothing" : "<" + page.elements[open.back()].tag + ">"));
      } else {
        open.pop_back();
      }
      continue;
    }
    if (const auto id = e.attributes.find("id"); id != e.attributes.end() && !ids.insert(id->second).second) {
      problem("id " + id->second + " twice");
    }
    for (const auto& [key, value] : e.attributes) {
      if (key.substr(0, 2) == "on") problem("handler " + key + " in <" + e.tag + ">");
      for (const char* loads : {"src", "href", "srcset", "action", "style"}) {
        if (key == loads) problem("attribute " + key + " in <" + e.tag + ">");
      }
      if (key != "aria-labelledby") continue;
      size_t from = 0;
      while (from <= value.size()) {
        const size_t end = std::min(value.find(' ', from), value.size());
        references.push_back(value.substr(from, end - from));
        from = end + 1;
      }
    }
    page.elements.push_back(e);
    if (self_closed || kVoid.count(e.tag)) continue;
    open.push_back(page.elements.size() - 1);
    if (e.tag == "style" || e.tag == "script") {
      const size_t end = html.find("</" + e.tag, at);
      page.elements.back().text = html.substr(at, end - at);
      at = std::min(end, html.size());
    }
  }
  for (const size_t i : open) problem("<" + page.elements[i].tag + "> is never closed");
  for (const std::string& r : references) {
    if (!ids.count(r)) problem("no element has the id " + r);
  }
  for (const char* outside : {"http:", "https:", "//cdn", "@import", "url(", "fetch(", "XMLHttpRequest", "import("}) {
    if (html.find(outside) != std::string_view::npos) problem(std::string("reaches outside: ") + outside);
  }
  return page;
}

}  // namespace transept
