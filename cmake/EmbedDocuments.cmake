# Writes OUT: a C++ file that holds every file of the pattern FILES as a raw string, by its name without suffix, and the function
# FUNCTION, declared in HEADER, that gives them (base/embedded_document.h). Run at build time.
file(GLOB files ${FILES})
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WLE)
  file(READ ${file} text)
  string(APPEND rows "    {\"${name}\", R\"document(${text})document\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"${HEADER}\"

namespace transept {
namespace {
constexpr EmbeddedDocument kDocuments[] = {
${rows}};
}  // namespace

std::span<const EmbeddedDocument> ${FUNCTION}() { return kDocuments; }

}  // namespace transept
")
