// Package pool has a program use many processes of itself, which stay for many calls,
// as TensorFlow's MultiProcessPoolRunner does:
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
// The processes are this program again, in which [Main] does not return: it calls the
// registered functions. They are started by the first run, as the tasks of a run of
// clusterrun that is there for them alone, with all that such tasks have. The program
// clusterrun starts it; the two talk over a socket in the lines of package coordinate.
// When the program ends, however it does, the socket is closed, and with that the run
// and all its processes end. Nothing but the kernel is needed for that.
//
// A process that uses a pool itself has its own.
package pool
