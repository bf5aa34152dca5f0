package activities

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// source is a host with the run's archive.
type source struct {
	*hostservice.Server
	store *shipped.Store
	state string
}

func newSource(t *testing.T, name string, archive *shipped.Archive) *source {
	t.Helper()
	s := &source{state: t.TempDir()}
	s.store = shipped.Open(s.state)
	if archive != nil {
		require.NoError(t, s.store.Put(archive.Archive, archive.Reader()))
	}
	s.Server = must.Get(hostservice.Listen(hostservice.Config{Host: name, StateDir: s.state, Listen: "127.0.0.1", Archives: s.store}))(t)
	go s.Serve(func(context.Context, runkey.Run) {})
	t.Cleanup(s.Close)
	return s
}

func packed(t *testing.T, size int) *shipped.Archive {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), bytes.Repeat([]byte("x"), size), 0o600))
	a := must.Get(shipped.Pack(t.Context(), dir, t.TempDir(), shipped.Options{}))(t)
	t.Cleanup(a.Close)
	return a
}

func shippingTo(t *testing.T, state string) *Host {
	t.Helper()
	h := must.Get(NewHost(Config{Name: "host-b", StateDir: state, LogRoot: filepath.Join(state, "logs"), Log: zap.NewNop()}))(t)
	t.Cleanup(h.Close)
	return h
}

var iris = runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "0199-aa"}

// bringTo calls bring like Reserve.
func bringTo(t *testing.T, h *Host, a spec.Archive, from ...spec.HostService) error {
	t.Helper()
	in := hostapi.ReserveInput{Spec: &spec.RunSpec{Ship: spec.Ship{Archive: &a}}, Shipped: from}
	if len(from) > 0 {
		in.Spec.Ship.From, in.Shipped = &from[0], from[1:]
	}
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	reserve := func(ctx context.Context) error {
		unlock, err := h.ships.bring(ctx, iris, in, "", nil)
		if err == nil {
			unlock()
		}
		return err
	}
	env.RegisterActivity(reserve)
	_, err := env.ExecuteActivity(reserve)
	return err
}

// leftIn lists the files in a host's directory of archives.
func leftIn(t *testing.T, state string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(state, "shipped"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	return files
}

func TestWhatIsShippedIsFetchedOnce(t *testing.T) {
	archive := packed(t, 100_000)
	s, state := newSource(t, "host-a", archive), t.TempDir()
	h := shippingTo(t, state)
	require.NoError(t, bringTo(t, h, archive.Archive, *s.DescribeArchive(archive.Digest)))
	info := must.Get(os.Stat(filepath.Join(h.shipped.Dir(iris), "data")))(t)
	assert.EqualValues(t, 100_000, info.Size())
	s.Close()
	require.NoError(t, bringTo(t, h, archive.Archive, *s.DescribeArchive(archive.Digest)), "the next generation")
	require.NoError(t, bringTo(t, shippingTo(t, state), archive.Archive), "the next host worker")

	shipping := &spec.RunSpec{Ship: spec.Ship{Archive: &archive.Archive}}
	assert.Equal(t, h.shipped.Dir(iris), h.ships.dirOf(iris, shipping, spec.Task{}))
	assert.Equal(t, filepath.Join(h.shipped.Dir(iris), "src"), h.ships.dirOf(iris, shipping, spec.Task{Dir: "src"}))
	assert.Equal(t, "/srv", h.ships.dirOf(iris, shipping, spec.Task{Dir: "/srv"}))
}

func TestWhatIsShippedIsNotPacked(t *testing.T) {
	in := hostapi.ReserveInput{Spec: &spec.RunSpec{Ship: spec.Ship{Dir: "/home/ann/job"}}}
	_, err := shippingTo(t, t.TempDir()).ships.bring(t.Context(), iris, in, "", nil)
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	assert.Equal(t, spec.ErrInvalidRunSpec, app.Type())
	assert.ErrorContains(t, err, "ship: the directory has not been packed; start the run with `clusterrun run` or `clusterrun submit`, which pack it")
}

// refusedAs checks that a reservation failed with an error after which another host is tried.
func refusedAs(t *testing.T, err error, texts ...string) {
	t.Helper()
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	assert.Equal(t, spec.ErrPlacement, app.Type())
	for _, text := range append(texts, "cannot fetch the shipped directory: ") {
		assert.Contains(t, app.Message(), text)
	}
}

func TestSourcesThatAreNoGood(t *testing.T) {
	archive, other := packed(t, 5000), packed(t, 6000)
	good, damaged, empty := newSource(t, "host-a", archive), newSource(t, "host-c", archive), newSource(t, "host-d", nil)
	path := filepath.Join(damaged.state, "shipped", "archives", archive.Digest)
	b := must.Get(os.ReadFile(path))(t)
	b[700]++
	require.NoError(t, os.WriteFile(path, b, 0o600))
	gone := newSource(t, "host-e", archive)
	gone.Close()
	strange := *good.DescribeArchive(archive.Digest)
	strange.Fingerprint = strings.Repeat("0", 64)

	for name, c := range map[string]struct {
		from spec.HostService
		text string
	}{
		"another archive":          {*damaged.DescribeArchive(archive.Digest), "host host-c: the archive has the digest "},
		"removed":                  {*empty.DescribeArchive(archive.Digest), "host host-d at 127.0.0.1:"},
		"a token of another run":   {*good.DescribeArchive(other.Digest), "it does not have the archive that the run ships, or does not offer it to this run"},
		"a token for its files":    {*good.Describe(iris, "/logs", nil), "it does not have the archive that the run ships, or does not offer it to this run"},
		"a token to store":         {*good.DescribeStore(), "it does not have the archive that the run ships, or does not offer it to this run"},
		"another certificate":      {strange, "the run does not have this certificate"},
		"a host that is not there": {*gone.DescribeArchive(archive.Digest), "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			h := shippingTo(t, state)
			refusedAs(t, bringTo(t, h, archive.Archive, c.from), c.text)
			assert.Empty(t, leftIn(t, state), "nothing is left")
			require.NoError(t, bringTo(t, h, archive.Archive, c.from, *good.DescribeArchive(archive.Digest)), "another host has it")
		})
	}
	refusedAs(t, bringTo(t, shippingTo(t, t.TempDir()), archive.Archive), "no host serves it; host workers need --listen")
}

