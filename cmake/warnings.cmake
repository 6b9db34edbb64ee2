# One warning set, errors on, and the sanitizer switch: linked by every target of ours.
add_library(kanal_warnings INTERFACE)
target_compile_options(kanal_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  -Wimplicit-fallthrough -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these inside its own headers and Asio's coroutines where nothing is wrong.
  target_compile_options(kanal_warnings INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow
    -Wno-array-bounds -Wno-dangling-pointer -Wno-sign-conversion)
else()
  target_compile_options(kanal_warnings INTERFACE -Wthread-safety -Wno-sign-conversion)
endif()

if(KANAL_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Asio's fences: what they order is also ordered by its mutexes. And at this level of optimization
  # the compiler sees only one half of how Asio allocates and frees a coroutine's frame.
  add_compile_options(-Wno-tsan -Wno-mismatched-new-delete)
endif()
if(KANAL_SANITIZE)
  add_compile_options(-fsanitize=${KANAL_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${KANAL_SANITIZE})
  if(KANAL_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()

if(KANAL_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # coverage in every layer, or the fuzzers are blind
endif()
