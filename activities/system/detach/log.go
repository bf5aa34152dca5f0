package detach

import "os"

// OpenLog opens a background process's log for appending, and returns its size. It first empties
// the log if it is larger than maxSize bytes.
func OpenLog(path string, maxSize int64) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > maxSize {
		if err = f.Truncate(0); err == nil {
			info, err = f.Stat()
		}
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
