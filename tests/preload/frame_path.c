/* The calls whose instructions golden_frame_path.py counts. */
#include <sluice/frame.h>

void* allocate_any_size(size_t size);
void* allocate_any_size(size_t size) {
  return sluice_frame_alloc(size, 16);
}

void* allocate_40_bytes(void);
void* allocate_40_bytes(void) {
  return sluice_frame_alloc(40, 8);
}

int main(void) {
  return allocate_any_size(100) != NULL && allocate_40_bytes() != NULL ? 0 : 1;
}
