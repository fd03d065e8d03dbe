// The grammar is a page of lists. A scene has a title, a place, and speeches; a speech has a speaker's name, a colon,
// and one to four sentences whose parts are drawn from the lists, so that spelling, names, agreement and the shape of a
// dialogue can be learnt.
#include "data/synthetic.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"
#include "base/rng.h"

namespace transept {
namespace {

using Words = std::string_view;

constexpr std::array<Words, 12> kSpeakers{"ALBAN",   "BEATRIX", "CONRAD",  "DOROTHY", "EDMUND",   "FLAVIA",
                                          "GREGORY", "HELENA",  "ISIDORE", "JULIANA", "LAURENCE", "MARGERY"};
constexpr std::array<Words, 10> kTitles{"my lord", "good sister", "old friend",  "sweet cousin",  "sir",
                                        "my lady", "brother",     "dear father", "fair stranger", "good captain"};
constexpr std::array<Words, 10> kPlaces{
    "A hall in the castle", "The garden",       "A street near the harbour", "Before the gates",
    "The queen's chamber",  "A field at night", "The deck of a ship",        "A tavern",
    "The forest",           "A church yard"};
constexpr std::array<Words, 14> kPeople{"the king",      "the queen",   "my brother", "the captain",     "the old duke",
                                        "your daughter", "the fool",    "our mother", "the priest",      "a stranger",
                                        "the sailor",    "his servant", "the widow",  "the young prince"};
constexpr std::array<Words, 16> kThings{"the crown",       "a letter",        "the silver ring", "this sword",
                                        "a cup of wine",   "the broken bell", "my heart",        "the old house",
                                        "a bitter song",   "the golden key",  "an honest word",  "the long road",
                                        "the winter rose", "a heavy secret",  "the bridge",      "the quiet sea"};
constexpr std::array<Words, 14> kActs{
    "has found",  "will keep", "has lost",    "must carry", "shall never sell", "would give away", "cannot forget",
    "has broken", "did steal", "shall guard", "has seen",   "will bury",        "must defend",     "has forgiven"};
constexpr std::array<Words, 12> kTimes{"before the morning",    "in the dead of night", "when the bells are still",
                                       "after the battle",      "ere the moon is down", "on the first day of spring",
                                       "while the city sleeps", "at the break of day",  "in the rain",
                                       "beneath the stars",     "at the end of summer", "without a word"};
constexpr std::array<Words, 10> kFeelings{"afraid", "weary", "glad",  "ashamed", "sick at heart",
                                          "merry",  "alone", "proud", "angry",   "content"};
constexpr std::array<Words, 10> kCalls{"Alas", "Nay",      "Come",        "Peace",     "Hark",
                                       "Well", "In truth", "By my faith", "O heavens", "Enough"};
constexpr std::array<Words, 8> kStage{"Enter",          "Exit",           "Enter, with a torch,", "Enter, running,",
                                      "Exit, weeping,", "Enter, masked,", "Exit, slowly,",        "Enter, armed,"};

class Writer {
 public:
  Writer(uint64_t bytes, uint64_t seed) : bytes_(bytes), rng_(seed, Stream::kText) { text_.reserve(bytes + 4096); }

  std::string write() {
    for (uint64_t scene = 1; text_.size() < bytes_; ++scene) {
      text_ += "SCENE " + std::to_string(scene) + ". ";
      text_ += pick(kPlaces);
      text_ += ".\n\n";
      size_t speaker = draw(kSpeakers.size());
      for (uint64_t speeches = 6 + draw(10); speeches > 0 && text_.size() < bytes_; --speeches) {
        if (draw(6) == 0) {
          text_ += '[';
          text_ += pick(kStage);
          text_ += ' ';
          text_ += kSpeakers[speaker];
          text_ += "]\n\n";
        }
        text_ += kSpeakers[speaker];
        text_ += ":\n";
        for (uint64_t sentences = 1 + draw(4); sentences > 0; --sentences) sentence();
        text_ += '\n';
        speaker = (speaker + 1 + draw(kSpeakers.size() - 1)) % kSpeakers.size();  // somebody else answers
      }
    }
    text_.resize(bytes_);
    return std::move(text_);
  }

 private:
  uint64_t draw(uint64_t bound) { return rng_.below(next_++, bound); }
  template <size_t N>
  Words pick(const std::array<Words, N>& words) {
    return words[draw(N)];
  }

  // Writes a pattern in which each letter after '%' is a draw from a list; the first letter of the sentence becomes a
  // capital.
  void sentence() {
    constexpr std::array<Words, 12> kPatterns{
        "%c, %t, %p %a %o.",
        "%p %a %o %w.",
        "I am %f, %t, and %p %a %o.",
        "who %a %o %w?",
        "%c! %p %a %o.",
        "if %p %a %o, then I am %f.",
        "tell me, %t: is it %p who %a %o?",
        "%w I saw %p, and I was %f.",
        "no man %a %o %w.",
        "%c, I would rather lose %o than see %p %f.",
        "is it %o that %p %a?",
        "give me %o, %t, and be not %f.",
    };
    const size_t begin = text_.size();
    const Words pattern = pick(kPatterns);
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] != '%') {
        text_ += pattern[i];
        continue;
      }
      switch (pattern[++i]) {
        case 'c':
          text_ += pick(kCalls);
          break;
        case 't':
          text_ += pick(kTitles);
          break;
        case 'p':
          text_ += pick(kPeople);
          break;
        case 'a':
          text_ += pick(kActs);
          break;
        case 'o':
          text_ += pick(kThings);
          break;
        case 'w':
          text_ += pick(kTimes);
          break;
        default:
          text_ += pick(kFeelings);
          break;
      }
    }
    if (text_[begin] >= 'a' && text_[begin] <= 'z') text_[begin] = static_cast<char>(text_[begin] - 'a' + 'A');
    text_ += '\n';
  }

  uint64_t bytes_, next_ = 0;
  CounterRng rng_;
  std::string text_;
};

}  // namespace

std::string synthetic_text(uint64_t bytes, uint64_t seed) { return Writer(bytes, seed).write(); }

std::string synthetic_pairs(PairTask task, int64_t lines, int64_t min_length, int64_t max_length, uint64_t seed) {
  TRANSEPT_CHECK(min_length >= 1 && max_length >= min_length);
  const CounterRng rng(seed, Stream::kText, 1);
  uint64_t next = 0;
  std::string text, source;
  for (int64_t line = 0; line < lines; ++line) {
    source.clear();
    const auto lengths = static_cast<uint64_t>(max_length - min_length + 1);
    for (int64_t left = min_length + static_cast<int64_t>(rng.below(next++, lengths)); left > 0; --left)
      source += static_cast<char>('0' + rng.below(next++, 10));
    text += source;
    text += '\t';
    if (task == PairTask::kReverse) std::reverse(source.begin(), source.end());
    text += source;
    text += '\n';
  }
  return text;
}

}  // namespace transept
