/* A library that leak_subject opens, and in whose data it keeps the only pointer to a block. */
void* kept_by_library;
