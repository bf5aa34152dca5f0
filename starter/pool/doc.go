// Package pool lets a program run many processes of itself, which serve many calls, like
// TensorFlow's MultiProcessPoolRunner:
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
// The processes execute this program again. In them, [Main] does not return, but serves calls of
// the registered functions. The first call starts the processes as the tasks of a dedicated
// clusterrun run, with all the features of such tasks. To do so, the pool starts the clusterrun
// program and sends it the task API's closure requests over a socket. When this program exits or
// dies, the kernel closes the socket, which ends the run and all its processes.
//
// A process that itself uses a pool has its own.
package pool
