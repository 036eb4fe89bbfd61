# shoal_shader_table(NAME folder): a library that holds every folder/*.comp as SPIR-V.
#
# The file's name is the op's name, or OP_texels for a second kernel that backends choose by
# kernel_choice.h. Lines at its head say the rest:
#   #pragma shoal_variant(q8_0)   one module with VARIANT_Q8_0 defined; none of them: one, "f32"
#   #pragma shoal_grid(0 1/32)    invocations: the product of these words of the op's parameter block,
#                                 each divided (rounding up) by what follows the slash
#   #pragma shoal_group(8)        invocations of a group; the grid then counts groups. Else 64
#   #pragma shoal_texels(1 4)     buffers 0 and 1 are read as texels of so many words, as bindings 0 and 1
# So a kernel is added by adding its file, and the code that runs it never learns its name.
function(shoal_shader_table name folder)
  find_program(SHOAL_GLSLC glslc REQUIRED)
  find_program(SHOAL_SPIRV_VAL spirv-val REQUIRED)
  file(GLOB kernels CONFIGURE_DEPENDS ${folder}/*.comp)
  list(SORT kernels)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${name})
  file(MAKE_DIRECTORY ${out})

  set(words "")
  set(rows "")
  set(includes "")
  foreach(kernel IN LISTS kernels)
    # A changed head changes the table, which is made here.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${kernel})
    get_filename_component(op ${kernel} NAME_WE)
    file(STRINGS ${kernel} lines REGEX "^#pragma shoal_")
    set(variants "")
    set(grid "")
    set(group 64)
    set(texels "0, 0")
    foreach(line IN LISTS lines)
      if(line MATCHES "^#pragma shoal_variant\\(([a-z0-9_]+)\\)$")
        list(APPEND variants ${CMAKE_MATCH_1})
      elseif(line MATCHES "^#pragma shoal_grid\\(([0-9/ ]+)\\)$")
        string(REPLACE " " ";" factors "${CMAKE_MATCH_1}")
        foreach(factor IN LISTS factors)
          string(REPLACE "/" ";" parts "${factor};1")
          list(GET parts 0 word)
          list(GET parts 1 divisor)
          string(APPEND grid "{${word}, ${divisor}}, ")
        endforeach()
      elseif(line MATCHES "^#pragma shoal_group\\(([0-9]+)\\)$")
        set(group ${CMAKE_MATCH_1})
      elseif(line MATCHES "^#pragma shoal_texels\\(([14]) ([14])\\)$")
        set(texels "${CMAKE_MATCH_1}, ${CMAKE_MATCH_2}")
      else()
        message(FATAL_ERROR "${kernel}: not understood: ${line}")
      endif()
    endforeach()
    if(grid STREQUAL "")
      message(FATAL_ERROR "${kernel}: no #pragma shoal_grid(...)")
    endif()
    if(NOT variants)
      set(variants f32)
    endif()
    foreach(variant IN LISTS variants)
      string(TOUPPER ${variant} upper)
      set(symbol ${op}_${variant})
      set(include ${out}/${symbol}.inc)
      set(compile ${SHOAL_GLSLC} --target-env=vulkan1.2 -O -DVARIANT_${upper} -I ${PROJECT_SOURCE_DIR})
      add_custom_command(OUTPUT ${include}
        COMMAND ${compile} -o ${out}/${symbol}.spv ${kernel}
        COMMAND ${SHOAL_SPIRV_VAL} --target-env vulkan1.2 ${out}/${symbol}.spv
        COMMAND ${compile} -mfmt=num -MD -MF ${include}.d -MT ${include} -o ${include} ${kernel}
        DEPENDS ${kernel} DEPFILE ${include}.d COMMENT "Shader ${symbol}" VERBATIM)
      list(APPEND includes ${include})
      string(APPEND words "const uint32_t k_${symbol}[] = {\n#include \"${symbol}.inc\"\n};\n")
      string(APPEND rows "    {\"${op}\", \"${variant}\", k_${symbol}, {{${grid}}}, ${group}, {${texels}}},\n")
    endforeach()
  endforeach()

  list(LENGTH includes count)
  if(count EQUAL 0)
    set(table "std::span<const Shader> shader_table() { return {}; }\n")
  else()
    set(table "const Shader kTable[] = {\n${rows}};\n}  // namespace\n\n")
    set(table "namespace {\n${words}${table}std::span<const Shader> shader_table() { return kTable; }\n")
  endif()
  file(CONFIGURE OUTPUT ${out}/shader_table.cpp CONTENT
"// Made by cmake/shoal_shaders.cmake from ${folder}/*.comp.
#include \"shaders/shader_table.h\"

namespace shoal::compute {
${table}}  // namespace shoal::compute
" @ONLY)
  shoal_library(${name} LAYER 5 SOURCES ${out}/shader_table.cpp)
  target_include_directories(${name} PRIVATE ${out})
  # Named as sources, so that the table is made after them and again when one changes.
  set_source_files_properties(${out}/shader_table.cpp PROPERTIES OBJECT_DEPENDS "${includes}")
endfunction()
