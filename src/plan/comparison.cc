#include "plan/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/format_number.h"

namespace transept {
namespace {

using Value = ComparisonTable::Value;

Value words(const std::string& text) { return {text}; }
Value count(int64_t n) { return {format_count(static_cast<double>(n)), static_cast<double>(n)}; }
Value count_or_nothing(int64_t n) { return n == 0 ? Value{"", 0} : count(n); }
Value bytes(int64_t n) { return {format_bytes(static_cast<double>(n)), static_cast<double>(n)}; }
Value flops(double n) { return {format_si(n, ""), n}; }

struct Figure {
  ComparisonTable::Column column;
  Value (*value)(const Plan&);
};

// Of several stacks: encoder + decoder.
Value layers(const Plan& m) {
  const Architecture& a = m.architecture;
  return a.encoder_layers == 0 ? count(a.layers)
                               : Value{fmt::format("{} + {}", a.encoder_layers, a.layers),
                                       static_cast<double>(a.encoder_layers + a.layers)};
}

Value window(const Plan& m) {
  const Architecture& a = m.architecture;
  if (a.sliding_window == 0) return {"", 0};
  const std::string some = a.windowed_layers < a.layers ? fmt::format(" in {} layers", a.windowed_layers) : "";
  return {format_count(static_cast<double>(a.sliding_window)) + some, static_cast<double>(a.sliding_window)};
}

Value experts(const Plan& m) {
  const Architecture& a = m.architecture;
  if (a.experts == 0) return {"", 0};
  return {fmt::format("{} of {}{}", a.experts_per_token, a.experts, a.shared_expert_size > 0 ? " + shared" : ""),
          static_cast<double>(a.experts)};
}

const Figure kFigures[] = {
    {{"model", false, true}, [](const Plan& m) { return words(m.name); }},
    {{"parameters", true, true}, [](const Plan& m) { return count(m.parameters.total); }},
    {{"active", true, true}, [](const Plan& m) { return count(m.parameters.active); }},
    {{"active without input embedding", true, false},
     [](const Plan& m) { return count(m.parameters.active_without_input_embedding); }},
    {{"layers", true, true}, layers},
    {{"width", true, true}, [](const Plan& m) { return count(m.architecture.hidden_size); }},
    {{"attention", false, true}, [](const Plan& m) { return words(m.architecture.attention); }},
    {{"heads", true, true}, [](const Plan& m) { return count(m.architecture.heads); }},
    {{"KV heads", true, true}, [](const Plan& m) { return count(m.architecture.kv_heads); }},
    {{"head size", true, false}, [](const Plan& m) { return count(m.architecture.head_dim); }},
    {{"window", true, false}, window},
    {{"position", false, true}, [](const Plan& m) { return words(m.architecture.position); }},
    {{"norm", false, false}, [](const Plan& m) { return words(m.architecture.norm); }},
    {{"block", false, false}, [](const Plan& m) { return words(m.architecture.block); }},
    {{"feed-forward", false, false}, [](const Plan& m) { return words(m.architecture.ffn); }},
    {{"feed-forward width", true, false}, [](const Plan& m) { return count(m.architecture.intermediate_size); }},
    {{"experts", true, true}, experts},
    {{"vocabulary", true, true}, [](const Plan& m) { return count(m.architecture.vocab_size); }},
    {{"context", true, true}, [](const Plan& m) { return count(m.architecture.context); }},
    {{"tied head", false, false}, [](const Plan& m) { return words(m.architecture.tied ? "yes" : "no"); }},
    {{"KV elements a token", true, false},
     [](const Plan& m) { return count_or_nothing(m.kv_cache.elements_per_token); }},
    {{"KV bytes a token", true, true}, [](const Plan& m) { return bytes(m.kv_cache.bytes_per_token); }},
    {{"planned context", true, false}, [](const Plan& m) { return count(m.context); }},
    {{"KV cache", true, true}, [](const Plan& m) { return bytes(m.kv_cache.bytes); }},
    {{"weights", true, true}, [](const Plan& m) { return bytes(m.memory.weights); }},
    {{"FLOPs a token, training", true, false}, [](const Plan& m) { return flops(m.flops.train_per_token); }},
    {{"peak memory, training", true, false}, [](const Plan& m) { return bytes(m.memory.peak_training); }},
};

}  // namespace

ComparisonTable comparison_table(const std::vector<Plan>& models) {
  ComparisonTable table;
  for (const Figure& f : kFigures) table.columns.push_back(f.column);
  for (const Plan& m : models) {
    std::vector<Value> row;
    for (const Figure& f : kFigures) row.push_back(f.value(m));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string comparison_text(const std::vector<Plan>& models) {
  const ComparisonTable table = comparison_table(models);
  std::vector<size_t> widths;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    size_t width = table.columns[c].name.size();
    for (const auto& row : table.rows) width = std::max(width, row[c].text.size());
    widths.push_back(width);
  }
  std::string out;
  const auto line = [&](const auto& text_of) {
    std::string cells;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (!table.columns[c].brief) continue;
      cells += table.columns[c].numeric ? fmt::format("{:>{}}  ", text_of(c), widths[c])
                                        : fmt::format("{:<{}}  ", text_of(c), widths[c]);
    }
    cells.erase(cells.find_last_not_of(' ') + 1);
    out += cells + "\n";
  };
  line([&](size_t c) { return table.columns[c].name; });
  for (const auto& row : table.rows) line([&](size_t c) { return row[c].text; });
  return out;
}

}  // namespace transept
