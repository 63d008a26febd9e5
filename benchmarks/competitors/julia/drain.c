/*The lower limit: reads a command's output through a pipe of 1 MiB, without finding lines.
 *
 *     drain COMMAND ARGUMENT...
 *
 * Prints the number of bytes and the time of a second pass, like the programs that are compared with it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE (1 << 20)

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static unsigned long long drain(char **argv) {
    static char block[SIZE];
    unsigned long long bytes = 0;
    int ends[2], status;
    if (pipe2(ends, O_CLOEXEC) != 0)
        fail("pipe2");
    fcntl(ends[0], F_SETPIPE_SZ, SIZE);
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        dup2(ends[1], 1);
        execvp(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    close(ends[1]);
    for (;;) {
        ssize_t count = read(ends[0], block, SIZE);
        if (count < 0)
            fail("read");
        if (count == 0)
            break;
        bytes += (unsigned long long)count;
    }
    close(ends[0]);
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "%s failed\n", argv[0]);
        exit(1);
    }
    return bytes;
}

int main(int argc, char **argv) {
    struct timespec start, end;
    if (argc < 2)
        return 2;
    drain(argv + 1);
    clock_gettime(CLOCK_MONOTONIC, &start);
    unsigned long long bytes = drain(argv + 1);
    clock_gettime(CLOCK_MONOTONIC, &end);
    long long ns = (end.tv_sec - start.tv_sec) * 1000000000LL + (end.tv_nsec - start.tv_nsec);
    printf("bytes=%llu ns=%lld\n", bytes, ns);
    return 0;
}
