package call

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/coordinate"
)

const pipeHelp = `Calls functions in the tasks of a run, for programs in any language. It reads requests
from stdin and writes answers to stdout, each a line of JSON, until stdin ends and
everything that was scheduled is in the queue. The run and the queue continue. After the
end of stdin it answers only requests to schedule, so keep stdin open until you have read
the answers.

The messages say closure for a call. The first line says where the queue is, and for how
many calls it has room:
  {"event":"open","run":"ID","answer":{"at":"POSITION","room":1000}}

Requests have an id, which their answer repeats, an op, and a message. schedule, join and
done keep the order of their lines:
  {"id":1,"op":"schedule","message":{"client":"c1","batch":1,
   "closures":[{"function":"step","args":[1],"kwargs":{}},{"function":"step","args":[2]}]}}
      (in one line) schedules calls. first is the ID of the first one, and the others
      follow: {"id":1,"answer":{"first":17,"room":998}}
  {"id":2,"op":"outcomes","message":{"client":"c1","after":"POSITION","wait":20}}
      waits for up to 20 s until calls of any client have ended, and tells how; ask again
      after the at of the answer:
      {"id":2,"answer":{"at":"...","outcomes":[{"id":17,"value":0.3,"task":"worker-0"}]}}
  {"id":3,"op":"find","message":{"closures":[17]}}
      the outcomes of the calls that have ended, also long ago
  {"id":4,"op":"join","message":{"client":"c1","call":1}}
      waits until all scheduled calls have ended: {"id":4,"answer":{"done":true}}
  {"id":5,"op":"done","message":{"client":"c1","call":2}}
      reports whether they have: {"id":5,"answer":{"done":true}}
  {"id":6,"op":"cancel","message":{"closures":[17]}}
      cancels these, or all without IDs: {"id":6,"answer":{"cancelled":1,"told":0}}
resources and release are for per-worker resources. The messages are those with which tasks
schedule calls; openapi.yaml in the sources describes them all.

client is a random name of your own. Number your requests to schedule from 1 (batch), and
your join and done from 1 (call): a request that is sent again with its number is the same
one. The first error of a call is "raised" in the answer to the next schedule, join or
done, when no call is executing; calls in the queue are cancelled. Give the epoch of
that answer with later schedules ("epoch":1): those with a lower one are cancelled, too. A
request that is refused has an error instead of an answer:
  {"id":7,"error":{"code":"invalid","message":"...","field":"closures[0].args"}}

A call may have options, all or some of these: {"function":"step","options":
{"key":"step-3","task":"worker-1","timeout":"3s"}}. "key": a call with the key of an
earlier one is that call, for as long as the run is open, unless it was cancelled, and
its ID is "known" in the answer; if it has failed, its error is raised again, or with
"retry": true it is called again. The keys of a run may have up to 1 MiB in all, including
8 bytes for each; beyond that, calls with new keys are refused. "task": only this task
of the run may call it. "timeout" limits one call. "max_losses": how often its task may die
while executing it before that is an error; default 10, and -1 means any number.
"detached": true: join and done do not wait for it, and its error does not stop others; it
is scheduled apart from others. Unknown fields are refused.

Exit codes:
  0    stdin has ended
  2    mistake in the command line
  125  there is no such run, or its server cannot be reached; or stdin ended before
       everything that was scheduled got into the queue`

func pipeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "pipe RUN",
		Short: "Call functions, with lines of JSON on stdin and stdout",
		Long:  pipeHelp,
		Example: `  # In bash: a coordinator as a coprocess
  coproc clusterrun call pipe iris-x2k4
  read -r open <&${COPROC[0]}; after=$(jq .answer.at <<<"$open")
  echo '{"id":1,"op":"schedule","message":{"client":"'$$'","batch":1,"closures":[{"function":"step","args":[1]}]}}' >&${COPROC[1]}
  read -r scheduled <&${COPROC[0]}
  echo '{"id":2,"op":"outcomes","message":{"client":"'$$'","after":'"$after"',"wait":20}}' >&${COPROC[1]}
  read -r outcomes <&${COPROC[0]}`,
		Args: cli.OneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return runPipe(cmd.Context(), a, args) },
	}
}

// runPipe implements [pipeCommand].
func runPipe(ctx context.Context, a *cli.App, args []string) error {
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	s, opened, err := starter.Get(c, args[0], "").ClosureService(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	go tellWaits(ctx, s.Status, func(text string) { a.Say("run %s: %s", args[0], text) })
	// A program that has died reads no answers; the closures that it scheduled stay scheduled.
	signal.Ignore(syscall.SIGPIPE)
	return coordinate.Serve(ctx, args[0], s, opened, a.In, a.Out)
}
