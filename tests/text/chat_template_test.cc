#include "text/chat_template.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/goldens.h"
#include "support/temp_folder.h"
#include "support/throws.h"
#include "text/tokenizer.h"

namespace transept {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

const Json kHi = Json::array({{{"role", "user"}, {"content", "hi"}}});

std::string render(const ChatTemplate& t, const Json& messages = kHi, const Json& more = Json::object()) {
  return t.render(messages, true, more);
}

TEST(ChatTemplate, IsFoundInTheFolder) {
  const TempFolder folder;
  EXPECT_FALSE(ChatTemplate::of_folder(folder.path()));
  folder.put("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": null})");
  EXPECT_FALSE(ChatTemplate::of_folder(folder.path()));
  folder.put("chat_template.json", R"({"chat_template": "legacy"})");
  EXPECT_EQ(render(*ChatTemplate::of_folder(folder.path())), "legacy");
  folder.put("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": "{{ bos_token }}config"})");
  EXPECT_EQ(render(*ChatTemplate::of_folder(folder.path())), "<s>config");
  folder.put("chat_template.jinja", "{{ bos_token }}jinja");
  EXPECT_EQ(render(*ChatTemplate::of_folder(folder.path())), "<s>jinja");
  const auto file = folder.put("other.jinja", "{{ bos_token }}other");
  EXPECT_EQ(render(ChatTemplate::of_file(file, folder.path())), "<s>other");
}

TEST(ChatTemplate, OneOfSeveral) {
  const TempFolder folder;
  folder.put("tokenizer_config.json",
             R"({"chat_template": [{"name": "tool_use", "template": "tools {{ tools|length }}"},
                                          {"name": "default", "template": "plain {{ tools }}"}]})");
  const auto t = ChatTemplate::of_folder(folder.path());
  EXPECT_EQ(render(*t), "plain None");
  EXPECT_EQ(render(*t, kHi, {{"tools", Json::array({{{"name", "f"}}})}}), "tools 1");
  folder.put("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "x"}]})");
  EXPECT_THAT(input_error([&] { ChatTemplate::of_folder(folder.path()); }), HasSubstr("\"default\""));
  folder.put("tokenizer_config.json", R"({"chat_template": ["x"]})");
  EXPECT_THAT(input_error([&] { ChatTemplate::of_folder(folder.path()); }), HasSubstr("chat_template"));
  folder.put("tokenizer_config.json", R"({"chat_template": 1})");
  EXPECT_THAT(input_error([&] { ChatTemplate::of_folder(folder.path()); }), HasSubstr("chat_template"));
  folder.put("tokenizer_config.json", R"({"chat_template": "\n{% if %}"})");
  EXPECT_THAT(input_error([&] { ChatTemplate::of_folder(folder.path()); }),
              AllOf(HasSubstr("tokenizer_config.json: chat_template: line 2")));
}

TEST(ChatTemplate, SpecialTokens) {
  const TempFolder folder;
  folder.put("chat_template.jinja", "{{ bos_token }}|{{ eos_token }}|{{ pad_token }}|{{ unk_token is defined }}");
  EXPECT_EQ(render(*ChatTemplate::of_folder(folder.path())), "|||False");
  folder.put("special_tokens_map.json",
             R"({"bos_token": "<other>", "pad_token": {"content": "<pad>", "lstrip": false}})");
  folder.put("tokenizer_config.json", R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "unk_token": null})");
  const auto t = ChatTemplate::of_folder(folder.path());
  EXPECT_EQ(render(*t), "<s>|</s>|<pad>|False");
  EXPECT_EQ(render(*t, kHi, {{"bos_token", "<mine>"}}), "<mine>|</s>|<pad>|False");
  folder.put("tokenizer_config.json", R"({"bos_token": 3})");
  EXPECT_THAT(input_error([&] { ChatTemplate::of_folder(folder.path()); }), HasSubstr("bos_token"));
}

TEST(ChatTemplate, MessagesAreAsTransformersPreparesThem) {
  const TempFolder folder;
  const Json document = read_json(goldens() / "text/chat_templates.json");
  EXPECT_GE(document.at("chats").size(), 7U);
  for (const Json& c : document.at("chats")) {
    folder.put("chat_template.jinja", c.at("template").get<std::string>());
    EXPECT_EQ(ChatTemplate::of_folder(folder.path())
                  ->render(c.at("messages"), c.at("add_generation_prompt").get<bool>(), c.at("more")),
              c.at("output").get<std::string>());
  }
}

TEST(ChatTemplate, WrongMessagesAreListed) {
  const TempFolder folder;
  folder.put("chat_template.jinja", "{% if messages|length > 1 %}{{ raise_exception('one at a time') }}{% endif %}");
  const auto t = ChatTemplate::of_folder(folder.path());
  const auto said = [&](const char* messages) {
    return input_error([&] { t->render(parse_json(messages, "test"), true, Json::object()); });
  };
  EXPECT_THAT(said("{}"), HasSubstr("messages: are no list"));
  EXPECT_THAT(said("[]"), HasSubstr("messages: are empty"));
  EXPECT_THAT(said(R"([1, {}, {"role": 1}, {"role": "user", "content": 1}])"),
              AllOf(HasSubstr("messages[0]: is no object"), HasSubstr("messages[1].role"),
                    HasSubstr("messages[2].role"), HasSubstr("messages[3].content")));
  EXPECT_THAT(said(R"([{"role": "user"}, {"role": "user"}])"), HasSubstr("one at a time"));
  EXPECT_THAT(input_error([&] { t->render(kHi, true, Json::array()); }), HasSubstr("variables"));
}

// The template writes the begin token, so the tokenizer must not: whether it would for a plain text or not, and whether
// the template does or not, there is exactly the one that the template writes.
TEST(ChatTemplate, ExactlyTheBeginTokensThatTheTemplateWrites) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += i % 3 == 0 ? "hi there " : i % 3 == 1 ? "the king has\n" : "lost a crown. ";
  const std::string_view view = text;
  const TempFolder folder;
  train_bpe(std::span(&view, 1), {300, 1 << 20})->save(folder.path());
  for (const bool adds : {false, true}) {
    Json config = read_json(folder / "tokenizer_config.json");
    config["add_bos_token"] = adds;
    config["bos_token"] = "<s>";
    config["eos_token"] = "</s>";
    folder.put("tokenizer_config.json", config.dump());
    const auto tokenizer = load_tokenizer(folder.path());
    ASSERT_EQ(tokenizer->adds_bos(), adds);
    for (const int written : {0, 1}) {
      folder.put("chat_template.jinja", std::string(written ? "{{ bos_token }}" : "") +
                                            "{% for m in messages %}[{{ m.content }}]{{ eos_token }}{% endfor %}{% if "
                                            "add_generation_prompt %}>{% endif %}");
      const std::string rendered = render(*ChatTemplate::of_folder(folder.path()));
      const Ids ids = tokenizer->encode(rendered, Specials::kRead);
      EXPECT_EQ(std::count(ids.begin(), ids.end(), *tokenizer->bos()), written) << adds;
      EXPECT_EQ(std::count(ids.begin(), ids.end(), *tokenizer->eos()), 1) << adds;
      if (written) {
        EXPECT_EQ(ids.front(), *tokenizer->bos());
      }
    }
  }
}

}  // namespace
}  // namespace transept
