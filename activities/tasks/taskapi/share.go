package taskapi

import "syscall"

const (
	// maxConns bounds the connections of one task that are served at a time. Others wait in the
	// kernel, without effect on other tasks.
	maxConns = 512
	// minConns are served in any case.
	minConns = 4
)

// budget returns the number of descriptors that the connections of all tasks may take: half of
// the limit of this process. The rest is for files, sockets, and the server.
func budget() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return maxConns
	}
	return int(min(limit.Cur/2, 1<<20))
}

// share returns the number of connections that each of that many tasks may have.
func share(budget, tasks int) int {
	return min(max(budget/max(tasks, 1), minConns), maxConns)
}

// divide gives every task its share. s.mu must be held.
func (s *Server) divide() {
	most := share(s.budget, len(s.tasks))
	for _, e := range s.tasks {
		e.listener.setMost(most)
	}
}
