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
	for command, want := range map[string]struct {
		most int64
		says string
	}{
		"import -": {1 << 20, "line 1: the line is longer than"}, "verify --file -": {1 << 20, "line 1: the line is longer than"}, "validate -": {257 << 20, "more than"},
	} {
		in := &zeros{}
		exit, _, stderr := interact(t, in, strings.Fields(command)...)
		kept := strings.Contains(stderr, "Nothing was imported") == strings.HasPrefix(command, "import")
		if exit == 0 || in.read > want.most || !kept || !strings.Contains(stderr, want.says) {
			t.Errorf("%s: exit %d after %d bytes: %s", command, exit, in.read, stderr)
		}
	}
}
