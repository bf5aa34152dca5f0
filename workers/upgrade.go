package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/undumpable"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// handedOn is what a host worker has to say to the program that takes over.
type handedOn struct {
	Options Options `json:"options"`
	Program string  `json:"program"` // see [Owner]
}

// TakeOverArgs are the arguments of a program with which it calls [CheckTakeOver].
var TakeOverArgs = []string{"take-over", "--check"}

func (o Options) upgrade(program string) (*supervisor.Upgrade, error) {
	said, err := json.Marshal(handedOn{o, program})
	if err != nil {
		return nil, err
	}
	return &supervisor.Upgrade{Path: program, Check: TakeOverArgs, Version: spec.Version, Program: said}, nil
}

// readHandedOn refuses an option that this program does not know.
func readHandedOn(said json.RawMessage) (h handedOn, err error) {
	d := json.NewDecoder(bytes.NewReader(said))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return h, fmt.Errorf("the options of the host worker are not understood: %w", err)
	}
	return h, nil
}

// CheckTakeOver shows a supervisor that this program can take over from it.
func CheckTakeOver(in io.Reader, out io.Writer) error {
	return supervisor.Answer(spec.Version, func(said json.RawMessage) error {
		h, err := readHandedOn(said)
		if err != nil {
			return err
		}
		return activities.UnderstandsPlans(h.Options.StateDir)
	}, in, out)
}

// TakeOver goes on as the supervisor in whose process this program was executed. begin is
// called with its options.
func TakeOver(ctx context.Context, command []string, begin func(context.Context, Options)) error {
	if err := undumpable.Set(); err != nil {
		return err
	}
	state, said, err := supervisor.Inherit()
	if err != nil {
		return err
	}
	defer state.Close()
	h, err := readHandedOn(said)
	if err != nil {
		return err
	}
	begin(ctx, h.Options)
	return supervise(ctx, h.Options, state, command, Owner{Program: h.Program})
}

// hasTerminal reports whether this process has a controlling terminal.
func hasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}
