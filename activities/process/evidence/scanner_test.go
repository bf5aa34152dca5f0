package evidence

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

func scan(text string) []Finding { return Scan([]byte(text), 0) }

// Each error is found once, with its line and its place.
func TestErrorsAreRecognised(t *testing.T) {
	for _, c := range []struct {
		name, text            string
		kind, line, place     string
		lostPeer, maySurvived bool
	}{
		{"python", `step 1
Traceback (most recent call last):
  File "/home/ann/train.py", line 88, in <module>
    main()
  File "/usr/lib/python3.12/json/decoder.py", line 12, in decode
    raise ValueError("shard 3 is corrupt")
ValueError: shard 3 is corrupt
wandb: waiting
`, "python", "ValueError: shard 3 is corrupt", "train.py:88", false, false},
		{"python of torch, with the rank in front", `[rank3]: Traceback (most recent call last):
[rank3]:   File "train.py", line 88, in <module>
[rank3]:     load()
[rank3]:     ^^^^^^
[rank3]: ValueError: shard 3 is corrupt
`, "python", "ValueError: shard 3 is corrupt", "train.py:88", false, false},
		{"python, chained", `Traceback (most recent call last):
  File "a.py", line 2, in f
    sock.recv(1)
ConnectionResetError: [Errno 104] Connection reset by peer

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 5, in <module>
    f()
RuntimeError: step 7 failed
`, "python", "RuntimeError: step 7 failed", "a.py:5", true, false},
		{"python, logged", `2026-11-21 10:00:00 ERROR root: shard 3 is skipped
Traceback (most recent call last):
  File "a.py", line 2, in f
ValueError: bad shard
step 2
`, "python", "ValueError: bad shard", "a.py:2", false, true},
		{"python, ignored", `Exception ignored in: <function F.__del__ at 0x7f>
Traceback (most recent call last):
  File "a.py", line 2, in __del__
ValueError: too late
`, "python", "ValueError: too late", "a.py:2", false, true},
		{"python, a thread", `Exception in thread Thread-1 (f):
Traceback (most recent call last):
  File "a.py", line 3, in f
    x()
NameError: name 'x' is not defined
`, "python", "NameError: name 'x' is not defined", "a.py:3", false, false},
		{"python, a group", `  + Exception Group Traceback (most recent call last):
  |   File "a.py", line 1, in <module>
  |     raise ExceptionGroup("two", [ValueError(1), TypeError(2)])
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | ValueError: 1
    +---------------- 2 ----------------
    | TypeError: 2
    +------------------------------------
`, "python", "ExceptionGroup: two (2 sub-exceptions)", "a.py:1", false, false},
		{"python, no more memory", `Traceback (most recent call last):
  File "a.py", line 1, in <module>
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.
`, "out-of-memory", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.", "a.py:1", false, false},
		{"python, cut", "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n", "python", "Traceback (most recent call last):", "a.py:1", false, false},
		{"faulthandler", "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f (most recent call first):\n", "python", "Fatal Python error: Segmentation fault", "", false, false},
		{"c++", "terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad mesh\n", "c++", "std::runtime_error: bad mesh", "", false, false},
		{"c++ without an exception", "terminate called without an active exception\n", "c++", "terminate called without an active exception", "", false, false},
		{"an assertion", "sim: src/mesh.c:42: refine: Assertion `n > 0' failed.\n", "libc", "sim: src/mesh.c:42: refine: Assertion `n > 0' failed.", "mesh.c:42", false, false},
		{"a double free", "free(): double free detected in tcache 2\n", "libc", "free(): double free detected in tcache 2", "", false, false},
		{"a stack smashed", "*** stack smashing detected ***: terminated\n", "libc", "*** stack smashing detected ***: terminated", "", false, false},
		{"ASan", `=================================================================
==77==ERROR: AddressSanitizer: heap-use-after-free on address 0x60 at pc 0x40
READ of size 4 at 0x60 thread T0
    #0 0x4 in main /src/a.c:7:3
    #1 0x5 in __libc_start_main (/lib/libc.so.6+0x21)
SUMMARY: AddressSanitizer: heap-use-after-free /src/a.c:7:3 in main
==77==ABORTING
`, "sanitizer", "AddressSanitizer: heap-use-after-free on address 0x60 at pc 0x40", "a.c:7", false, false},
		{"UBSan", "a.c:3:5: runtime error: signed integer overflow\n", "sanitizer", "a.c:3:5: runtime error: signed integer overflow", "", false, true},
		{"TSan", "WARNING: ThreadSanitizer: data race (pid=7)\n  Write of size 4\n    #0 f /src/a.c:4:3 (a+0x1)\nSUMMARY: ThreadSanitizer: data race\n", "sanitizer", "ThreadSanitizer: data race (pid=7)", "a.c:4", false, true},
		{"go", "panic: no shard 3\n\ngoroutine 1 [running]:\nmain.load(...)\n\t/src/main.go:12\nmain.main()\n\t/src/main.go:5 +0x1d\nexit status 2\n", "go", "panic: no shard 3", "main.go:12", false, false},
		{"go, a nil pointer", "panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:5 +0x1d\n", "go", "panic: runtime error: invalid memory address or nil pointer dereference", "main.go:5", false, false},
		{"java", "Exception in thread \"main\" java.lang.IllegalStateException: no shard\n\tat app.Main.load(Main.java:12)\n\tat app.Main.main(Main.java:3)\n", "java", "java.lang.IllegalStateException: no shard", "Main.java:12", false, false},
		{"java, caused by a peer", "Exception in thread \"main\" java.lang.RuntimeException: step failed\n\tat app.Main.main(Main.java:3)\nCaused by: java.net.SocketException: Connection reset\n\tat app.Net.read(Net.java:30)\n\t... 1 more\n", "java", "java.net.SocketException: Connection reset", "Net.java:30", true, false},
		{"rust", "thread 'main' panicked at src/main.rs:4:5:\nno shard 3\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n", "rust", "panicked at main.rs:4: no shard 3", "main.rs:4", false, false},
		{"rust, before 1.73", "thread 'main' panicked at 'no shard 3', src/main.rs:4:5\nnote: run with\n", "rust", "panicked: no shard 3", "main.rs:4", false, false},
		{"fortran", "At line 12 of file src/ocean.f90 (unit = 10, file = 'grid')\nFortran runtime error: End of file\n", "fortran", "Fortran runtime error: End of file", "ocean.f90:12", false, false},
		{"ifort", "forrtl: severe (174): SIGSEGV, segmentation fault occurred\n", "fortran", "forrtl: severe (174): SIGSEGV, segmentation fault occurred", "", false, false},
		{"CUDA", "CUDA error at reduce.cu:33: an illegal memory access was encountered\n", "cuda", "CUDA error at reduce.cu:33: an illegal memory access was encountered", "", false, false},
		{"NCCL lost its peer", "gpu-1:77:99 [0] NCCL WARN socketProgress: Connection closed by remote peer gpu-2<4711>\n", "nccl", "gpu-1:77:99 [0] NCCL WARN socketProgress: Connection closed by remote peer gpu-2<4711>", "", true, true},
		{"the watchdog of torch", "[rank1]:[E1121 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3) ran for 600000 milliseconds\n", "nccl", "[E1121 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3) ran for 600000 milliseconds", "", true, false},
		{"gloo", "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:4711\n", "peer", "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:4711", "", true, true},
		{"MPI_Abort", "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 3\n", "mpi", "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 3", "", false, false},
		{"killed", "Killed\n", "killed", "Killed", "", false, false},
		{"a kernel's words", "Out of memory: Killed process 77 (python3)\n", "out-of-memory", "Out of memory: Killed process 77 (python3)", "", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := scan(c.text)
			if len(found) != 1 {
				t.Fatalf("found %d errors: %+v", len(found), found)
			}
			f := found[0]
			if f.Kind != c.kind || f.Line != c.line || f.Place != c.place || f.LostPeer != c.lostPeer || f.Survived != c.maySurvived {
				t.Errorf("found %+v\nwant %s: %q at %q, lost peer %t, survived %t", f, c.kind, c.line, c.place, c.lostPeer, c.maySurvived)
			}
		})
	}
}

