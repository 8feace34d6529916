# Adds to embed a renderer that knows nothing of weft, and a second program with it that is linked with the loader
# alone.
file(GLOB embed_plain_sources CONFIGURE_DEPENDS "${folder}/plain/*.cpp")
add_library(embed_plain STATIC ${embed_plain_sources})
weft_target_defaults(embed_plain)
target_link_libraries(embed_plain PUBLIC weft_examples_plain weft::loader ${WEFT_EMBED_DEPENDENCIES})
if(TARGET glfw)
  target_link_libraries(embed_plain PUBLIC glfw)
  target_compile_definitions(embed_plain PRIVATE WEFT_EXAMPLES_GLFW)
endif()
if(NOT MSVC)
  # Debian's glslang has no type information, which UndefinedBehaviorSanitizer would ask for.
  set_source_files_properties("${folder}/plain/shaders.cpp" PROPERTIES COMPILE_OPTIONS "-fno-sanitize=vptr")
endif()
target_link_libraries(embed PRIVATE embed_plain)

add_executable(embed_exported "${folder}/exported/main.cpp")
weft_target_defaults(embed_exported)
target_link_libraries(embed_exported PRIVATE embed_plain)
add_dependencies(weft_examples embed_exported)
