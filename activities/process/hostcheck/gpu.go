package hostcheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

// gpu fails if a GPU of NVIDIA does not answer, has errors that could not be corrected, or has had
// an error of its hardware in the last hour. number is the number of GPUs; if it is empty, it is
// that of the driver.
func gpu(ctx context.Context, number string) error {
	program, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return errors.New("nvidia-smi is not in PATH")
	}
	rows, _, err := resources.AskNVIDIA(ctx, program, "--query-gpu=index,name")
	if err != nil {
		return fmt.Errorf("nvidia-smi does not answer: %w", err)
	}
	wanted, err := strconv.Atoi(number)
	if err != nil {
		wanted = max(1, resources.ReadGPUs(os.Environ()).Count)
	}
	if len(rows) < wanted {
		return fmt.Errorf("nvidia-smi knows %s of %d", plural.Of(len(rows), "GPU", "GPUs"), wanted)
	}
	if now, err := xids(); err == nil && now != "" {
		return errors.New(now)
	}
	// Old drivers do not know these fields.
	rows, _, err = resources.AskNVIDIA(ctx, program, "--query-gpu=index,ecc.errors.uncorrected.volatile.total,remapped_rows.failure,remapped_rows.pending")
	if err == nil {
		return badMemory(rows)
	}
	return nil
}

// badMemory returns an error for the first GPU with errors of its memory.
func badMemory(rows [][]string) error {
	for _, row := range rows {
		if len(row) < 4 {
			continue
		}
		if n, err := strconv.Atoi(row[1]); err == nil && n > 0 {
			return fmt.Errorf("GPU %s has had %s that could not be corrected (ECC); reset it", row[0], plural.Of(n, "memory error", "memory errors"))
		}
		switch {
		case isYes(row[2]):
			return fmt.Errorf("GPU %s has a row of memory that cannot be replaced; have it exchanged", row[0])
		case isYes(row[3]):
			return fmt.Errorf("GPU %s has a row of memory to replace; reset it", row[0])
		}
	}
	return nil
}

func isYes(text string) bool {
	return text != "0" && !strings.EqualFold(text, "no") && !strings.HasPrefix(text, "[")
}

// hardware are the Xid errors that are not errors of programs (docs.nvidia.com/deploy/xid-errors):
// of memory, of NVLink, of the bus, and of the GPU's own processor.
var hardware = []int{48, 62, 63, 64, 74, 79, 92, 95, 119, 120, 123, 136, 140, 143}

var xid = regexp.MustCompile(`NVRM: Xid \(([^)]*)\): (\d+)`)

// xidAge is the age up to which an Xid counts.
const xidAge = time.Hour

// xids returns the last recent error of the hardware in the messages of the kernel, or "" if there
// is none. It fails if they may not be read.
func xids() (string, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return "", err
	}
	var found string
	for buf := make([]byte, 8192); ; {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINTR): // older ones were overwritten
			continue
		case errors.Is(err, unix.EAGAIN):
			return found, nil
		case err != nil:
			return "", err
		}
		if text := xidOf(string(buf[:n]), time.Duration(now.Nano())); text != "" {
			found = text
		}
	}
}

// xidOf returns the error in a message of the kernel, whose third field is its time in
// microseconds since the boot.
func xidOf(record string, now time.Duration) string {
	m := xid.FindStringSubmatch(record)
	if m == nil {
		return ""
	}
	head, _, _ := strings.Cut(record, ";")
	fields := strings.Split(head, ",")
	number, err := strconv.Atoi(m[2])
	if err != nil || len(fields) < 3 || !slices.Contains(hardware, number) {
		return ""
	}
	micros, err := strconv.ParseInt(fields[2], 10, 64)
	if age := now - time.Duration(micros)*time.Microsecond; err != nil || age > xidAge {
		return ""
	}
	return fmt.Sprintf("Xid %d of the GPU at %s in the last hour", number, m[1])
}

// matmul is a program for Python that fails if a GPU and the processor compute different results.
// A GPU that has no memory left is in use, and counts as healthy.
const matmul = `
import sys
try:
    import torch
except ImportError:
    sys.exit(0)
a = torch.arange(512 * 512).remainder(8).reshape(512, 512).float()
want = a @ a
for i in range(torch.cuda.device_count()):
    try:
        b = a.to(f"cuda:{i}")
        got = (b @ b).cpu()
    except torch.cuda.OutOfMemoryError:
        continue
    if not torch.equal(got, want):
        sys.exit(f"GPU {i} multiplies wrongly")
`
