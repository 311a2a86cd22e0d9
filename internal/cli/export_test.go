package cli

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// newTestApp makes an app over buffers, with a clock that stands still.
func newTestApp(t *testing.T, stdin io.Reader, now time.Time) (a *app, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return &app{
		stdin: stdin, stdout: stdout, human: stdout, stderr: stderr, env: config.Environment{}, columns: func() int { return 0 },
		now: func() time.Time { return now },
	}, stdout, stderr
}
