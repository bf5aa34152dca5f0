package resources

import (
	"bytes"
	"context"
	"encoding/csv"
	"os/exec"
	"strings"
	"time"
)

// nvidiaPatience limits the wait for nvidia-smi.
const nvidiaPatience = 5 * time.Second

// AskNVIDIA asks nvidia-smi for a table, without its header, and returns the processor time used.
// If a GPU hangs, so does nvidia-smi, which AskNVIDIA then abandons.
func AskNVIDIA(ctx context.Context, program, what string) (rows [][]string, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, nvidiaPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, what, "--format=csv,noheader,nounits")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if s := cmd.ProcessState; s != nil {
		took = s.UserTime() + s.SystemTime()
	}
	if err != nil {
		return nil, took, err
	}
	r := csv.NewReader(bytes.NewReader(out))
	r.FieldsPerRecord, r.TrimLeadingSpace, r.LazyQuotes = -1, true, true
	all, err := r.ReadAll()
	for _, row := range all {
		if len(row) < 2 {
			continue // a message instead of a row
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		rows = append(rows, row)
	}
	return rows, took, err
}