// Lines that only look like errors are not reported.
func TestOtherLinesAreNoErrors(t *testing.T) {
	for _, text := range []string{
		"step 1 loss 0.5\n",
		"Killed the time with a book\n",
		"thread 'main' is ready\n",
		"validation error 0.03, error rate 2%\n",
		"Traceback of the gradient\n",
		"At line 12 we saw nothing\n",
		"connected to peer 3\n",
		"Segmentation faults: 0\n",
		"mean squared error: 0.1\n",
		"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    wait()\nKeyboardInterrupt\n",
		"",
	} {
		if found := scan(text); len(found) > 0 {
			t.Errorf("%q: found %+v", text, found)
		}
	}
}

// Choose distinguishes the error that ended a process from errors that it survived.
func TestChoose(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	at := func(seconds int, text string) Dated {
		found := scan(text)
		if len(found) != 1 {
			t.Fatalf("%q has %d errors", text, len(found))
		}
		by := start.Add(time.Duration(seconds) * time.Second)
		return Dated{Finding: found[0], After: by, By: by}
	}
	traceback := "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
	value, other := traceback+"ValueError: own\n", traceback+"OSError: other\n"
	logged := "ERROR retrying\n" + traceback + "KeyError: logged\n"
	peer := "connection closed by peer\n"
	for _, c := range []struct {
		name     string
		found    []Dated
		last     int // second of last output
		want     string
		lostPeer bool
	}{
		{"nothing", nil, 0, "", false},
		{"an error at the end", []Dated{at(10, value)}, 10, "ValueError: own", false},
		{"and three seconds of cleanup", []Dated{at(10, value)}, 13, "ValueError: own", false},
		{"an hour of output disproves it", []Dated{at(10, value)}, 3610, "", false},
		{"the first of several", []Dated{at(10, value), at(12, other)}, 13, "ValueError: own", false},
		{"not one from long before", []Dated{at(10, value), at(30, other)}, 30, "OSError: other", false},
		{"not a logged one", []Dated{at(9, logged), at(10, value)}, 10, "ValueError: own", false},
		{"unless there is no other", []Dated{at(9, logged)}, 10, "KeyError: logged", false},
		{"a victim", []Dated{at(9, peer), at(10, value)}, 10, "ValueError: own", true},
		{"its only words", []Dated{at(9, peer)}, 10, "connection closed by peer", true},
		{"a culprit that closes its connections", []Dated{at(9, value), at(10, peer)}, 10, "ValueError: own", false},
		{"a connection that was lost before, and mended", []Dated{at(1, peer), at(10, value)}, 10, "ValueError: own", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Choose(c.found, start.Add(time.Duration(c.last)*time.Second))
			switch {
			case f == nil && c.want != "":
				t.Errorf("nothing was chosen; want %q", c.want)
			case f != nil && (f.Line != c.want || f.LostPeer != c.lostPeer):
				t.Errorf("chose %+v; want %q, lost peer %t", f, c.want, c.lostPeer)
			}
		})
	}
}

