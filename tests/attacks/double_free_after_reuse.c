/* Frees a block, gets it again under another name, and frees it under both. */
#include "attack.h"

int main(void) {
  enum { most = 200000 };
  static void* others[most];
  char* first = hidden(malloc(40));
  free(first);
  char* again = NULL;
  for (int i = 0; i < most && again == NULL; ++i) {
    others[i] = malloc(40);
    if (others[i] == hidden(first)) {
      again = others[i];
      others[i] = NULL;
    } else if (i >= 1000) {
      free(others[i - 1000]); /* blocks must move for a malloc with a quarantine to give the first one back */
      others[i - 1000] = NULL;
    }
  }
  if (again == NULL) return harmless;
  memset(again, 'a', 40);
  free(hidden(first));
  free(hidden(again));
  go_on(40);
  return 0;
}
