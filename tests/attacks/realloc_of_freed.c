/* Makes a block longer that was freed. */
#include "attack.h"

int main(void) {
  char* list = hidden(malloc(40));
  memset(list, 'l', 40);
  free(list);
  list = realloc(hidden(list), 400);
  if (list != NULL) memset(list, 'A', 400);
  free(list);
  go_on(40);
  return 0;
}
