// Package coordinator stops the goroutines of a process together. It is for
// programs that run several loops at once (readers, a training loop, something
// that saves every minute) and have to end as one: the first that fails, or finds
// the end of its input, stops the others, and whoever waits for them is told the
// reason. It needs nothing of clusterrun and works in any Go program; the Python
// module clusterrun has the same for threads.
//
//	coord := coordinator.New()
//	coord.Go("reader", func(ctx context.Context) error { ... })
//	coord.Loop(coordinator.Looper{Name: "saver", Interval: time.Minute, Run: save})
//	err := coord.Join() // the error that stopped them, or nil
//
// It is TensorFlow's tf.train.Coordinator and LooperThread, behaviour for
// behaviour. A goroutine with a name is called a thread here, as there.
//
// # A stop
//
//	           RequestStop, an error, a panic          all ended, or grace over
//	running ──────────────────────────────► stopping ─────────────────────────► joined
//	   ▲                                        │                                  │
//	   └────────────────────────────────────────┴────────────── ClearStop ─────────┘
//
// A stop is a request: threads look at [Coordinator.ShouldStop], wait for
// [Coordinator.WaitForStop], or watch the context they are given, which ends then.
// Only what stops the coordinator is recorded: an error that comes after the
// stop, from a thread that was disturbed by it, is logged and not returned. An
// error that says the input has ended ([io.EOF], or what [CleanStop] names) stops
// everything like a request without an error.
//
// [Coordinator.Join] waits without limit for threads to end. From the stop on they
// have a grace, of two minutes if nothing else is said, and those that are still
// running after it are named by [StillRunningError].
//
// # Part of something wider
//
// A coordinator can be tied to an [Outside] that stops with it. For tasks of a run
// that clusterrun runs there is one in the package task: then a goroutine that fails
// stops all processes of the run, and Join returns the first error anywhere.
//
// # Differences from TensorFlow
//
//   - Join polls nothing: it returns as soon as the last thread has ended. The
//     original looks once a second.
//   - Stragglers are named in the order in which they were registered.
//   - Errors are values and need no except block to be reported from. A panic is
//     an error that keeps its stack ([PanicError]) and is never a clean stop.
//   - What a thread of [Coordinator.Go] reports counts for the stop it was started
//     under. A straggler cannot stop what goes on after ClearStop.
//   - A call of a [Looper] that returns its context's error after the stop has not
//     failed, so the Stop hook runs.
//
// Programs that use it can be tested without waiting: in a bubble of
// [testing/synctest] two minutes of grace take no time.
package coordinator
