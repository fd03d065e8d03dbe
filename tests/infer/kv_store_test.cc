// The cache: rings hold the last records in order, and take exactly the bytes that their layers need.
#include "infer/kv_store.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace transept
