# add_layer(NAME [DEPENDS layer...] [LIBRARIES target...]): one static library kanal_NAME from src/NAME/**/*.cpp.
# Public headers are include/kanal/NAME; headers for the layer alone sit beside their source.
# main.cpp is left to the executable.
function(add_layer NAME)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${NAME}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(kanal_${NAME} STATIC ${sources})
  target_include_directories(kanal_${NAME} PUBLIC "${CMAKE_SOURCE_DIR}/include" PRIVATE "${CMAKE_SOURCE_DIR}/src/${NAME}")
  list(TRANSFORM ARG_DEPENDS PREPEND kanal_)
  target_link_libraries(kanal_${NAME} PUBLIC ${ARG_DEPENDS} PUBLIC ${ARG_LIBRARIES} PRIVATE kanal_warnings)
endfunction()
