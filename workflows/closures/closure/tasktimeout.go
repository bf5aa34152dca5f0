package closure

import "time"

// TaskTimeout is the timeout of a queue's workflow tasks. All closures wait for it if the
// server hands a task to a host worker that is killed just then; the default is 10 seconds.
// The longest task of 200,000 closures took 0.8 s on a busy machine, and the server gives
// more time to one that has timed out three times.
const TaskTimeout = 2 * time.Second
