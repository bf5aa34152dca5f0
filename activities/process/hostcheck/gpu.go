package hostcheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/activities/system/xid"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

// gpu fails if an NVIDIA GPU does not answer, has uncorrectable errors, or had a hardware error in
// the last hour. number is the number of GPUs; if empty, the driver's number applies.
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
	if all, err := xid.Read(); err == nil { // not every user may read them
		if err := lastXid(all, time.Now()); err != nil {
			return err
		}
	}
	// Old drivers lack these fields.
	rows, _, err = resources.AskNVIDIA(ctx, program, "--query-gpu=index,ecc.errors.uncorrected.volatile.total,remapped_rows.failure,remapped_rows.pending")
	if err == nil {
		return badMemory(rows)
	}
	return nil
}

// badMemory returns an error for the first GPU with memory errors.
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

// xidAge is the maximum age of an Xid error that counts.
const xidAge = time.Hour

// lastXid returns the last recent hardware error, or nil.
func lastXid(all []xid.Error, now time.Time) error {
	for _, e := range slices.Backward(all) {
		if spec.HardwareXid(e.Number) && now.Sub(e.At) <= xidAge {
			return fmt.Errorf("the GPU at %s had Xid %d in the last hour", e.GPU, e.Number)
		}
	}
	return nil
}

// matmul is a Python program that fails if a GPU and the processor compute different results. A GPU
// without free memory is in use, and counts as healthy.
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
