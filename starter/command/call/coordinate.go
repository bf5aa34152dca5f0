package call

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/coordinate"
)

const coordinateHelp = `Schedules closures on the tasks of a run, for programs in any language. It reads requests
from stdin and writes answers to stdout, each a line of JSON, until stdin ends and
everything that was scheduled is in the queue. The run and the queue continue. After the
end of stdin it waits for no closures: join, fetch and call are not answered if closures
have not ended, so keep stdin open until you have read the answers.

Requests have an id, which their answer repeats, and an op:
  {"id":1,"op":"schedule","closures":[{"function":"step","args":[1],"kwargs":{}}]}
      schedules closures, in the order of the lines: {"id":1,"ids":[17]}
  {"id":2,"op":"call","closures":[{"function":"step","args":[2]}]}
      the same, and waits for them: {"id":2,"outcomes":[{"value":0.3}]}
  {"id":3,"op":"fetch","ids":[17]}
      waits for closures that anyone has scheduled, however long ago:
      {"id":3,"outcomes":[{"error":{"kind":"ValueError","message":"no"}}]}
  {"id":4,"op":"join"}
      waits until all scheduled closures have been called: {"id":4}
  {"id":5,"op":"done"}
      reports whether they have been: {"id":5,"done":true}
  {"id":6,"op":"cancel","ids":[17]}
      cancels these, or all if there are no ids: {"id":6,"cancelled":1}

The first error of a closure is also that of the next schedule, call, join or done:
{"id":7,"error":{"kind":"ValueError","message":"no"}}. A refused request is an error in its
own answer only. "lost" in an outcome means that the error is neither the function's own
nor a refusal: the process that called it has ended, or the run.

A closure may have options, all or some of these:
  {"id":8,"op":"call","closures":[{"function":"step","args":[3],"options":
   {"key":"step-3","task":"worker-1","timeout":"3s"}}]}
(in one line). "key": a closure with the key of an earlier one is that closure, for as long
as the run is open, unless it was cancelled; if it has failed, its error is raised again,
or with "retry": true it is called again. The keys of a run may have up to 1 MiB in all,
including 8 bytes for each; beyond that, closures with new keys are refused. "task": only
this task of the run may call it. "timeout" limits one call. "max_losses": how often its
task may die while executing it before that is an error; default 10, and -1 means any
number. "detached": true: join and done do not wait for it, and its error does not stop
others. Unknown fields are refused.

The first line is {"event":"open","run":"ID"}.

Exit codes:
  0    stdin has ended
  2    mistake in the command line
  125  there is no such run, or its server cannot be reached; or stdin ended, and not
       everything that was scheduled got into the queue`

func Coordinate(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "coordinate RUN",
		Short: "Schedule closures on the tasks of a run, with lines of JSON on stdin and stdout",
		Long:  coordinateHelp,
		Example: `  # In bash: a coordinator as a coprocess
  coproc clusterrun coordinate iris-x2k4
  echo '{"id":1,"op":"call","closures":[{"function":"step","args":[1]}]}' >&${COPROC[1]}
  read -r open <&${COPROC[0]}; read -r answer <&${COPROC[0]}`,
		Args: cli.OneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.DialExisting(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			q, err := starter.Get(c, args[0], "").Closures(cmd.Context())
			if err != nil {
				return err
			}
			defer q.Close()
			go tellWaits(cmd.Context(), q.Status, func(text string) { a.Say("run %s: %s", args[0], text) })
			// A program that has died reads no answers; what it wanted is scheduled.
			signal.Ignore(syscall.SIGPIPE)
			return coordinate.Serve(cmd.Context(), args[0], q, a.In, a.Out)
		},
	}
}
