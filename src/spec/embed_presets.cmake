# cmake -DOUT=file.cc -DFOLDER=presets -P embed_presets.cmake: every FOLDER/NAME.json as a raw string in a C++ table.
file(GLOB files ${FOLDER}/*.json)
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WLE)
  file(READ ${file} text)
  string(APPEND rows "    {\"${name}\", R\"preset(${text})preset\"},\n")
endforeach()
file(WRITE ${OUT} "// Made by src/spec/embed_presets.cmake from src/spec/presets/*.json.
#include \"spec/presets_data.h\"

namespace transept {
namespace {
constexpr PresetData kPresets[] = {
${rows}};
}  // namespace

std::span<const PresetData> preset_data() { return kPresets; }

}  // namespace transept
")
