#include "fuzz/readers.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file.h"
#include "base/problem.h"
#include "ckpt/safetensors.h"
#include "convert/family.h"
#include "plan/machine_type.h"
#include "plan/scaling_runs.h"
#include "study/study_models.h"
#include "support/temp_folder.h"
#include "text/tokenizer.h"

namespace transept {
namespace {

// The bytes as a file of this name, in a folder that is the process's own.
std::filesystem::path as_file(std::string_view bytes, const char* name) {
  static const TempFolder folder;
  const std::filesystem::path path = folder.path() / name;
  FileWriter out(path);
  out.write(bytes.data(), bytes.size());
  out.close();
  return path;
}

void read_safetensors(std::string_view bytes) {
  const SafetensorsFile file(as_file(bytes, "model.safetensors"));
  uint64_t sum = 0;
  for (const StoredTensor& tensor : file.tensors()) {
    for (const std::byte b : tensor.bytes) sum += static_cast<uint64_t>(b);
    if (tensor.elements() > 1 << 16) continue;
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    try {
      read_f32(tensor, values, tensor.name);
    } catch (const InputError&) {
      // Integers are no weights.
    }
  }
  TRANSEPT_CHECK(sum < UINT64_MAX);
}

void read_config(std::string_view bytes) {
  const Json document = parse_json(bytes, "config.json");
  if (!document.is_object() || !document.contains("model_type") || !document.at("model_type").is_string()) return;
  const Family* family = find_family(document.at("model_type").get<std::string>());
  if (!family) return;
  Problems problems;
  const ArchSpec spec = read_family_config(*family, document, "config.json", problems);
  throw_if_any(std::move(problems));
  const ArchSpec checked = spec_from_json(spec_to_json(spec), "config.json");
  std::string reason;
  write_family_config(*family, checked, reason);
  // Where its tensors would be: models of many layers or experts take their time.
  if (checked.layers.size() > 64 || checked.encoder.layers.size() > 64) return;
  const NameTable names = family->names(checked);
  const ParamList declared = checked.declare();
  for (const ParamDecl& decl : declared.decls()) {
    if (decl.experts > 64) return;
    int64_t rows = 0;
    for (const Piece& piece : pieces_of(names, checked, decl)) rows += piece.rows;
    TRANSEPT_CHECK(rows == decl.shape[0]);
  }
}

void use(const Tokenizer& tokenizer) {
  constexpr std::string_view kTexts[] = {"", "Hello, w\xC3\xB6rld 123!\n", "<s> a</s>\xF0\x9F\x99\x82\xFF\xE4\xB8\xAD"};
  for (const std::string_view text : kTexts) {
    for (const Specials specials : {Specials::kNone, Specials::kAdd}) {
      const std::vector<int32_t> ids = tokenizer.encode(text, specials);
      tokenizer.decode(ids);
      StreamDecoder stream(tokenizer);
      for (const int32_t id : ids) {
        TRANSEPT_CHECK(id >= 0 && id < tokenizer.vocab_size());
        stream.push(id);
      }
      stream.finish();
    }
  }
}

void read_tokenizer_json(std::string_view bytes) { use(*load_tokenizer(as_file(bytes, "tokenizer.json"))); }
void read_sentencepiece(std::string_view bytes) { use(*load_tokenizer(as_file(bytes, "tokenizer.model"))); }

void read_scaling_runs(std::string_view bytes) {
  for (const ScalingRun& run : parse_runs(bytes, "runs"))
    TRANSEPT_CHECK(run.params > 0 && run.tokens > 0 && run.loss > 0 && run.flops() < 1e300);
}

void read_machines(std::string_view bytes) {
  for (const MachineType& machine : read_machine_types(parse_json(bytes, "machines"), "machines")) {
    TRANSEPT_CHECK(machine.training_peak().flops_per_second > 0 && machine.read_bytes_per_second(1e9) > 0);
    read_machine_types(to_json(machine), "written");
  }
}

void read_study(std::string_view bytes) {
  const Json document = parse_json(bytes, "study.json");
  for (const StudySize size : {StudySize::kFull, StudySize::kQuick}) {
    const StudyDefinition study = read_study_definition(document, size, "study.json");
    TRANSEPT_CHECK(!study.cells.empty() && study.seeds > 0);
    for (const DefinedCell& cell : study.cells) {
      TRANSEPT_CHECK(cell.steps.size() == cell.recipe.size() && cell.measurements.size() == cell.measures.size());
      for (const ModelStep& step : cell.steps) training_of(study, step, 0);
    }
  }
}

}  // namespace

std::span<const Reader> readers() {
  static constexpr std::array<Reader, 7> all{{{"safetensors", read_safetensors},
                                              {"config", read_config},
                                              {"tokenizer_json", read_tokenizer_json},
                                              {"sentencepiece", read_sentencepiece},
                                              {"scaling_runs", read_scaling_runs},
                                              {"machines", read_machines},
                                              {"study", read_study}}};
  return all;
}

}  // namespace transept
