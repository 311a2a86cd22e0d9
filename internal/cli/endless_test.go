package cli

import (
	"strings"
	"testing"
)

// zeros is input without an end, as a device gives it.
type zeros struct{ read int64 }

func (e *zeros) Read(p []byte) (int, error) {
	clear(p)
	e.read += int64(len(p))
	return len(p), nil
}

// TestEndlessInputIsRefused: a command reads no more of its input than can be right.
func TestEndlessInputIsRefused(t *testing.T) {
	t.Parallel()
	for command, most := range map[string]int64{"import -": 1 << 20, "verify --file -": 1 << 20} {
		in := &zeros{}
		exit, _, stderr := interact(t, in, strings.Fields(command)...)
		if exit == 0 || in.read > most || !strings.Contains(stderr, "bytes") {
			t.Errorf("%s: exit %d after %d bytes: %s", command, exit, in.read, stderr)
		}
	}
}
