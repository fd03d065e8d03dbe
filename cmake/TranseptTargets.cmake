# Four functions: documents that become part of a library, a library a folder of src/, a GoogleTest program a folder of tests/, and a test that is a Python script.
# Warnings are errors everywhere; sanitizers apply to the whole tree so that no library is left uninstrumented.

add_library(transept_flags INTERFACE)
target_compile_options(transept_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror)
# The std::stable_sort of libstdc++ 12 calls what that library deprecates, and clang says so where it is used.
target_compile_options(transept_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
target_include_directories(transept_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
if(TRANSEPT_SANITIZE)
  add_compile_options(-fsanitize=${TRANSEPT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TRANSEPT_SANITIZE})
endif()
if(TRANSEPT_FUZZ)
  # The libraries tell the fuzzer which lines an input reached; only the fuzzers themselves have its main.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# transept_embed(OUT FILES pattern HEADER folder/file.h FUNCTION name): makes the source file OUT, which holds the matching files.
function(transept_embed out)
  cmake_parse_arguments(A "" "FILES;HEADER;FUNCTION" "" ${ARGN})
  set(pattern ${CMAKE_CURRENT_SOURCE_DIR}/${A_FILES})
  file(GLOB files CONFIGURE_DEPENDS ${pattern})
  set(script ${CMAKE_SOURCE_DIR}/cmake/EmbedDocuments.cmake)
  add_custom_command(
    OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${CMAKE_CURRENT_BINARY_DIR}/${out} -DFILES=${pattern} -DHEADER=${A_HEADER} -DFUNCTION=${A_FUNCTION} -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding ${A_FILES}"
    VERBATIM)
endfunction()

# transept_library(FOLDER SOURCES a.cc ... DEPS base spec ... LIBS external targets ...)
function(transept_library folder)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_library(transept_${folder} STATIC ${A_SOURCES})
  list(TRANSFORM A_DEPS PREPEND transept_)
  target_link_libraries(transept_${folder} PUBLIC transept_flags ${A_DEPS} ${A_LIBS})
endfunction()

# transept_test(NAME SOURCES a_test.cc ... DEPS folders ... [LABELS slow]): one program, each of its cases a ctest test.
function(transept_test name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  list(TRANSFORM A_DEPS PREPEND transept_)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE TRANSEPT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE transept_flags ${A_DEPS} ${A_LIBS} GTest::gtest_main GTest::gmock)
  set(labels)
  if(A_LABELS)
    set(labels LABELS "${A_LABELS}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600 ${labels})
endfunction()

# transept_script_test(NAME SCRIPT a.py [ARGS ...] [LABELS e2e] [TIMEOUT seconds]): a Python script as a ctest test, TRANSEPT_BIN naming the program.
function(transept_script_test name)
  cmake_parse_arguments(A "" "SCRIPT;TIMEOUT" "ARGS;LABELS" ${ARGN})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 600)
  endif()
  add_test(NAME ${name} COMMAND Python3::Interpreter ${A_SCRIPT} ${A_ARGS} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT}
    ENVIRONMENT "TRANSEPT_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/transept;PYTHONDONTWRITEBYTECODE=1")
endfunction()
