// From text to what a model reads and is scored on, by objective.
#pragma once

#include <cstdint>
#include <span>

#include "data/batch.h"
#include "data/corpus.h"
#include "data/corruption.h"
#include "data/objective.h"

namespace transept {

struct ExampleOptions {
  Objective objective = Objective::kCausal;
  bool separate_documents = false;  // documents of a stream do not see each other: each is a sequence of its own
  bool permute_sentences = false;   // denoising: beside infilling
};

// Tokens of text that make one example of at most `context` tokens a sequence: causal reads one more, for the last
// target; masked tokens leave room for what frames them; a span example reads as many as leave `context` after
// corruption; denoising and pairs keep a place for the token that begins or ends a sequence.
int64_t window_tokens(Objective objective, int64_t context, const Vocabulary& vocabulary);

// What an encoder alone reads of a text: bos, the text, eos, as BERT's [CLS] and [SEP] frame a sequence
// (arXiv:1810.04805, section 3), so that the first hidden state has seen all of it and stands for it (pooling "cls").
// Each only where the vocabulary has it, and the text does not begin or end with it already.
std::vector<int32_t> framed(std::span<const int32_t> text, const Vocabulary& vocabulary);

// InputError where the vocabulary or the context cannot serve the objective.
void check_examples(const ExampleOptions& options, const Vocabulary& vocabulary, int64_t context);

// Adds what one piece of text becomes.
//   causal:   tokens text[0 .. n - 1), targets text[1 .. n)
//   mlm:      tokens the framed text, masked, targets the chosen tokens; specials, so the frame too, are never chosen
//   span:     source the text with sentinels, and eos; the decoder writes the dropped spans
//   denoise:  source the noisy text, and eos; the decoder writes the text, and eos
// A decoder behind an encoder reads the start token and its targets but the last (teacher forcing). Without eos in the
// vocabulary, there is none at these places.
void add_example(std::span<const int32_t> text, const ExampleOptions& options, const Vocabulary& vocabulary,
                 Draws& draws, Batch& batch);
// The same for tokens [begin, begin + tokens) of a split, cut into its documents where they are separate.
void add_window(const Split& split, int64_t begin, int64_t tokens, const ExampleOptions& options,
                const Vocabulary& vocabulary, Draws& draws, Batch& batch);
// Document d of a split of lines, cut to the longest example of the objective.
void add_line(const Split& split, int64_t d, int64_t context, const ExampleOptions& options,
              const Vocabulary& vocabulary, Draws& draws, Batch& batch);
// Pair p of a split of pairs.
void add_pair(const Split& split, int64_t p, const Vocabulary& vocabulary, Batch& batch);
// A pair, each closed by eos where the vocabulary has one.
void add_pair(std::span<const int32_t> source, std::span<const int32_t> target, const Vocabulary& vocabulary,
              Batch& batch);

}  // namespace transept
