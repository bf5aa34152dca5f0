package call

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/text/strictjson"
)

// scheduling holds the flags of [Call].
type scheduling struct {
	kwargs, key, task, from string
	timeout                 time.Duration
	wait, detached, retry   bool
	patience                waitTimeout
}

func Call(a *cli.App) *cobra.Command {
	var s scheduling
	cmd := &cobra.Command{
		Use:   "call [flags] RUN FUNCTION [ARG...]",
		Short: "Call a function in a task of a run",
		Args: func(cmd *cobra.Command, args []string) error {
			if s.from != "" {
				return s.checkFrom(cmd, args)
			}
			if s.retry && s.key == "" {
				return cli.Usagef("--retry-failed is for a call with a --key")
			}
			if len(args) == 1 {
				return cli.Usagef("FUNCTION is missing; usage: %s", cmd.UseLine())
			}
			return cli.SomeArgs(2, "RUN")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runCall(cmd.Context(), a, cmd, args, &s) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if !cmd.HasSubCommands() { // call get and the others, which inherit this
			return cmd.Root().FlagErrorFunc()(cmd, err)
		}
		return cli.Usagef("%s; write -- before arguments that begin with a dash, as in `%s RUN FUNCTION -- -3`, and see `%s --help`",
			cli.FlagWords(err), cmd.CommandPath(), cmd.CommandPath())
	})
	f := cmd.Flags()
	f.StringVar(&s.kwargs, "kwargs", "", "arguments by name, as a `JSON` object")
	f.StringVar(&s.from, "from", "", "read calls from `FILE`, one JSON object in each line; - is stdin")
	f.StringVar(&s.key, "key", "", "calls with the same `KEY` are one call; if it has failed, its error is reported again")
	f.BoolVar(&s.retry, "retry-failed", false, "execute a failed call with the same key again")
	f.StringVar(&s.task, "task", "", "only this `TASK` may execute it")
	f.DurationVar(&s.timeout, "call-timeout", 0, "`TIME` for one execution of the call")
	f.BoolVar(&s.wait, "wait", false, "wait for the value and print it instead of the ID")
	s.patience.register(cmd, "give up after `TIME`; queued calls stay in the queue")
	cmd.AddCommand(getCommand(a), waitCommand(a), listCommand(a), pauseCommand(a), resumeCommand(a), cancelCommand(a), pipeCommand(a))
	return cmd
}

// runCall implements [Call].
func runCall(ctx context.Context, a *cli.App, cmd *cobra.Command, args []string, s *scheduling) error {
	// A command that waits for one call reports its error itself.
	s.detached = s.wait && s.from == ""
	var next func() (closure.Closure, error)
	if s.from != "" {
		in, err := openInput(s.from, cmd.InOrStdin())
		if err != nil {
			return err
		}
		defer in.Close()
		next = s.readFrom(in)
	} else {
		c, err := s.closure(args[1], args[2:])
		if err != nil {
			return err
		}
		next = yieldOnce(c)
	}
	return withQueue(ctx, a, args[0], access{attach: opened, timeout: time.Duration(s.patience), waits: true}, func(ctx context.Context, q *closurequeue.Queue) error {
		return schedule(ctx, a, q, next, *s)
	})
}

// checkFrom refuses flags that cannot apply to all lines of a file.
func (s *scheduling) checkFrom(cmd *cobra.Command, args []string) error {
	if err := cli.OneArg("RUN")(cmd, args); err != nil {
		return err
	}
	switch {
	case s.key != "":
		return cli.Usagef(`--key would give all lines the same key; give each line its own: {"function": "f", "options": {"key": "k"}}`)
	case s.kwargs != "":
		return cli.Usagef("--kwargs is for FUNCTION; with --from write them into the lines")
	}
	return nil
}

func yieldOnce(c closure.Closure) func() (closure.Closure, error) {
	done := false
	return func() (closure.Closure, error) {
		if done {
			return closure.Closure{}, io.EOF
		}
		done = true
		return c, nil
	}
}

func openInput(path string, stdin io.Reader) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(stdin), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cli.Usagef("--from: %s", err)
	}
	return f, nil
}

func (s *scheduling) closure(function string, args []string) (closure.Closure, error) {
	c := closure.Closure{Function: function, Options: s.options(nil)}
	list := make([]json.RawMessage, len(args))
	for i, arg := range args {
		if !json.Valid([]byte(arg)) {
			quoted, _ := json.Marshal(arg)
			return c, cli.Usagef("ARG %d, %s, is not JSON; for a text write '%s'", i+1, arg, quoted)
		}
		list[i] = json.RawMessage(arg)
	}
	if len(list) > 0 {
		c.Args, _ = json.Marshal(list)
	}
	if s.kwargs != "" {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(s.kwargs), &object); err != nil {
			if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
				err = errors.New("it is a JSON " + wrong.Value)
			}
			return c, cli.Usagef("--kwargs: want a JSON object, such as '{\"rate\": 0.1}': %s", err)
		}
		c.Kwargs = json.RawMessage(s.kwargs)
	}
	return c, nil
}

// options returns the options of the call, or none, with those that the flags set.
func (s *scheduling) options(own *closure.Options) *closure.Options {
	var o closure.Options
	if own != nil {
		o = *own
	}
	o.Key = cmp.Or(s.key, o.Key)
	o.Retry = o.Retry || s.retry && o.Key != ""
	o.Task = cmp.Or(s.task, o.Task)
	o.Timeout = cmp.Or(closure.TimeoutOf(s.timeout), o.Timeout)
	o.Detached = o.Detached || s.detached
	if o == (closure.Options{}) {
		return nil
	}
	return &o
}

// maxClosureLine bounds a line of calls, in bytes: the largest call, and white space.
const maxClosureLine = 2 * closure.MaxBytes

// readFrom reads calls, one after the other.
func (s *scheduling) readFrom(in io.Reader) func() (closure.Closure, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxClosureLine)
	number := 0
	return func() (closure.Closure, error) {
		for lines.Scan() {
			number++
			if len(lines.Bytes()) == 0 {
				continue
			}
			var c closure.Closure
			err := strictjson.Decode(lines.Bytes(), &c)
			if err == nil {
				c.Options = s.options(c.Options)
				err = c.Validate()
			}
			if err != nil {
				return c, cli.Usagef("line %d is not a call like {\"function\": \"f\", \"args\": [1]}: %s", number, err)
			}
			return c, nil
		}
		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			return closure.Closure{}, cli.Usagef("line %d is longer than %d bytes", number+1, maxClosureLine)
		} else if err != nil {
			return closure.Closure{}, err
		}
		return closure.Closure{}, io.EOF
	}
}
