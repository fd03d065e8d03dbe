#include "convert/tensor_names.h"

#include <algorithm>
#include <sstream>

#include "base/check.h"

namespace transept {
namespace {

std::string replaced(std::string_view pattern, const std::string& layer, const std::string& suffix) {
  std::string name;
  for (const char c : pattern) name += c == '#' ? layer : c == '*' ? suffix : std::string(1, c);
  return name;
}

std::vector<std::string> stored_names(const NameRow& row, const ParamDecl& decl, const std::string& layer,
                                      const std::string& suffix) {
  std::vector<std::string> names;
  const int64_t repeats = row.stored.find('@') == std::string::npos ? 1 : decl.experts;
  for (int64_t e = 0; e < repeats; ++e) {
    std::istringstream pattern(replaced(row.stored, layer, suffix));
    for (std::string name; pattern >> name;) {
      if (const size_t at = name.find('@'); at != std::string::npos) name.replace(at, 1, std::to_string(e));
      names.push_back(name);
    }
  }
  return names;
}

const GqaSpec& attention_of(const ArchSpec& spec, const ParamDecl& decl) {
  const StackSpec& stack = decl.encoder ? spec.encoder : spec;
  return std::get<GqaSpec>(stack.layers[static_cast<size_t>(decl.layer)].attention);
}

// Rows of each of `count` tensors that are stacked to ours.
std::vector<int64_t> stacked_rows(const ArchSpec& spec, const ParamDecl& decl, size_t count) {
  if (count == 3 && decl.part == Part::kAttention) {
    const GqaSpec& a = attention_of(spec, decl);
    return {a.query_width(), a.kv_width(), a.kv_width()};
  }
  return std::vector<int64_t>(count, decl.shape[0] / static_cast<int64_t>(count));
}

}  // namespace

NameTable with_base(NameTable special, const NameTable& base) {
  special.insert(special.end(), base.begin(), base.end());
  return special;
}

std::vector<Piece> pieces_of(const NameTable& table, const ArchSpec& spec, const ParamDecl& decl) {
  const std::string layer = std::to_string(decl.layer), suffix = decl.name.substr(decl.name.rfind('.') + 1);
  const NameRow* row = nullptr;
  for (const NameRow& r : table) {
    if (!row && replaced(r.ours, layer, suffix) == decl.name) row = &r;
  }
  TRANSEPT_CHECK(row);
  const std::vector<std::string> names = stored_names(*row, decl, layer, suffix);
  const int64_t rows = decl.shape[0];
  const bool matrix = decl.shape.size() > 1;
  const int64_t columns = matrix ? decl.shape[1] : 1;
  const int64_t of_expert = rows / decl.experts;  // rows
  using Shape = std::vector<int64_t>;
  const auto shape = [&](int64_t stored_rows) { return matrix ? Shape{stored_rows, columns} : Shape{stored_rows}; };
  std::vector<Piece> pieces;
  const auto add = [&](const std::string& name, Shape stored_shape, int64_t first, int64_t count,
                       int64_t stored_first = 0) {
    pieces.push_back({name, std::move(stored_shape), first, count, stored_first * columns, columns});
  };
  switch (row->layout) {
    case Layout::kStacked: {
      const std::vector<int64_t> of_each = stacked_rows(spec, decl, names.size());
      int64_t first = 0;
      for (size_t i = 0; i < names.size(); ++i) {
        add(names[i], shape(of_each[i]), first, of_each[i]);
        first += of_each[i];
      }
      return pieces;
    }
    case Layout::kTransposed:
      if (!matrix) return {{names[0], {rows}, 0, rows}};
      return {{names[0], {columns, rows}, 0, rows, 0, 1, rows}};
    case Layout::kByGroup: {
      const GqaSpec& a = attention_of(spec, decl);
      const int64_t group = a.num_attention_heads / a.num_key_value_heads, d = a.head_dim;
      const auto part = [&](int64_t first, int64_t heads, int64_t of_group) {
        for (int64_t g = 0; g < a.num_key_value_heads; ++g)
          add(names[0], shape(rows), first + g * heads * d, heads * d, (g * (group + 2) + of_group) * d);
      };
      part(0, group, 0);
      part(a.query_width(), 1, group);
      part(a.query_width() + a.kv_width(), 1, group + 1);
      return pieces;
    }
    case Layout::kFromRow2: {
      const int64_t unread = std::get<LearnedPosition>(decl.encoder ? spec.encoder.position : spec.position).offset;
      const int64_t kept = std::min<int64_t>(unread, 2);
      add(names[0], shape(rows - unread + 2), unread - kept, rows - unread + kept, 2 - kept);
      return pieces;
    }
    case Layout::kByHead: {
      const int64_t d = attention_of(spec, decl).head_dim;
      return {{names[0], {rows / d, d}, 0, rows}};
    }
    case Layout::kOneRow:
      return {{names[0], {1, rows}, 0, rows}};
    case Layout::kExpertRows: {
      const int64_t count = static_cast<int64_t>(names.size()), of_each = of_expert / count;
      for (int64_t e = 0; e < decl.experts; ++e) {
        for (int64_t i = 0; i < count; ++i)
          add(names[static_cast<size_t>(i)], shape(rows / count), e * of_expert + i * of_each, of_each, e * of_each);
      }
      return pieces;
    }
    case Layout::kExpertColumns:
    case Layout::kExperts: {
      Shape stored = matrix ? Shape{decl.experts, columns, of_expert} : Shape{decl.experts, of_expert};
      if (row->layout == Layout::kExpertColumns) stored = {decl.experts * columns, of_expert};
      for (int64_t e = 0; e < decl.experts; ++e)
        pieces.push_back({names[0], stored, e * of_expert, of_expert, e * columns * of_expert, 1, of_expert});
      return pieces;
    }
    case Layout::kAlternatingExperts: {
      const Shape stored = matrix ? Shape{decl.experts, columns, of_expert} : Shape{decl.experts, of_expert};
      const int64_t half = of_expert / 2;
      for (int64_t e = 0; e < decl.experts; ++e) {
        for (const int64_t up : {0, 1})
          pieces.push_back(
              {names[0], stored, e * of_expert + up * half, half, e * columns * of_expert + up, 2, of_expert});
      }
      return pieces;
    }
  }
  return pieces;
}

}  // namespace transept
