package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// TestScripts runs testdata: a process's requests, line by line, and their answers. `go test -run
// Scripts -rewrite` rewrites the answers.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s *Session
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			switch d.Cmd {
			case "world":
				var w World
				var hosts string
				d.ScanArgs(t, "rank", &w.Rank)
				d.ScanArgs(t, "size", &w.Size)
				d.ScanArgs(t, "app", &w.App)
				for _, a := range d.CmdArgs {
					if a.Key == "hosts" {
						hosts = strings.Join(a.Vals, ",")
					}
				}
				w.Mapping = Mapping(strings.Split(strings.Trim(hosts, "()"), ","))
				s = NewSession(w)
			case "lines":
				for line := range strings.Lines(d.Input) {
					line = strings.TrimSuffix(line, "\n")
					fmt.Fprintf(&out, "> %s\n", line)
					switch r := s.Line(line); r.Step {
					case Barrier:
						fmt.Fprintf(&out, "barrier, bringing %q\n", s.Brings())
					case Abort:
						fmt.Fprintf(&out, "abort with %d\n", r.Code)
					case Unknown:
						fmt.Fprintf(&out, "unknown: %s\n", r.Text)
					default:
						out.WriteString(r.Text)
					}
				}
			case "released":
				var brought []string
				for line := range strings.Lines(d.Input) {
					brought = append(brought, strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `\n`, "\n"))
				}
				out.WriteString(s.Released(brought))
			case "mapping":
				var hosts []string
				for _, a := range d.CmdArgs {
					hosts = append(hosts, a.Key)
				}
				out.WriteString(Mapping(hosts) + "\n")
			default:
				d.Fatalf(t, "no such directive")
			}
			return out.String()
		})
	})
}

// A mapping that exceeds the maximum value length is omitted. MPICH then exchanges all host names.
func TestALongMappingIsLeftOut(t *testing.T) {
	var hosts []string
	for i := range 1000 {
		hosts = append(hosts, slices.Repeat([]string{strconv.Itoa(i)}, i%3+1)...)
	}
	s := NewSession(World{Size: len(hosts), Mapping: Mapping(hosts)})
	assert.Equal(t, "cmd=get_result rc=-1 msg=no_such_key value=unknown\n", s.Line("cmd=get kvsname=clusterrun key=PMI_process_mapping").Text)
}

// FuzzSession checks the guarantees for clients with any input from one of two processes. An
// answer is one line, and after a barrier the second process gets the values that were put.
func FuzzSession(f *testing.F) {
	f.Add("cmd=init pmi_version=1 pmi_subversion=1\ncmd=put kvsname=clusterrun key=k value=v\ncmd=barrier_in")
	f.Add("mcmd=spawn\nnprocs=1\nendcmd\ncmd=get kvsname=clusterrun key=PMI_process_mapping")
	f.Add("cmd=put kvsname=clusterrun key=\xff value=v\ncmd=put kvsname=clusterrun key=k value=\xff")
	f.Add("cmd=put kvsname=clusterrun key=a=b value==\r\x00ü\ncmd=getbyidx kvsname=clusterrun idx=1")
	f.Fuzz(func(t *testing.T, text string) {
		w := World{Size: 2, Mapping: "(vector,(0,1,2))"}
		one, other := NewSession(w), NewSession(w)
		for line := range strings.SplitSeq(text, "\n") {
			r := one.Line(line)
			if n := strings.Count(r.Text, "\n"); r.Step == Answer && r.Text != "" && (n != 1 || !strings.HasSuffix(r.Text, "\n") || !strings.HasPrefix(r.Text, "cmd=")) {
				t.Fatalf("%q is answered by %q", line, r.Text)
			}
			if r.Step == Barrier {
				brings := []string{one.Brings(), other.Brings()}
				one.Released(brings)
				other.Released(brings)
			}
		}
		brings := []string{one.Brings(), other.Brings()}
		one.Released(brings)
		other.Released(brings)
		for key, value := range one.pairs {
			if other.pairs[key] != value {
				t.Fatalf("%q is %q here and %q there", key, value, other.pairs[key])
			}
		}
	})
}

// client is the process at the other end of a connection.
type client struct {
	net.Conn
	in *bufio.Reader
	t  *testing.T
}

func (c *client) ask(line string) string {
	c.t.Helper()
	_, err := io.WriteString(c, line+"\n")
	require.NoError(c.t, err)
	answer := must.Get(c.in.ReadString('\n'))(c.t)
	return strings.TrimSuffix(answer, "\n")
}

func serve(t *testing.T, barrier BarrierFunc) (*client, <-chan error) {
	here, there := net.Pipe()
	t.Cleanup(func() { _ = there.Close() })
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(t.Context(), here, NewSession(World{Size: 2}), barrier)
		_ = here.Close()
	}()
	return &client{there, bufio.NewReader(there), t}, ended
}

func TestServe(t *testing.T) {
	c, ended := serve(t, func(_ context.Context, brings string) ([]string, error) {
		return []string{brings, "card-1 one\n"}, nil
	})
	assert.Equal(t, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0", c.ask("cmd=init pmi_version=1 pmi_subversion=1"))
	assert.Equal(t, "cmd=put_result rc=0 msg=success", c.ask("cmd=put kvsname=clusterrun key=card-0 value=zero"))
	assert.Equal(t, "cmd=barrier_out", c.ask("cmd=barrier_in"))
	assert.Equal(t, "cmd=get_result rc=0 msg=success value=one", c.ask("cmd=get kvsname=clusterrun key=card-1"))
	assert.Equal(t, "cmd=finalize_ack", c.ask("cmd=finalize"))
	require.NoError(t, c.Close())
	require.NoError(t, <-ended)
}

// Sessions that the server closes without being asked to.
func TestServeEnds(t *testing.T) {
	broken := errors.New("broken")
	for line, want := range map[string]string{
		"cmd=abort exitcode=3":       "MPI_Abort was called with 3",
		"cmd=barrier_in":             "broken",
		"GET / HTTP/1.1":             `"GET / HTTP/1.1" is not a PMI-1 request`,
		strings.Repeat("x", maxLine): "a PMI-1 request has more than 65536 bytes",
	} {
		c, ended := serve(t, func(context.Context, string) ([]string, error) { return nil, broken })
		go func() { _, _ = io.WriteString(c, line+"\n") }()
		require.EqualError(t, <-ended, want)
		_, err := c.in.ReadByte()
		require.ErrorIs(t, err, io.EOF)
	}
}
