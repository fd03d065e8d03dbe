// transept chat: a conversation with a model, by the model's own chat template. Lines come from stdin, answers go to
// stdout as they come.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/problem.h"
#include "base/stop_request.h"
#include "cli/answers.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "infer/generate.h"
#include "text/chat_template.h"
#include "text/utf8.h"

namespace transept {
namespace {

// Of cache, when the command does not say how much: models allow conversations that no one types.
constexpr int64_t kUsualContext = 8192;

constexpr const char* kHelp =
    "/reset        forget the conversation, but for the system message\n"
    "/system TEXT  begin anew with this system message; without a text: with none\n"
    "/exit         end, as Ctrl-D does\n"
    "/help         this\n"
    "//...         a message that begins with a slash\n"
    "Ctrl-C ends an answer.\n";

struct ChatOptions {
  std::string model, system, template_file, variables;
  int64_t context = 0;
  GenerateOptions generate;

  Problems check() const {
    Problems problems = generate.sampling.check();
    if (generate.max_tokens < 1)
      problems.push_back(
          {"--max-tokens", fmt::format("{} is out of range", generate.max_tokens), "allowed is 1 or more"});
    return problems;
  }
};

class Conversation {
 public:
  Conversation(const ChatOptions& options, const LoadedModel& loaded, ChatTemplate chat_template, Decoder& decoder)
      : options_(options.generate),
        tokenizer_(*loaded.tokenizer),
        template_(std::move(chat_template)),
        decoder_(decoder),
        more_(options.variables.empty() ? Json::object() : parse_json(options.variables, "--variables")) {
    options_.end_tokens = loaded.end_tokens;
    begin(options.system);
  }

  // Anew; "": without a system message.
  void begin(const std::string& system) {
    system_ = system;
    messages_ = Json::array();
    if (!system.empty()) messages_.push_back({{"role", "system"}, {"content", system}});
  }
  void reset() { begin(system_); }

  // Asks, and gives the answer out piece by piece; what is said is then part of the conversation. On an InputError the
  // conversation is as before.
  Generation ask(const std::string& text, const std::function<bool(std::string_view)>& emit) {
    Json messages = messages_;
    messages.push_back({{"role", "user"}, {"content", text}});
    const Prompt prompt = encoded(template_.render(messages, true, more_));
    reused_ = prompt.kept;
    fed_.clear();  // nothing is known of the decoder until the answer is there
    const Generation answer = generate(decoder_, tokenizer_, prompt, options_, emit);
    fed_ = prompt.tokens;
    fed_.insert(fed_.end(), answer.tokens.begin(), answer.tokens.end());
    fed_.resize(static_cast<size_t>(decoder_.position()));
    ++options_.sampling.seed;
    messages.push_back({{"role", "assistant"}, {"content", answer.text}});
    messages_ = std::move(messages);
    return answer;
  }

  const Json& messages() const { return messages_; }
  int64_t reused_tokens() const { return reused_; }  // of the last prompt

 private:
  Prompt encoded(const std::string& text) const {
    Prompt prompt;
    prompt.tokens = tokenizer_.encode(text, Specials::kRead);
    if (prompt.tokens.empty()) throw InputError("chat template", "gives an empty text", "use another one");
    if (prompt.length() > decoder_.context()) {
      throw InputError("conversation",
                       fmt::format("has {} tokens, more than the context of {}", prompt.length(), decoder_.context()),
                       "use /reset, or a larger --context");
    }
    // What the decoder has been fed stays when all of it is the beginning of this prompt, and something is left to
    // feed.
    const bool goes_on = !fed_.empty() && fed_.size() < prompt.tokens.size() &&
                         std::equal(fed_.begin(), fed_.end(), prompt.tokens.begin());
    prompt.kept = goes_on ? static_cast<int64_t>(fed_.size()) : 0;
    return prompt;
  }

