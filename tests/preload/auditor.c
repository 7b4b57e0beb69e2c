/* An auditor for LD_AUDIT that watches and changes nothing. Under it the loader keeps two namespaces, and
 * every call goes through its own tables. */
#include <link.h>
#include <stdlib.h>

unsigned int la_version(unsigned int version) {
  return version;
}

unsigned int la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  (void)map;
  (void)space;
  (void)cookie;
  free(malloc(100));
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
