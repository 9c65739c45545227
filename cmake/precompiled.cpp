// Compiled only for its precompiled headers (attnsim_library.cmake).
