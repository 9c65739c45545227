# attnsim_library(NAME SOURCES... [PUBLIC libs...] [PRIVATE libs...]): the static library attnsim_NAME, also
# known as attnsim::NAME, with the project's include root and warnings.
add_library(attnsim_options INTERFACE)
target_compile_options(attnsim_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wno-missing-field-initializers>)
if(ATTNSIM_SANITIZE)
  target_compile_options(attnsim_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer>
    $<$<BOOL:${ATTNSIM_FUZZ}>:-fsanitize=fuzzer-no-link>)
  target_link_options(attnsim_options INTERFACE -fsanitize=address,undefined)
endif()

function(attnsim_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(attnsim_${name} STATIC ${ARG_SOURCES})
  add_library(attnsim::${name} ALIAS attnsim_${name})
  set_target_properties(attnsim_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_include_directories(attnsim_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/attnsim>)
  target_compile_features(attnsim_${name} PUBLIC cxx_std_20)
  target_link_libraries(attnsim_${name}
    PUBLIC ${ARG_PUBLIC} PRIVATE $<BUILD_INTERFACE:attnsim_options> ${ARG_PRIVATE})
  set_property(GLOBAL APPEND PROPERTY ATTNSIM_LIBRARIES attnsim_${name})
endfunction()
