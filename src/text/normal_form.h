// Unicode normalization (UAX 15): the forms NFC, NFD, NFKC, NFKD of Unicode 9.0, the version of Hugging Face
// tokenizers; characters assigned later are left alone. Text that already has the form is only looked at.
#pragma once

#include "text/aligned_text.h"

namespace transept {

enum class NormalForm { kC, kD, kKC, kKD };

void to_normal_form(AlignedText& text, NormalForm form);

}  // namespace transept
