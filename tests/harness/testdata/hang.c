/* A rank of a program that hangs: hang WAIT DEED GUILTY, like hang.py, with MPICH. Debian's
   headers are a package of their own, so it has what it needs of them. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>
int MPI_Init(int *, char ***), MPI_Comm_rank(int, int *), MPI_Comm_size(int, int *), MPI_Barrier(int);
int MPI_Allreduce(const void *, void *, int, int, int, int), MPI_Bcast(void *, int, int, int, int);
int MPI_Recv(void *, int, int, int, int, int, void *), MPI_Ssend(const void *, int, int, int, int, int);
int MPI_Allgather(const void *, int, int, void *, int, int, int);
int MPI_Sendrecv(const void *, int, int, int, int, void *, int, int, int, int, int, void *);
enum { WORLD = 0x44000000, INT = 0x4c000405, SUM = 0x58000003 };

static int rank, size, guilty, in, all[256];
static const char *what;
static volatile int nothing;

#define IS(name) (!strcmp(what, #name))
static void is_stuck(void) {
	int fds[2];
	if (IS(sleeps)) sleep(1000);
	if (IS(locks_twice)) { pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m); pthread_mutex_lock(&m); }
	if (IS(waits_for_a_condition)) {
		pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t c = PTHREAD_COND_INITIALIZER;
		pthread_mutex_lock(&m); pthread_cond_wait(&c, &m);
	}
	if (IS(waits_for_a_semaphore)) { sem_t s; sem_init(&s, 0, 0); sem_wait(&s); }
	if (IS(reads_a_pipe)) { pipe(fds); read(fds[0], &in, 1); }
	if (IS(reads_a_socket)) { socketpair(AF_UNIX, SOCK_STREAM, 0, fds); recv(fds[0], &in, 1, 0); }
	if (IS(waits_for_a_child)) { if (fork() == 0) { execlp("sleep", "sleep", "1000", NULL); _exit(1); } wait(&in); }
	if (IS(locks_a_file)) { flock(open("lock", O_CREAT | O_RDWR, 0600), LOCK_EX); flock(open("lock", O_RDWR), LOCK_EX); }
	if (IS(computes)) while (1) nothing++;
}

static void step(const char *wait) {
	if (!strcmp(wait, "barrier")) MPI_Barrier(WORLD);
	if (!strcmp(wait, "allreduce")) MPI_Allreduce(&rank, &in, 1, INT, SUM, WORLD);
	if (!strcmp(wait, "bcast")) MPI_Bcast(&in, 1, INT, guilty, WORLD);
	if (!strcmp(wait, "allgather")) MPI_Allgather(&rank, 1, INT, all, 1, INT, WORLD);
	if (!strcmp(wait, "recv")) MPI_Recv(&in, 1, INT, guilty < 0 ? (rank + 1) % size : guilty, 0, WORLD, (void *)1);
	if (!strcmp(wait, "ssend")) MPI_Ssend(&in, 1, INT, guilty, 0, WORLD);
}

int main(int argc, char **argv) {
	const char *wait = argv[1];
	what = argv[2];
	guilty = atoi(argv[3]);
	setenv("UCX_NET_DEVICES", "lo", 1);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(WORLD, &rank);
	MPI_Comm_size(WORLD, &size);
	MPI_Barrier(WORLD);
	puts("waiting");
	fflush(stdout);
	if (rank == guilty) is_stuck();
	while (1) step(wait);
}
