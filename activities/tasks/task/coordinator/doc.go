// Package coordinator stops the goroutines of a process together. It is for programs that run
// several loops at once (readers, a training loop, something that saves every minute) which
// must end together: the first that fails, or finds the end of its input, stops the others, and
// a caller that waits for them gets the reason. It does not depend on clusterrun and works in
// any Go program; the Python module clusterrun has the same for threads.
//
//	coord := coordinator.New()
//	coord.Go("reader", func(ctx context.Context) error { ... })
//	coord.Loop(coordinator.Looper{Name: "saver", Interval: time.Minute, Run: save})
//	err := coord.Join() // the error that stopped them, or nil
//
// It is TensorFlow's tf.train.Coordinator and LooperThread, behavior for behavior. As there, a
// goroutine with a name is called a thread.
//
// # A stop
//
//	           RequestStop, an error, a panic          all ended, or grace over
//	running ──────────────────────────────► stopping ─────────────────────────► joined
//	   ▲                                        │                                  │
//	   └────────────────────────────────────────┴────────────── ClearStop ─────────┘
//
// A stop is a request: threads check [Coordinator.ShouldStop], wait for
// [Coordinator.WaitForStop], or watch their context, which ends with the stop. Only the error
// that stops the coordinator is recorded: an error after the stop, from a thread that the stop
// disturbed, is logged instead of returned. An error that means the end of the input ([io.EOF],
// or what [CleanStop] names) stops everything like a request without an error.
//
// [Coordinator.Join] waits without limit for threads to end. After a stop they have a grace
// period, two minutes by default, and those that are still running after it are named in a
// [StillRunningError].
//
// # Wider stops
//
// A coordinator can be tied to an [Outside] that stops with it. The package task has one for
// the tasks of a clusterrun run: a goroutine that fails then stops all processes of the run,
// and Join returns the first error anywhere.
//
// # Differences from TensorFlow
//
//   - Join does not poll: it returns as soon as the last thread has ended. The original
//     checks once a second.
//   - Stragglers are named in the order in which they were registered.
//   - Errors are values and need no except block to be reported. A panic is an error that
//     keeps its stack ([PanicError]) and is never a clean stop.
//   - A report from a thread of [Coordinator.Go] counts for the stop that was current when
//     the thread started. A straggler cannot stop what continues after ClearStop.
//   - A call of a [Looper] that returns its context's error after the stop has not failed, so
//     the Stop hook runs.
//
// Programs that use a coordinator can be tested without waiting: in a bubble of
// [testing/synctest] two minutes of grace take no time.
package coordinator