// The source is lost during a fetch, and the host continues with another source.
func TestSourceIsLost(t *testing.T) {
	archive := packed(t, 32<<20)
	first, second := newSource(t, "host-a", archive), newSource(t, "host-c", archive)
	h := shippingTo(t, t.TempDir())
	var once sync.Once
	var last int64
	require.NoError(t, h.ships.fetch(t.Context(), archive.Archive, []spec.HostService{
		*first.DescribeArchive(archive.Digest), *second.DescribeArchive(archive.Digest),
	}, func(n int64) {
		assert.Greater(t, n, last, "what has come is not fetched again")
		last = n
		once.Do(first.Close)
	}))
	assert.EqualValues(t, archive.Size, last)
	assert.True(t, h.shipped.Has(archive.Digest))
}

func TestNoRoomForWhatIsShipped(t *testing.T) {
	archive := packed(t, 2<<20)
	s := newSource(t, "host-a", archive)
	for name, size := range map[string]string{"to fetch it": "size=1m", "to unpack it": "size=3m"} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			if err := unix.Mount("tmpfs", state, "tmpfs", 0, size); err != nil {
				t.Skipf("a small disk cannot be mounted here: %v", err)
			}
			t.Cleanup(func() { _ = unix.Unmount(state, unix.MNT_DETACH) })
			h := shippingTo(t, state)
			refusedAs(t, bringTo(t, h, archive.Archive, *s.DescribeArchive(archive.Digest)), filepath.Join(state, "shipped"), syscall.ENOSPC.Error())
			assert.Empty(t, leftIn(t, state), "what has come is not in the way")
		})
	}
}

// A run that fetched its archive from this host has ended if the server reports its end.
func TestRunsThatHaveTheirArchiveFromHere(t *testing.T) {
	now := time.Now()
	h := assemble(&core{now: func() time.Time { return now }})
	closed := func(at time.Time) *workflowservice.DescribeWorkflowExecutionResponse {
		return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, CloseTime: timestamppb.New(at),
		}}
	}
	running := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}}
	lately, before := now.Add(-time.Minute), now.Add(-24*time.Hour)
	for name, c := range map[string]struct {
		server answering
		since  time.Time
		over   bool
		of     string // the identity of the run's server
	}{
		"it runs":                       {answering{running, nil}, before, false, ""},
		"it has ended":                  {answering{closed(now), nil}, lately, true, ""},
		"an earlier one has":            {answering{closed(before), nil}, lately, false, ""},
		"and it was never started":      {answering{closed(before.Add(-time.Hour)), nil}, before, true, ""},
		"it is about to be started":     {answering{nil, serviceerror.NewNotFound("")}, lately, false, ""},
		"it is not there any more":      {answering{nil, serviceerror.NewNotFound("")}, before, true, ""},
		"its server does not know it":   {answering{nil, serviceerror.NewNotFound("")}, before, true, "this"},
		"another server does not":       {answering{nil, serviceerror.NewNotFound("")}, before, false, "another"},
		"the server does not answer it": {answering{nil, serviceerror.NewUnavailable("")}, before, false, ""},
	} {
		h.Server = c.server
		assert.Equal(t, c.over, h.watch.isOver(t.Context(), shipped.Upload{WorkflowID: "iris", Server: c.of, Time: c.since}), name)
	}
}

// answering is a server that gives this answer for every run.
type answering struct {
	description *workflowservice.DescribeWorkflowExecutionResponse
	err         error
}

func (a answering) DescribeRun(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return a.description, a.err
}
func (answering) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return nil }
func (answering) CancelRun(context.Context, string, string) error               { return nil }
func (answering) TakeOver(context.Context, runkey.Run, server.Taker) error      { return nil }
func (answering) ReadShared(context.Context, hostapi.Shared, any) error         { return nil }
func (answering) Identity(context.Context, string) (string, error)              { return "this", nil }
func (answering) KnownIdentity(context.Context, string) (string, error)         { return "this", nil }
