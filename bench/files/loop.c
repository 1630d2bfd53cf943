/* A plain loop over many small files, to compare `diskproof files` with: one thread, one directory,
 * ascending names, no sync. Usage: loop DIR COUNT BYTES. Prints files per second by operation.
 * Content is dropped from the page cache before it is read, as diskproof does it. */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static char names[2][32];
static void name(long i) {
  snprintf(names[0], 32, "a%016lx", i);
  snprintf(names[1], 32, "b%016lx", i);
}

int main(int argc, char **argv) {
  if (argc != 4) errx(2, "usage: loop DIR COUNT BYTES");
  long count = atol(argv[2]), bytes = atol(argv[3]);
  if (chdir(argv[1]) || mkdir("loop", 0700)) err(1, "%s/loop", argv[1]);
  int dir = open("loop", O_RDONLY | O_DIRECTORY);
  char *data = malloc(bytes + 1);
  for (long i = 0; i < bytes; i++) data[i] = rand();
  struct stat st;
  const char *operations[] = {"create", "stat", "read", "rename", "delete"};
  for (int op = 0; op < 5; op++) {
    for (int pass = 0; op == 2 && pass < 2; pass++)
      for (long i = 0; i < count; i++) {
        name(i);
        int fd = openat(dir, names[0], O_RDONLY | O_NOFOLLOW);
        if (pass == 0) sync_file_range(fd, 0, 0, 7);
        else posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
      }
    double start = now();
    for (long i = 0; i < count; i++) {
      int fd, bad = 0;
      name(i);
      switch (op) {
        case 0:
          fd = openat(dir, names[0], O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW, 0600);
          bad = fd < 0 || (bytes && write(fd, data, bytes) != bytes) || close(fd);
          break;
        case 1: bad = fstatat(dir, names[0], &st, AT_SYMLINK_NOFOLLOW); break;
        case 2:
          fd = openat(dir, names[0], O_RDONLY | O_NOFOLLOW);
          bad = fd < 0 || (bytes && read(fd, data, bytes) != bytes) || close(fd);
          break;
        case 3: bad = renameat(dir, names[0], dir, names[1]); break;
        case 4: bad = unlinkat(dir, names[1], 0); break;
      }
      if (bad) err(1, "%s of file %ld", operations[op], i);
    }
    printf("%s %.0f\n", operations[op], count / (now() - start));
  }
  return rmdir("loop") ? 1 : 0;
}
