/* To be preloaded: fi_getinfo() as if the provider offered less, of what PROVIDER_LACKS names:
 * "data" (no immediate data), "sources" (no receives from one source) or "bits" (five bits of a tag
 * are the provider's own). A provider that lacks something refuses who insists on it; here the
 * caller is not refused, so that he has to see it for himself. */
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int GetInfo(uint32_t, const char*, const char*, uint64_t, const struct fi_info*,
                    struct fi_info**);

static int lacks(const char* what) {
  const char* named = getenv("PROVIDER_LACKS");
  return named != NULL && strcmp(named, what) == 0;
}

int fi_getinfo(uint32_t version, const char* node, const char* service, uint64_t flags,
               const struct fi_info* hints, struct fi_info** found) {
  static GetInfo* real;
  if (real == NULL) *(void**)&real = dlsym(dlopen("libfabric.so.1", RTLD_NOW), "fi_getinfo");
  const int by_mpi =
      hints != NULL && hints->ep_attr->type == FI_EP_RDM && (hints->caps & FI_TAGGED) != 0;
  if (!by_mpi) return real(version, node, service, flags, hints, found);

  struct fi_info* asked = fi_dupinfo(hints);
  if (lacks("data")) asked->domain_attr->cq_data_size = 0;
  if (lacks("sources")) asked->caps &= ~FI_DIRECTED_RECV;
  const int result = real(version, node, service, flags, asked, found);
  fi_freeinfo(asked);
  for (struct fi_info* one = result == 0 ? *found : NULL; one != NULL; one = one->next) {
    if (lacks("data")) one->domain_attr->cq_data_size = 0;
    if (lacks("bits")) one->ep_attr->mem_tag_format >>= 5;
    if (strcmp(one->fabric_attr->prov_name, "pullman") == 0) {
      fprintf(stderr, "asked for %zu bytes of data, offered %zu, by source %d\n",
              hints->domain_attr->cq_data_size, one->domain_attr->cq_data_size,
              (one->caps & FI_DIRECTED_RECV) != 0);
    }
  }
  return result;
}
