/*===- StatusTest.c - Status.h is C, and its functions link from C --------===*/

#include "memplan/Runtime/Status.h"

const char *statusNameFromC(void);
const char *statusNameFromC(void) {
  memplan_tensor_info info = {"x", MEMPLAN_F32, 0, NULL, sizeof(float)};
  (void)info;
  return memplan_status_name(MEMPLAN_ERROR_FILE);
}
