#include "study/html.h"

#include <gtest/gtest.h>

namespace transept {
namespace {

TEST(EscapeHtml, Markup) {
  EXPECT_EQ(escape_html("</script><img onerror='x' a=\"b\">&"),
            "&lt;/script&gt;&lt;img onerror=&#39;x&#39; a=&quot;b&quot;&gt;&amp;");
}

TEST(EscapeHtml, WhatNoPageMayHold) {
  EXPECT_EQ(escape_html(std::string_view("a\0b\x1b\x7f\t\n", 7)), "a\uFFFDb\uFFFD\uFFFD\t\n");
  EXPECT_EQ(escape_html("ok é 語 😀"), "ok é 語 😀");
  // Bare continuation, overlong slash, a surrogate, beyond U+10FFFF, a sequence cut short.
  EXPECT_EQ(escape_html("\x80"), "\uFFFD");
  EXPECT_EQ(escape_html("\xc0\xaf"), "\uFFFD\uFFFD");
  EXPECT_EQ(escape_html("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(escape_html("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(escape_html("\xe2\x82<"), "\uFFFD\uFFFD&lt;");
}

TEST(TextLength, CountsCodePoints) { EXPECT_EQ(text_length("é語a"), 3); }

}  // namespace
}  // namespace transept
