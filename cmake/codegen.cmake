# wiregen, built first, turns src/wire/schema into build/<preset>/generated: message headers (include/), codecs (wire/),
# the route table (handlers/), test cases (tests/) and docs/wire_api.md (docs/). add_generated_code() hooks them in and
# is called after the layers exist.
set(KANAL_SCHEMA_DIR "${CMAKE_SOURCE_DIR}/src/wire/schema")
set(KANAL_GENERATED_DIR "${CMAKE_BINARY_DIR}/generated")

# Parsing, checking and emitting as a library, since tests use the model too.
add_library(kanal_wiregen STATIC
  src/wiregen/model.cpp src/wiregen/parse.cpp src/wiregen/check.cpp src/wiregen/emit_types.cpp
  src/wiregen/emit_codec.cpp src/wiregen/emit_routes.cpp src/wiregen/emit_cases.cpp src/wiregen/emit_docs.cpp)
target_include_directories(kanal_wiregen PUBLIC "${CMAKE_SOURCE_DIR}/src/wiregen")
target_link_libraries(kanal_wiregen PUBLIC yaml-cpp PRIVATE kanal_warnings)
add_executable(wiregen src/wiregen/main.cpp)
target_link_libraries(wiregen PRIVATE kanal_wiregen kanal_warnings)

file(GLOB schemas CONFIGURE_DEPENDS "${KANAL_SCHEMA_DIR}/*.yaml")
set(generated_headers "${KANAL_GENERATED_DIR}/include/kanal/wire/headers.hpp"
  "${KANAL_GENERATED_DIR}/include/kanal/wire/stored.hpp")
foreach(schema ${schemas})
  get_filename_component(name "${schema}" NAME_WE)
  if(name MATCHES "^[0-9]+_(.*)$")
    list(APPEND generated_headers "${KANAL_GENERATED_DIR}/include/kanal/wire/messages/${CMAKE_MATCH_1}.hpp")
  endif()
endforeach()
set(generated_codecs "${KANAL_GENERATED_DIR}/wire/codec_stored.cpp")
foreach(number 0 1 2 3)
  list(APPEND generated_codecs "${KANAL_GENERATED_DIR}/wire/codec_${number}.cpp")
endforeach()
set(generated_routes "${KANAL_GENERATED_DIR}/handlers/routes.cpp")
set(generated_cases "${KANAL_GENERATED_DIR}/tests/message_cases.cpp")

add_custom_command(
  OUTPUT ${generated_headers} ${generated_codecs} ${generated_routes} ${generated_cases}
    "${KANAL_GENERATED_DIR}/docs/wire_api.md"
  COMMAND wiregen "${KANAL_SCHEMA_DIR}" "${KANAL_GENERATED_DIR}"
  DEPENDS wiregen ${schemas}
  COMMENT "wiregen: protocol code from src/wire/schema")
add_custom_target(kanal_generated DEPENDS ${generated_headers} ${generated_codecs} ${generated_routes}
  ${generated_cases})

function(add_generated_code)
  target_sources(kanal_wire PRIVATE ${generated_codecs})
  target_include_directories(kanal_wire PUBLIC "${KANAL_GENERATED_DIR}/include")
  target_sources(kanal_handlers PRIVATE ${generated_routes})
  add_dependencies(kanal_wire kanal_generated)
  add_dependencies(kanal_handlers kanal_generated)
  if(KANAL_TESTS OR KANAL_FUZZ)
    # Every message, filled by a deterministic Filler: for round trips, seeds and fuzz targets.
    add_library(kanal_wire_cases STATIC ${generated_cases})
    target_include_directories(kanal_wire_cases PUBLIC "${CMAKE_SOURCE_DIR}/tests")
    target_link_libraries(kanal_wire_cases PUBLIC kanal_wire PRIVATE kanal_warnings)
    add_dependencies(kanal_wire_cases kanal_generated)
    # `fuzz_seeds` fills generated/seeds with one file for every message and version.
    add_executable(write_seeds tests/fuzz/write_seeds.cpp)
    target_link_libraries(write_seeds PRIVATE kanal_wire_cases kanal_warnings)
    add_custom_target(fuzz_seeds COMMAND write_seeds "${KANAL_GENERATED_DIR}/seeds" DEPENDS write_seeds)
  endif()
endfunction()
