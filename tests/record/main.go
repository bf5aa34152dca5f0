package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

var (
	//go:embed scenarios.sh
	scenarios string
	//go:embed closures.py
	closures string
)

// On the second server, workflows continue as new after continued events.
const continued = 20

func main() {
	log.SetFlags(0)
	log.SetPrefix("record: ")
	programs := flag.String("bin", "bin", "the `DIRECTORY` of clusterrun")
	temporal := flag.String("temporal", ".tools/temporal", "the `PROGRAM` temporal, for its development server")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: record [FLAGS] DIRECTORY")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := os.MkdirAll(flag.Arg(0), 0o755); err != nil {
		log.Fatal(err)
	}
	for _, s := range []struct {
		suffix string
		flags  []string
	}{{}, {"-continued", []string{"--dynamic-config-value", fmt.Sprint("limit.historyCount.suggestContinueAsNew=", continued)}}} {
		if err := record(*programs, *temporal, s.flags, flag.Arg(0), s.suffix); err != nil {
			log.Fatal(err)
		}
	}
}

// record plays the scenarios on a new server, and writes the resulting histories.
func record(programs, temporal string, serverFlags []string, to, suffix string) (err error) {
	bin, err := filepath.Abs(programs)
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "record")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	if err := os.WriteFile(filepath.Join(home, "closures.py"), []byte(closures), 0o600); err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	env := []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "TEMPORAL_ADDRESS=" + address, "CLUSTERRUN_BIN=" + filepath.Join(bin, "clusterrun")}
	command := func(argv ...string) *exec.Cmd {
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir, c.Env, c.Stderr = home, env, os.Stderr
		return c
	}
	_, port, _ := net.SplitHostPort(address)
	program, err := filepath.Abs(temporal)
	if err != nil {
		return err
	}
	background := [][]string{append([]string{program, "server", "start-dev", "--headless", "--port", port}, serverFlags...)}
	for _, host := range []string{"host-a", "host-b"} {
		background = append(background, []string{filepath.Join(bin, "clusterrun"), "worker", "--state-dir", filepath.Join(home, host), "--host-name", host, "--slots", "0", "--listen", "127.0.0.1"})
	}
	for _, argv := range background {
		c := command(argv...)
		if err := c.Start(); err != nil {
			return err
		}
		defer func() {
			_ = c.Process.Signal(syscall.SIGTERM)
			_ = c.Wait()
		}()
	}
	play := command("bash", "-euc", scenarios)
	play.Stdout = os.Stderr
	if err := play.Run(); err != nil {
		return fmt.Errorf("the scenarios: %w", err)
	}
	c, err := client.Dial(client.Options{HostPort: address, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	// No command closes a fleet.
	if err := c.CancelWorkflow(ctx, spec.FleetID(spec.TaskQueue), ""); err != nil {
		return err
	}
	_ = c.GetWorkflow(ctx, spec.FleetID(spec.TaskQueue), "").Get(ctx, nil)
	return writeAll(ctx, c, to, suffix)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// writeAll writes the first and last closed execution's history per workflow, since the executions
// in between are alike.
func writeAll(ctx context.Context, c client.Client, to, suffix string) error {
	of := map[string][]*workflowpb.WorkflowExecutionInfo{}
	for token := []byte(nil); ; {
		page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: "ExecutionStatus != 'Running'", NextPageToken: token})
		if err != nil {
			return err
		}
		for _, e := range page.GetExecutions() {
			of[e.GetExecution().GetWorkflowId()] = append(of[e.GetExecution().GetWorkflowId()], e)
		}
		if token = page.GetNextPageToken(); token == nil {
			break
		}
	}
	for id, executions := range of {
		slices.SortFunc(executions, func(a, b *workflowpb.WorkflowExecutionInfo) int {
			return a.GetStartTime().AsTime().Compare(b.GetStartTime().AsTime())
		})
		name := fileName(id) + suffix
		if err := write(ctx, c, executions[0], filepath.Join(to, name+".json")); err != nil {
			return err
		}
		if last := executions[len(executions)-1]; len(executions) > 1 {
			if err := write(ctx, c, last, filepath.Join(to, name+"-last.json")); err != nil {
				return err
			}
		}
	}
	return nil
}

// fileName returns a file name for a workflow, without the execution IDs in its ID.
func fileName(id string) string {
	parts := slices.DeleteFunc(strings.FieldsFunc(id, func(r rune) bool { return r == '/' || r == ':' }), func(part string) bool {
		return len(part) == len("00000000-0000-0000-0000-000000000000") && strings.Count(part, "-") == 4
	})
	return strings.Join(parts, "-")
}

// unreplayed lists event fields that replay does not read.
var unreplayed = []protoreflect.Name{"task_id", "user_metadata", "links", "identity", "request_id", "header", "history_size_bytes", "worker_version", "sticky_attributes", "metering_metadata"}

func write(ctx context.Context, c client.Client, e *workflowpb.WorkflowExecutionInfo, path string) error {
	history := &historypb.History{}
	for events := c.GetWorkflowHistory(ctx, e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		if err != nil {
			return err
		}
		strip(event.ProtoReflect())
		history.Events = append(history.Events, event)
	}
	b, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(history)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}

// strip removes the fields from a message and its nested messages.
func strip(m protoreflect.Message) {
	m.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case slices.Contains(unreplayed, d.Name()):
			m.Clear(d)
		case d.Message() != nil && !d.IsList() && !d.IsMap():
			strip(v.Message())
		}
		return true
	})
}