// Many further lines show that a program is alive.
func TestManyLinesDisprove(t *testing.T) {
	text := "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x\n"
	for _, c := range []struct {
		rest int
		want bool
	}{{10, true}, {survivedLines + 1, false}} {
		found := scan(text + strings.Repeat("step\n", c.rest))
		if len(found) != 1 || found[0].Rest != c.rest {
			t.Fatalf("found %+v; want one with %d lines after it", found, c.rest)
		}
		if got := Choose([]Dated{{Finding: found[0]}}, time.Time{}) != nil; got != c.want {
			t.Errorf("with %d lines after it the error is chosen: %t", c.rest, got)
		}
	}
}

func FuzzScanner(f *testing.F) {
	f.Add([]byte("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x\n"))
	f.Add([]byte("  + Exception Group Traceback (most recent call last):\n  |\n | |x\n"))
	f.Add([]byte("Exception in thread \"a\" b\n\tat c(D.java:1)\nCaused by: e\n"))
	f.Add([]byte("thread 'main' panicked at 'x', \npanic: \n\t\nAt line  of file \n==1==ERROR: AddressSanitizer: x\n#\n#0 :\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s Scanner
		offset := int64(0)
		for line := range bytes.Lines(text) {
			s.Line(line, offset)
			offset += int64(len(line))
		}
		if scanned := Scan(text, 0); !slices.Equal(scanned, s.Findings()) {
			t.Errorf("Scan returns %+v, and the scanner %+v", scanned, s.Findings())
		}
		lines := bytes.Count(text, []byte("\n")) + 1
		end := int64(0)
		for _, e := range s.Findings() {
			switch {
			case len(e.Line) > maxText, len(e.Place) > maxPlace, e.Line == "" || e.Kind == "":
				t.Errorf("unbounded or empty: %+v", e)
			case e.Start < end || e.End <= e.Start || e.End > int64(len(text)):
				t.Errorf("%+v does not lie after %d in %d bytes", e, end, len(text))
			case e.Rest < 0 || e.Rest >= lines:
				t.Errorf("%+v: of %d lines", e, lines)
			}
			end = e.End
		}
	})
}
