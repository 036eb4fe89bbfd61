# shoal_library(NAME LAYER n SOURCES ... [HEADERS ...] [DEPENDS ...] [LINKS ...])
#
# A library of the house. DEPENDS names libraries of the house, each on a strictly lower layer: a
# dependency on the own or a higher layer stops the configuration. LINKS names others' libraries and
# is private. Includes are written from the project's root: "base/result.h".
#
# Layers: 0 base, sqlite 2 · 10 schema · 20 compute: graph 20, ops 22, backends 24, engine 26,
# tokenizer 20, chat 21, models 28, shards 30 · 38 the client's records · 40 coordinator, client, worker parts ·
# 50 programs · 60 tests.
function(shoal_library name)
  cmake_parse_arguments(ARG "" "LAYER" "SOURCES;DEPENDS;LINKS" ${ARGN})
  if(NOT DEFINED ARG_LAYER)
    message(FATAL_ERROR "shoal_library(${name}): LAYER is missing")
  endif()
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${name} PRIVATE ${ARG_LINKS})
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
    target_link_libraries(${name} INTERFACE ${ARG_LINKS})
  endif()
  set_property(TARGET ${name} PROPERTY SHOAL_LAYER ${ARG_LAYER})
  target_include_directories(${name} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} ${scope} shoal_flags)
  foreach(dependency IN LISTS ARG_DEPENDS)
    get_property(layer TARGET ${dependency} PROPERTY SHOAL_LAYER)
    if(layer STREQUAL "")
      message(FATAL_ERROR "shoal_library(${name}): ${dependency} is no library of the house; use LINKS")
    endif()
    if(NOT layer LESS ARG_LAYER)
      message(FATAL_ERROR "shoal_library(${name}): layer ${ARG_LAYER} may not depend on "
                          "${dependency}, which is on layer ${layer}")
    endif()
    target_link_libraries(${name} ${scope} ${dependency})
  endforeach()
endfunction()

# shoal_program(NAME SOURCES ... DEPENDS ... [LINKS ...]): an executable in <build>/bin.
function(shoal_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE shoal_flags ${ARG_DEPENDS} ${ARG_LINKS})
endfunction()

# shoal_test(NAME SOURCES ... DEPENDS ... [LINKS ...] [TIMEOUT seconds] [LABELS ...] [ARGS ...]
#            [RESOURCES ...] [ALONE]): one Qt Test program, run by ctest.
#
# The tests' own tempers: no screen, no user folders, a fixed locale, software Vulkan. Tests find
# programs under SHOAL_BIN_DIR, the sources under SHOAL_SOURCE_DIR. Tests that name a common RESOURCES
# word never run at the same time; ALONE runs with no other test (it measures time, or needs all
# processors).
function(shoal_test name)
  cmake_parse_arguments(ARG "ALONE" "TIMEOUT" "SOURCES;DEPENDS;LINKS;LABELS;ARGS;RESOURCES" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES AUTOMOC ON
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE QT_NO_KEYWORDS
    SHOAL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" SHOAL_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  target_link_libraries(${name} PRIVATE shoal_flags ${ARG_DEPENDS} Qt6::Test ${ARG_LINKS})
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  set(environment QT_QPA_PLATFORM=offscreen LC_ALL=C.UTF-8
    VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/lvp_icd.${CMAKE_SYSTEM_PROCESSOR}.json
    TSAN_OPTIONS=ignore_noninstrumented_modules=1)  # Qt's own atomics are not instrumented.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${environment}")
  if(ARG_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  endif()
  if(ARG_RESOURCES)
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK "${ARG_RESOURCES}")
  endif()
  if(ARG_ALONE)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# shoal_fuzzer(NAME SOURCES ... DEPENDS ... [LINKS ...]): one libFuzzer target, <build>/fuzz/NAME, in
# the SHOAL_FUZZ configuration only. Its first inputs are the files of tests/fuzz/corpus/NAME, if any.
# `ninja fuzzers` builds all of them; `./run fuzz` builds and runs them.
function(shoal_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINKS" ${ARGN})
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)
  endif()
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  target_link_libraries(${name} PRIVATE shoal_flags ${ARG_DEPENDS} ${ARG_LINKS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
endfunction()
