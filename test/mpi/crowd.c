/* Many ranks on one host: each has memory with those it talks to, and few descriptors. */
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "ranks.h"

enum {
  kNeighbours = 2,
  kInBarrier = 8,      /* ranks that one may hear in a barrier, at most */
  kLongest = 64 << 10, /* bytes of memory with one peer */
  kProcesses = 16      /* with a descriptor that tells of their end */
};

/* How many descriptors there are of processes. */
static int process_descriptors(void) {
  DIR* all = opendir("/proc/self/fd");
  EXPECT(all != NULL);
  int count = 0;
  for (const struct dirent* one; (one = readdir(all)) != NULL;) {
    char what[64] = "";
    if (readlinkat(dirfd(all), one->d_name, what, sizeof what - 1) < 0) continue;
    count += strcmp(what, "anon_inode:[pidfd]") == 0;
  }
  closedir(all);
  return count;
}

/* With how many ranks this one has memory. */
static int memories(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  EXPECT(maps != NULL);
  int count = 0;
  char line[4096];
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long begin, end;
    const char* file = strstr(line, "/dev/shm/pullman.");
    if (file == NULL) continue;
    if (strchr(file + strlen("/dev/shm/"), '/') != NULL) continue; /* what this rank shows of itself */
    EXPECT(sscanf(line, "%lx-%lx", &begin, &end) == 2);
    EXPECT(end - begin <= kLongest);
    ++count;
  }
  fclose(maps);
  return count;
}

static void exchange(int to, int from, int tag) {
  char out[100], in[100];
  fill(out, sizeof out, rank, tag);
  MPI_Sendrecv(out, sizeof out, MPI_CHAR, to, tag, in, sizeof in, MPI_CHAR, from, tag,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT(is_filled(in, sizeof in, from, tag));
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  EXPECT(memories() <= kNeighbours); /* which may have begun */

  for (int tag = 0; tag < 20; ++tag) {
    exchange(right_of(rank), left_of(rank), tag);
    exchange(left_of(rank), right_of(rank), tag);
  }
  EXPECT(memories() >= kNeighbours && memories() <= kNeighbours + kInBarrier);
  MPI_Barrier(MPI_COMM_WORLD);

  for (int tag = 0; tag < 5; ++tag) {
    for (int far = 1; far < ranks; ++far) {
      exchange((rank + far) % ranks, (rank + ranks - far) % ranks, tag);
    }
  }
  EXPECT(memories() == ranks - 1);
  EXPECT(process_descriptors() == kProcesses);
  end("crowd");
  return 0;
}
