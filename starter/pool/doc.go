// Package pool lets a program use many processes of itself, which stay for many calls, as
// TensorFlow's MultiProcessPoolRunner does:
//
//	func init() { pool.Register("train", train) }
//
//	func main() {
//		pool.Main()
//		p, err := pool.New(pool.Options{Tasks: []spec.TaskGroup{{Type: "worker", Count: &n}}})
//		defer p.Shutdown()
//		losses, err := pool.Run[float64](ctx, p, "train", 10)
//	}
//
// The processes execute this program again. There [Main] does not return, but serves calls of
// the registered functions. The first call starts the processes, as the tasks of a run of
// clusterrun that exists only for them, with all features of such tasks. The pool starts the
// program clusterrun for that, and makes the requests of the task API for closures over
// a socket. When this program ends or dies, the kernel closes the socket, which ends the run
// and all its processes.
//
// A process that uses a pool itself has its own.
package pool
