package command

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/coordinate"
)

const coordinateHelp = `Schedules closures on the tasks of a run, for programs of any language: it reads
requests from stdin and writes answers to stdout, each a line of JSON, until stdin
ends and all that was to be scheduled is in the queue. The run, and what is in the
queue, go on. At the end of stdin nothing is waited for any more: join, fetch and call
are not answered where closures have not ended, so keep stdin open until you have
read the answers.

Requests have an id, which their answer repeats, and an op:

  {"id":1,"op":"schedule","closures":[{"function":"step","args":[1],"kwargs":{}}]}
      takes closures, in the order of the lines: {"id":1,"ids":[17]}
  {"id":2,"op":"call","closures":[{"function":"step","args":[2]}]}
      the same, and waits for them: {"id":2,"outcomes":[{"value":0.3}]}
  {"id":3,"op":"fetch","ids":[17]}
      waits for closures that were scheduled, also by others, and however long ago:
      {"id":3,"outcomes":[{"error":{"kind":"ValueError","message":"no"}}]}
  {"id":4,"op":"join"}
      waits until all that was scheduled has been called: {"id":4}
  {"id":5,"op":"done"}
      says whether that is so: {"id":5,"done":true}
  {"id":6,"op":"cancel","ids":[17]}
      cancels these, or all where there are no ids: {"id":6,"cancelled":1}

The first error of a closure is also that of the next schedule, call, join or done:
{"id":7,"error":{"kind":"ValueError","message":"no"}}. What is refused is only the
error of its own answer. "lost" in an outcome says that the error is neither the
function's own nor a refusal: the process that called it has ended, or the run.

A closure may have options, all or some of them:

  {"id":8,"op":"call","closures":[{"function":"step","args":[3],"options":
   {"key":"step-3","task":"worker-1","priority":5,"timeout":"3s","retries":2}}]}

(in one line). "key": scheduled again with the same key it is the same closure, for as
long as the run lives, unless that was cancelled; one that has failed raises its error
again, and with "retry": true it is called again. The keys of a run have 1 MiB at most, 8
bytes for each included, and what finds no room is refused.
"task": only this task may call it, which the run must have. "priority": higher ones go first; default 0.
"timeout" bounds one call. "retries": how often it is called again after an error or a
timeout. "max_losses": how often its task may die under it before that is an error;
default 10, and -1 is any number. "detached": true, and join and done do not wait for
it, and its error is only its own. A field that does not exist is refused.

The first line is {"event":"open","run":"ID"}.

Exit codes:
  0    stdin has ended
  2    mistake in the command line
  125  there is no such run, or its server is out of reach; or stdin has ended, and
       what was to be scheduled did not get into the queue`

func (a *app) coordinateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "coordinate RUN",
		Short: "Schedule closures on the tasks of a run, by lines of JSON on stdin and stdout",
		Long:  coordinateHelp,
		Example: `  # In bash: a coordinator as a coprocess
  coproc clusterrun coordinate iris-x2k4
  echo '{"id":1,"op":"call","closures":[{"function":"step","args":[1]}]}' >&${COPROC[1]}
  read -r open <&${COPROC[0]}; read -r answer <&${COPROC[0]}`,
		Args: oneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.dialExisting(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			q, err := starter.Get(c, args[0], "").Closures(cmd.Context())
			if err != nil {
				return err
			}
			defer q.Close()
			go tellWaits(cmd.Context(), q.Status, func(text string) { a.say("run %s: %s", args[0], text) })
			// A program that has died reads no answers; what it wanted is scheduled.
			signal.Ignore(syscall.SIGPIPE)
			return coordinate.Serve(cmd.Context(), args[0], q, a.in, a.out)
		},
	}
}
