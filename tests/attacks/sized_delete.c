/* Deletes an object as one of another type, which is longer. */
#include "attack.h"

/* operator new(size_t) and operator delete(void*, size_t), where there are any */
__attribute__((weak)) void* _Znwm(size_t);
__attribute__((weak)) void _ZdlPvm(void*, size_t);

int main(void) {
  for (int i = 0; i < 100; ++i) {
    void* object = hidden(_Znwm != NULL ? _Znwm(32) : malloc(32));
    memset(object, 'o', 32);
    if (_ZdlPvm != NULL)
      _ZdlPvm(object, 200);
    else
      free(object);
  }
  go_on(32);
  go_on(200);
  return 0;
}
