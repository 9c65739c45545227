# How the page is compiled (scripts/build-page): C++ exceptions as WebAssembly's own, and what the C++ library lacks.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fwasm-exceptions>)
add_link_options(-fwasm-exceptions)
include_directories(BEFORE SYSTEM ${PROJECT_SOURCE_DIR}/web/standard)
