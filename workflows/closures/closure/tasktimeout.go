package closure

import "time"

// TaskTimeout is after what time a workflow task of a queue is given out again. A task that
// the server hands to a side just as that is killed is lost until then, and with it all
// closures wait: for 10 seconds by default. The longest task of 200,000 closures took 0.8 s
// on a busy machine, and the server gives more time to one that has timed out three times.
const TaskTimeout = 2 * time.Second