  GenerateOptions options_;
  const Tokenizer& tokenizer_;
  ChatTemplate template_;
  Decoder& decoder_;
  Json more_, messages_;
  std::string system_;
  std::vector<int32_t> fed_;  // to the decoder
  int64_t reused_ = 0;
};

ChatTemplate template_of(const ChatOptions& options, const LoadedModel& loaded) {
  if (!options.template_file.empty()) return ChatTemplate::of_file(options.template_file, loaded.folder);
  std::optional<ChatTemplate> own = ChatTemplate::of_folder(loaded.folder);
  if (!own) throw InputError(options.model, "has no chat template", "give one with --template FILE");
  return std::move(*own);
}

Json to_json(const Generation& g, int64_t reused) {
  Json out = answer_json(g);
  out["reused_tokens"] = reused;
  return out;
}

// A command of the conversation; false: it ends.
bool obey(Conversation& conversation, const std::string& line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string name = line.substr(0, space), rest = line.substr(std::min(space + 1, line.size()));
  if (name == "/exit") return false;
  if (name == "/reset") {
    conversation.reset();
  } else if (name == "/system") {
    conversation.begin(rest);
  } else {
    if (name != "/help") fmt::print(stderr, "{} is no command\n", name);
    fmt::print(stderr, "{}", kHelp);
  }
  return true;
}

int run_chat(const ChatOptions& options, const Globals& globals) {
  throw_if_any(options.check());
  const LoadedModel loaded = load_model_argument(options.model);
  require_tokenizer(loaded, options.model);
  const ArchSpec& spec = loaded.model->spec();
  if (spec.encoder_decoder()) throw InputError(options.model, "is an encoder-decoder", "chat needs a decoder");
  ChatTemplate chat_template = template_of(options, loaded);
  ThreadPool pool = globals.pool();
  const int64_t context =
      options.context > 0 ? options.context : std::min<int64_t>(spec.max_position_embeddings, kUsualContext);
  Decoder decoder(*loaded.model, pool, context);
  Conversation conversation(options, loaded, std::move(chat_template), decoder);

  const bool terminal = isatty(STDIN_FILENO) != 0;
  Json answers = Json::array();
  while (true) {
    if (terminal) fmt::print(stderr, "> ");
    std::string line;
    if (!std::getline(std::cin, line)) break;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    if (line[0] == '/' && !line.starts_with("//")) {
      if (!obey(conversation, line)) break;
      continue;
    }
    if (line[0] == '/') line.erase(0, 1);
    catch_next_interrupt();
    const auto emit = [&](std::string_view piece) {
      if (!globals.json) {
        std::fwrite(piece.data(), 1, piece.size(), stdout);
        std::fflush(stdout);
      }
      return !stop_requested().load(std::memory_order_relaxed);
    };
    try {
      const Generation answer = conversation.ask(repair_utf8(line), emit);
      if (globals.json)
        answers.push_back(to_json(answer, conversation.reused_tokens()));
      else
        std::printf("\n");
      std::fflush(stdout);
    } catch (const InputError& e) {
      // A person at a terminal can mend it.
      if (!terminal) throw;
      for (const Problem& p : e.problems()) fmt::print(stderr, "error: {}\n", p.to_string());
    }
    release_interrupt();
  }
  if (terminal) fmt::print(stderr, "\n");
  if (globals.json) print_json({{"messages", conversation.messages()}, {"answers", answers}});
  return 0;
}

}  // namespace

void register_chat(Registry& registry) {
  auto o = std::make_shared<ChatOptions>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("chat", "a conversation with a model, a message a line", [o, &globals] {
    o->generate.sampling.seed = globals.seed;
    return run_chat(*o, globals);
  });
  sub->add_option("MODEL", o->model, "model folder")->required();
  sub->add_option("--system", o->system, "system message");
  sub->add_option("--template", o->template_file, "chat template to use instead of the model's own (a Jinja file)");
  sub->add_option("--variables", o->variables, "JSON object of what else the template may know, such as tools");
  sub->add_option("--max-tokens", o->generate.max_tokens, "tokens that an answer may have at the most")
      ->capture_default_str();
  add_sampling_options(*sub, o->generate.sampling);
  sub->add_option("--context", o->context,
                  fmt::format("longest conversation in tokens (default: the model's, {} at most)", kUsualContext))
      ->check(at_least_one());
}

}  // namespace transept
