// The cache: rings hold the last records in order, and take exactly the bytes that their layers need.
#include "infer/kv_store.h"
#include "base/rng.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "spec/arch_spec.h"

namespace transept {
namespace {

ArchSpec spec_with_window(int64_t window) {
  return spec_from_json({{"vocab_size", 29},
                         {"hidden_size", 24},
                         {"max_position_embeddings", 40},
                         {"attention", {{"num_attention_heads", 4}, {"sliding_window", window}}},
                         {"ffn", {{"intermediate_size", 20}}},
                         {"num_hidden_layers", 2}},
                        "case");
}

TEST(KvStore, BytesAreThoseOfItsRows) {
  const ArchSpec spec = spec_with_window(5);
  const auto& a = std::get<GqaSpec>(spec.layers[0].attention);
  EXPECT_EQ(KvStore(spec, 3, 100).bytes(), 3 * 2 * 5 * 2 * a.kv_width() * 4);
  EXPECT_EQ(KvStore(spec, 1, 4).bytes(), 2 * 4 * 2 * a.kv_width() * 4);
  EXPECT_EQ(KvStore(spec_with_window(0), 1, 100).bytes(), 2 * 100 * 2 * a.kv_width() * 4);
}

// For every window and run lengths, chunks are the last `window` records in order of position.
TEST(KvStore, RingsHoldTheLastRecordsInOrder) {
  for (const int64_t window : {1, 2, 5, 8}) {
    for (const int64_t step : {1, 2, 3, 7, 20}) {
      const ArchSpec spec = spec_with_window(window);
      KvStore store(spec, 2, 64);
      const int64_t width = 2 * std::get<GqaSpec>(spec.layers[0].attention).kv_width();
      KvView& view = store.view(1, 1);
      int64_t end = 0;
      EXPECT_TRUE(view.chunks().empty());
      while (end + step <= 64) {
        std::vector<float> rows(static_cast<size_t>(step * width));
        for (int64_t r = 0; r < step; ++r) std::fill_n(rows.data() + r * width, width, static_cast<float>(end + r));
        view.append({rows.data(), step, width, width});
        end += step;
        int64_t expected = std::max<int64_t>(0, end - window);
        for (const RecordChunk& c : view.chunks()) {
          EXPECT_EQ(c.first_position, expected);
          for (int64_t r = 0; r < c.rows; ++r, ++expected) {
            EXPECT_EQ(c.data[r * c.stride], static_cast<float>(expected));
            EXPECT_EQ(c.data[r * c.stride + width - 1], static_cast<float>(expected));
          }
        }
        EXPECT_EQ(expected, end);
      }
      EXPECT_TRUE(store.view(0, 1).chunks().empty());
      store.clear();
      EXPECT_TRUE(view.chunks().empty());
    }
  }
}

// Sequences that branch and go on, against plain lists of what each should hold; windows that wrap around, and sources
// that all branches share.
TEST(KvStore, ReorderedSequencesGoOnFromThoseTheyCameFrom) {
  constexpr int64_t kSequences = 4, kContext = 40;
  for (const int64_t window : {0, 3}) {
    ArchSpec spec = spec_with_window(window);
    for (LayerSpec& layer : spec.layers) layer.cross_attention = true;
    const int64_t width = 2 * std::get<GqaSpec>(spec.layers[0].attention).kv_width();
    const int64_t layers = static_cast<int64_t>(spec.layers.size());
    KvStore store(spec, kSequences, kContext, 2);
    const auto append = [&](KvView& view, float value) {
      const std::vector<float> row(static_cast<size_t>(width), value);
      view.append({row.data(), 1, width, width});
    };
    const auto held = [](KvView& view) {
      std::vector<float> values;
      for (const RecordChunk& c : view.chunks()) {
        for (int64_t r = 0; r < c.rows; ++r) values.push_back(c.data[r * c.stride]);
      }
      return values;
    };
    for (int round = 0; round < 2; ++round) {
      std::vector<std::vector<float>> wanted(1);
      for (int64_t layer = 0; layer < layers; ++layer)
        append(store.source_view(0, layer), static_cast<float>(-1 - layer));
      const CounterRng rng(static_cast<uint64_t>(window + round), Stream::kTest);
      uint64_t draw = 0;
      for (int step = 0; step < 30; ++step) {
        for (size_t s = 0; s < wanted.size(); ++s) {
          const float value = static_cast<float>(100 * step + static_cast<int>(s));
          for (int64_t layer = 0; layer < layers; ++layer)
            append(store.view(static_cast<int64_t>(s), layer), value + 0.25f * static_cast<float>(layer));
          wanted[s].push_back(value);
        }
        std::vector<int64_t> from(1 + rng.below(draw++, kSequences));
        for (int64_t& f : from) f = static_cast<int64_t>(rng.below(draw++, wanted.size()));
        store.reorder(from);
        std::vector<std::vector<float>> next;
        for (const int64_t f : from) next.push_back(wanted[static_cast<size_t>(f)]);
        wanted = std::move(next);
        for (size_t s = 0; s < kSequences; ++s) {
          for (int64_t layer = 0; layer < layers; ++layer) {
            std::vector<float> right = s < wanted.size() ? wanted[s] : std::vector<float>();
            if (window > 0 && right.size() > static_cast<size_t>(window))
              right.erase(right.begin(), right.end() - static_cast<std::ptrdiff_t>(window));
            for (float& x : right) x += 0.25f * static_cast<float>(layer);
            ASSERT_EQ(held(store.view(static_cast<int64_t>(s), layer)), right) << "step " << step << " sequence " << s;
            if (s < wanted.size()) {
              ASSERT_EQ(held(store.source_view(static_cast<int64_t>(s), layer)),
                        std::vector<float>{static_cast<float>(-1 - layer)});
            }
          }
        }
      }
      store.clear();
      for (int64_t s = 0; s < kSequences; ++s) {
        ASSERT_TRUE(store.view(s, 0).chunks().empty());
        ASSERT_TRUE(store.source_view(s, 0).chunks().empty());
      }
    }
  }
}

}  // namespace
}  // namespace transept
